#include "media/interrupt.h"

#include <cstdint>
#include <cstring>

namespace vigil::media {
namespace {

/// Bytes that are read of a source while it is opened, at most: the index of hours of video is far less, and
/// begins there or is sought.
constexpr std::int64_t kMostRead = std::int64_t{128} << 20;
/// Each line of a playlist takes many times its length.
constexpr std::int64_t kMostOfPlaylist = std::int64_t{4} << 20;

}  // namespace

void Interrupt::allow(std::chrono::milliseconds time) {
  if (time > std::chrono::milliseconds::zero()) {
    deadline_ = std::chrono::steady_clock::now() + time;
  } else {
    deadline_.reset();
  }
}

void Interrupt::refuse(const std::string& reason) {
  if (refusal_.empty()) refusal_ = reason;
}

bool Interrupt::expired() {
  if (opening_ != nullptr && opening_->pb != nullptr) {
    const bool playlist = opening_->iformat != nullptr && std::strcmp(opening_->iformat->name, "hls") == 0;
    const std::int64_t most = playlist ? kMostOfPlaylist : kMostRead;
    if (opening_->pb->bytes_read > most)
      refuse("it sends more than " + std::to_string(most >> 20) + " MiB before its first picture");
  }
  if (deadline_ && std::chrono::steady_clock::now() > *deadline_) timed_out_ = true;
  return timed_out_ || !refusal_.empty() || cancelled();
}

int Interrupt::check(void* self) {
  return static_cast<Interrupt*>(self)->expired() ? 1 : 0;
}

}  // namespace vigil::media
