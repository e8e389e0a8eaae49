#include "media/log_capture.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avstring.h>
#include <libavutil/log.h>
}

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/url_mask.h"
#include "media/admission.h"
#include "media/gate.h"

namespace vigil::media {
namespace {

// FFmpeg's log callback is one for the process and carries no user pointer; the thread is what tells captures
// apart.
thread_local LogCapture* current_capture = nullptr;

thread_local std::string last_location;

// The name of the file stands in front of every line of ours, so the line need not repeat where it comes
// from.
std::string as_one_line(std::string_view text) {
  while (!text.empty() &&
         (text.back() == '\n' || text.back() == '\r' || text.back() == ' ' || text.back() == '.')) {
    text.remove_suffix(1);
  }
  std::string line = base::mask_urls(text);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  return line;
}

DecoderLog* decoder_log(void* logger) {
  if (logger == nullptr || *static_cast<const AVClass**>(logger) != avcodec_get_class()) return nullptr;
  return static_cast<DecoderLog*>(static_cast<AVCodecContext*>(logger)->opaque);
}

AVFormatContext* demuxing(void* logger) {
  if (logger == nullptr || *static_cast<const AVClass**>(logger) != avformat_get_class()) return nullptr;
  return static_cast<AVFormatContext*>(logger);
}

// HTTP traces the lines of an answer, and nothing else says where a redirect leads.
void on_trace(const char* format, va_list arguments) {
  if (current_capture == nullptr || std::strncmp(format, "header='", 8) != 0) return;
  char line[4096];
  std::vsnprintf(line, sizeof line, format, arguments);
  const char* value = nullptr;
  if (av_stristart(line + 8, "location:", &value) == 0) return;
  std::string_view location(value);
  if (location.ends_with('\n')) location.remove_suffix(1);
  if (location.ends_with('\'')) location.remove_suffix(1);
  while (location.starts_with(' ') || location.starts_with('\t')) location.remove_prefix(1);
  last_location = location;
}

// What FFmpeg says before it does it, or without the name that it is about.
void on_demuxing(AVFormatContext& context, const char* format) {
  if (std::strncmp(format, "Status %d: Redirecting to", 25) == 0) Gate::on_rtsp_redirect(context);
  const bool refused = std::strncmp(format, "Format not on whitelist", 23) == 0;
  if (refused && current_capture != nullptr && context.iformat != nullptr) {
    current_capture->refuse_format(why_refused(*context.iformat));
  }
}

void hear(void* logger, int level, const char* format, va_list arguments) {
  if (level == AV_LOG_TRACE) on_trace(format, arguments);
  if (level > AV_LOG_INFO) return;
  if (AVFormatContext* context = demuxing(logger)) on_demuxing(*context, format);
  DecoderLog* decoder = decoder_log(logger);
  if (decoder != nullptr && std::strncmp(format, "concealing ", 11) == 0) decoder->add_concealed();
  if (level > AV_LOG_ERROR || (decoder == nullptr && current_capture == nullptr)) return;
  char line[512];
  std::vsnprintf(line, sizeof line, format, arguments);
  if (decoder != nullptr) {
    decoder->add_error(as_one_line(line));
  } else {
    current_capture->add(as_one_line(line));
  }
}

// FFmpeg's C frames are above, so nothing may be thrown: without memory, a line is lost.
void on_log(void* logger, int level, const char* format, va_list arguments) noexcept {
  try {
    hear(logger, level, format, arguments);
  } catch (const std::bad_alloc&) {
  }
}

void take_over_log() {
  static const bool taken = (av_log_set_callback(on_log), true);
  static_cast<void>(taken);
}

}  // namespace

LogCapture::LogCapture() : outer_(current_capture) {
  take_over_log();
  current_capture = this;
}

LogCapture::~LogCapture() {
  current_capture = outer_;
}

std::string LogCapture::take_location() {
  return std::exchange(last_location, {});
}

void LogCapture::add(const std::string& line) {
  if (first_error_.empty()) first_error_ = line;
}

std::string LogCapture::explain(const std::string& reason) const {
  if (first_error_.empty() || first_error_.find(reason) != std::string::npos) return reason;
  return reason + " (" + first_error_ + ")";
}

DecoderLog::DecoderLog() {
  take_over_log();
}

std::uint64_t DecoderLog::concealed() const {
  const std::lock_guard lock(mutex_);
  return concealed_;
}

std::string DecoderLog::last_error() const {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

void DecoderLog::add_concealed() {
  const std::lock_guard lock(mutex_);
  ++concealed_;
}

void DecoderLog::add_error(const std::string& line) {
  const std::lock_guard lock(mutex_);
  last_error_ = line;
}

}  // namespace vigil::media
