#include "kernels/collective/meeting.h"

#include "kernels/device/error.h"

namespace vigil::kernels {

void Meeting::meet() {
  std::unique_lock lock(mutex_);
  const auto refuse = [&] {
    if (off_) throw DeviceError(kCalledOff);
  };
  refuse();
  if (++waiting_ == ranks_) {
    waiting_ = 0;
    ++round_;
    changed_.notify_all();
    return;
  }
  const std::uint64_t round = round_;
  changed_.wait(lock, [&] { return round_ != round || off_; });
  if (round_ == round) refuse();
}

void Meeting::call_off() {
  const std::lock_guard lock(mutex_);
  off_ = true;
  changed_.notify_all();
}

void Meeting::reset() {
  const std::lock_guard lock(mutex_);
  off_ = false;
  waiting_ = 0;
}

}  // namespace vigil::kernels
