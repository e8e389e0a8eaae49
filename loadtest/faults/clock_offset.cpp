// A library for LD_PRELOAD: another time of day. The monotonic clocks are the machine's. (libfaketime asks
// for memory before it knows the time, and jemalloc for the time before it has memory.)
//
//   CLOCK_OFFSET  a file of 8 bytes, which may change at any time: the seconds to add, a whole number as the
//   machine stores it
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

namespace {

const std::atomic<std::int64_t>* map_offset() {
  const char* name = std::getenv("CLOCK_OFFSET");
  if (name == nullptr) return nullptr;
  const int file = ::open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) std::abort();
  void* bytes = ::mmap(nullptr, sizeof(std::int64_t), PROT_READ, MAP_SHARED, file, 0);
  ::close(file);
  if (bytes == MAP_FAILED) std::abort();
  return static_cast<const std::atomic<std::int64_t>*>(bytes);
}

std::int64_t offset() {
  static const std::atomic<std::int64_t>* const seconds = map_offset();
  return seconds == nullptr ? 0 : seconds->load(std::memory_order_relaxed);
}

/// A deadline as the kernel understands it. Those of monotonic clocks are the time since the machine started.
timespec of_machine(const timespec& deadline) {
  constexpr std::time_t kNoMachineRunsSoLong = 300'000'000;
  timespec result = deadline;
  if (result.tv_sec > kNoMachineRunsSoLong) result.tv_sec -= offset();
  return result;
}

template <class F>
F next(const char* name) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += offset();
  return static_cast<int>(result);
}

int gettimeofday(timeval* time, void*) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  *time = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

std::time_t time(std::time_t* time) noexcept {
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  if (time != nullptr) *time = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex, const timespec* deadline) {
  static const auto real =
      next<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  const timespec until = of_machine(*deadline);
  return real(condition, mutex, &until);
}

int sem_timedwait(sem_t* semaphore, const timespec* deadline) {
  static const auto real = next<int (*)(sem_t*, const timespec*)>("sem_timedwait");
  const timespec until = of_machine(*deadline);
  return real(semaphore, &until);
}

}  // extern "C"
