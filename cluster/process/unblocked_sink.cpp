#include "cluster/process/unblocked_sink.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <string>
#include <utility>

#include <poll.h>
#include <unistd.h>

namespace vigil::cluster {
namespace {

// Milliseconds.
constexpr int kMoment = 50;
constexpr auto kBetweenMoments = std::chrono::seconds(1);

}  // namespace

bool UnblockedSink::has_room() {
  pollfd wanted{descriptor_, POLLOUT, 0};
  const auto is_ready = [&wanted](int milliseconds) {
    return ::poll(&wanted, 1, milliseconds) == 1 && (wanted.revents & POLLOUT) != 0;
  };
  if (is_ready(0)) return true;
  // A reader that is only slow gets a moment now and then; one that has missed lines already gets none.
  const auto now = std::chrono::steady_clock::now();
  if (lost_ > 0 || now < patient_again_) return false;
  patient_again_ = now + kBetweenMoments;
  return is_ready(kMoment);
}

// In pieces that a pipe takes as a whole when it takes anything.
void UnblockedSink::write_line(std::string_view text) {
  const std::string whole = cut_off_ ? '\n' + std::string(text) : std::string(text);
  std::string_view line = whole;
  while (!line.empty()) {
    if (!has_room()) {
      ++lost_;
      return;
    }
    const ssize_t count = ::write(descriptor_, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF));
    if (count <= 0) {
      ++lost_;
      return;
    }
    line.remove_prefix(static_cast<std::size_t>(count));
    cut_off_ = !line.empty();
  }
}

void UnblockedSink::sink_it_(const spdlog::details::log_msg& message) {
  if (lost_ > 0 && has_room()) {
    const std::size_t lost = std::exchange(lost_, 0);
    const std::string text = "log: " + std::to_string(lost) + " lines are lost: nobody read them in time";
    spdlog::memory_buf_t line;
    formatter_->format({message.logger_name, spdlog::level::warn, text}, line);
    write_line({line.data(), line.size()});
    if (lost_ > 0) lost_ += lost;
  }
  spdlog::memory_buf_t line;
  formatter_->format(message, line);
  write_line({line.data(), line.size()});
}

}  // namespace vigil::cluster
