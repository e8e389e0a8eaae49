#include "kernels/device/slow_path.h"

#include <algorithm>
#include <utility>

namespace vigil::kernels {

void SlowPath::tell() noexcept {
  if (!told_.exchange(true)) tell_slow_path(operation_, why_);
}

void SlowPathList::say(const std::string& line) const noexcept {
  if (!listener_) return;
  try {
    listener_(line);
  } catch (...) {  // an operation does not fail for what is said about it
  }
}

void SlowPathList::tell(std::string_view operation, std::string_view why) noexcept {
  try {
    std::string line = std::string(operation).append(": ").append(why);
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMost || std::find(lines_.begin(), lines_.end(), line) != lines_.end()) return;
    if (lines_.size() + 1 == kMost) line = "more operations take slower ways than are told";
    lines_.push_back(std::move(line));
    say(lines_.back());
  } catch (...) {  // no memory for it
  }
}

void SlowPathList::listen(SlowPathListener listener) noexcept {
  const std::lock_guard lock(mutex_);
  listener_ = std::move(listener);
  for (const std::string& line : lines_) say(line);
}

std::vector<std::string> SlowPathList::told() const {
  const std::lock_guard lock(mutex_);
  return lines_;
}

SlowPathList& slow_paths() {
  // Never destroyed: threads may compute up to the process's end.
  static auto* const list = new SlowPathList;
  return *list;
}

void tell_slow_path(std::string_view operation, std::string_view why) noexcept {
  slow_paths().tell(operation, why);
}

void set_slow_path_listener(SlowPathListener listener) noexcept {
  slow_paths().listen(std::move(listener));
}

}  // namespace vigil::kernels
