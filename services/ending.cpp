#include "services/ending.h"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>
#include <utility>

#include <poll.h>
#include <unistd.h>

#include "services/command.h"

namespace vigil::services {

void Ending::ask() {
  const std::lock_guard lock(mutex_);
  was_asked_ = true;
  if (!stop_) std::_Exit(code_);
  (*stop_)();
}

void Ending::set(std::function<void()> stop) {
  const std::lock_guard lock(mutex_);
  stop_ = std::move(stop);
}

Ending::Stopping::Stopping(Ending& ending, std::function<void()> stop)
    : ending_(ending), stop_(std::move(stop)) {
  ending_.set(stop_);
}

Ending::Stopping::~Stopping() {
  ending_.set([] {});
  stop_();
}

bool end_within(caf::actor_system& system, base::Duration patience) {
  for (const auto last = std::chrono::steady_clock::now() + patience; system.registry().running() > 0;) {
    if (std::chrono::steady_clock::now() > last) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

void quit() {
  constexpr std::string_view kLine = "vigil: ended at once by a second signal; what was under way is lost\n";
  pollfd output{STDERR_FILENO, POLLOUT, 0};
  if (poll(&output, 1, 0) == 1 && (output.revents & POLLOUT) != 0) [[maybe_unused]]
    const auto written = write(STDERR_FILENO, kLine.data(), kLine.size());
  std::_Exit(kFailed);
}

void leave(spdlog::logger& logger) {
  logger.flush();
  std::cerr.flush();
  std::_Exit(kFailed);
}

}  // namespace vigil::services
