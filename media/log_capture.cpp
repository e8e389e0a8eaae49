#include "media/log_capture.h"

extern "C" {
#include <libavutil/log.h>
}

#include <cstdarg>
#include <cstdio>
#include <string_view>

#include "media/url.h"

namespace vigil::media {
namespace {

// FFmpeg's log callback is one for the process and carries no user pointer; the thread is what tells captures
// apart.
thread_local LogCapture* current_capture = nullptr;

void on_log(void*, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_ERROR || current_capture == nullptr) return;
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  current_capture->add(line);
}

}  // namespace

LogCapture::LogCapture() : outer_(current_capture) {
  static const bool installed = (av_log_set_callback(on_log), true);
  static_cast<void>(installed);
  current_capture = this;
}

LogCapture::~LogCapture() {
  current_capture = outer_;
}

void LogCapture::add(const std::string& line) {
  if (!first_error_.empty()) return;
  // The name of the file is already in front of every line of ours.
  std::string_view text = line;
  while (!text.empty() &&
         (text.back() == '\n' || text.back() == '\r' || text.back() == ' ' || text.back() == '.')) {
    text.remove_suffix(1);
  }
  first_error_ = without_credentials(std::string(text));
  for (char& c : first_error_) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
}

std::string LogCapture::explain(const std::string& reason) const {
  if (first_error_.empty() || first_error_.find(reason) != std::string::npos) return reason;
  return reason + " (" + first_error_ + ")";
}

}  // namespace vigil::media
