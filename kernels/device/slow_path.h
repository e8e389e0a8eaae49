// No silent fallback: an operation that takes a slower way, because something does not fit its fast one, says
// so once.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace vigil::kernels {

/// Why most operations of a GPU have a slower way.
inline constexpr std::string_view kOddRows =
    "rows or vectors that are no whole packs of 16 bytes: element by element";

/// A place in the code that is a slower way. Static there, so that it costs one look at a flag each time but
/// the first; `taken` allocates nothing then, and may be called while work is recorded. Thread-safe.
class SlowPath {
 public:
  /// Both texts live as long as the program; `why` says what does not fit, and what happens instead.
  constexpr SlowPath(std::string_view operation, std::string_view why) : operation_(operation), why_(why) {}

  void taken() noexcept {
    if (!told_.load(std::memory_order_relaxed)) tell();
  }

 private:
  void tell() noexcept;

  std::string_view operation_, why_;
  std::atomic<bool> told_ = false;
};

using SlowPathListener = std::function<void(const std::string&)>;

/// What was told: each line once, and not more than kMost of them. Thread-safe.
class SlowPathList {
 public:
  /// Lines that are kept; the last says that there are more.
  static constexpr std::size_t kMost = 64;

  /// Keeps "OPERATION: WHY" and tells the listener. What does not come to pass, for want of memory or since
  /// the listener throws, is lost.
  void tell(std::string_view operation, std::string_view why) noexcept;
  /// Tells a listener what was told before, and from now on what is told; none if it is empty. One at a time:
  /// when this returns, the one before is not called any more. It is called on any thread, by one at a time,
  /// and may not call this class or compute.
  void listen(SlowPathListener listener) noexcept;
  std::vector<std::string> told() const;

 private:
  void say(const std::string& line) const noexcept;

  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  SlowPathListener listener_;
};

/// The process's.
SlowPathList& slow_paths();

/// Of the process's list: `tell`, `listen`.
void tell_slow_path(std::string_view operation, std::string_view why) noexcept;
void set_slow_path_listener(SlowPathListener listener) noexcept;

}  // namespace vigil::kernels
