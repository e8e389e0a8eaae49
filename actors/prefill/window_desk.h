// The windows of many cameras that wait for an answer: assembled from patches, bounded for each camera,
// served fairly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/watch_book.h"
#include "actors/prefill/window_assembler.h"

namespace vigil::actors {

/// Under overload the windows of a camera overtake each other: one waits at most, and a newer one takes its
/// place. Since windows overlap, nothing that was seen is lost for the next. A camera that must lose nothing
/// is held back by its credit instead. Not thread-safe.
class WindowDesk {
 public:
  explicit WindowDesk(int frames_per_patch) : frames_per_patch_(frames_per_patch) {}

  /// A camera starts. Returns the credits to grant for it: what a window and a stride hold.
  std::uint32_t join(const WatchPtr& watch);

  /// A camera's settings, ahead of the first patch that refers to them. False if none will.
  bool know(const WatchPtr& watch) { return book_.put(watch); }
  /// The settings of a patch; null if nobody told them.
  WatchPtr watch(const VisualPatch& patch) const { return book_.find(patch.watch); }

  struct Taken {
    /// To be given back at once.
    std::uint32_t credits = 0;
    /// The patch was a duplicate or out of order, or of a camera that did not join, or nobody told its
    /// settings; it is ignored.
    bool refused = false;
    /// Windows that will not be answered, since a newer one is due.
    std::size_t overtaken = 0;
  };
  Taken push(VisualPatchPtr patch);

  /// No patch of this camera follows. What is left of its stream becomes a last window.
  void end(const std::string& camera);

  struct Batch {
    std::vector<DueWindow> windows;
    /// Cameras of which nothing is left.
    std::vector<std::string> ended;
  };

  /// Whether one more window has room in the batch that is being made.
  using Admit = std::function<bool(const DueWindow&)>;

  /// At most `max` windows, at most one of each camera: those first that were served least recently, up to
  /// the first that is not admitted. That one comes first in the next batch.
  Batch pop(std::size_t max, const Admit& admit = {});

  /// Windows that wait.
  std::size_t size() const;

 private:
  struct Lane {
    explicit Lane(const WatchPtr& watch) : assembler(watch) {}
    WindowAssembler assembler;
    std::deque<DueWindow> windows;
    /// The turn in which a window was last taken; 0 before the first.
    std::uint64_t served = 0;
    bool ended = false;
  };

  std::size_t enqueue(Lane& lane, DueWindow window);

  int frames_per_patch_;
  std::map<std::string, Lane> lanes_;
  WatchBook book_;
  std::uint64_t turn_ = 0;
};

}  // namespace vigil::actors
