// Host threads that wait for each other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace vigil::kernels {

/// What those are told who meet somebody who will not come.
inline constexpr const char* kCalledOff = "another part of the model failed";

/// A barrier of a fixed number of threads that can be called off. What each wrote before `meet`, all see
/// after it.
class Meeting {
 public:
  explicit Meeting(int ranks) : ranks_(ranks) {}

  /// Waits until all have come. Throws DeviceError if it was, or is, called off.
  void meet();
  /// Lets all leave that wait, and all that will come.
  void call_off();
  /// Makes it usable again. Nobody is in it.
  void reset();

 private:
  const int ranks_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int waiting_ = 0;
  std::uint64_t round_ = 0;
  bool off_ = false;
};

}  // namespace vigil::kernels
