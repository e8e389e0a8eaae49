// Preloaded: a library that starts a thread before main, as OpenBLAS does, which takes any signal that it has
// not blocked.
#include <pthread.h>
#include <unistd.h>

namespace {

void* sleep_on(void* /*unused*/) {
  for (;;) pause();
}

__attribute__((constructor)) void start() {
  pthread_t thread{};
  if (pthread_create(&thread, nullptr, sleep_on, nullptr) == 0) pthread_detach(thread);
}

}  // namespace
