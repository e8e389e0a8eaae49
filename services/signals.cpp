#include "services/signals.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace vigil::services {

namespace {

sigset_t all_of_them() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

bool Signals::block() {
  const sigset_t set = all_of_them();
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &set, &before);
  return sigismember(&before, SIGTERM) == 1 && sigismember(&before, SIGINT) == 1 &&
         sigismember(&before, SIGHUP) == 1;
}

Signals::Signals(std::function<void()> on_end, std::function<void()> on_hangup) {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  block();
  const sigset_t set = all_of_them();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || wake_ < 0)
    throw std::system_error(errno, std::generic_category(), "cannot wait for signals");
  thread_ = std::thread([this, on_end = std::move(on_end), on_hangup = std::move(on_hangup)] {
    pollfd wanted[] = {{signals_, POLLIN, 0}, {wake_, POLLIN, 0}};
    for (;;) {
      if (poll(wanted, 2, -1) < 0) continue;
      if ((wanted[1].revents & POLLIN) != 0) return;
      signalfd_siginfo info{};
      if (read(signals_, &info, sizeof info) != sizeof info) continue;
      if (info.ssi_signo == SIGHUP) {
        on_hangup();
      } else {
        on_end();
      }
    }
  });
}

Signals::~Signals() {
  const std::uint64_t one = 1;
  if (write(wake_, &one, sizeof one) == sizeof one) thread_.join();
  close(signals_);
  close(wake_);
}

}  // namespace vigil::services
