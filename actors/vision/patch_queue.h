// The patches of many cameras that wait for the vision tower: bounded for each camera, served in turn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "base/clock.h"

namespace vigil::actors {

/// How much of a whole patch is to be encoded: the tower's rows are in proportion. At least an eighth, since
/// each has a share of the rest.
double load_of(const FramePatch& patch);
/// Of all of them, as so many whole ones.
double load_of(const std::vector<FramePatchPtr>& patches);

/// Not thread-safe.
class PatchQueue {
 public:
  explicit PatchQueue(int frames_per_patch) : frames_per_patch_(frames_per_patch) {}

  struct Joined {
    /// To grant the camera: two strides' worth, so that one is captured while another waits.
    std::uint32_t credits = 0;
    /// Whether the next stage does not know the camera yet.
    bool is_new = false;
  };

  /// A camera, or its next incarnation, starts.
  Joined join(const WatchSettings& watch);

  /// The next stage can take so many more patches of this camera.
  void grant(const std::string& camera, std::uint32_t credits);

  /// False if the camera has not joined or sends more than its credit allows; then the patch is not taken.
  bool push(FramePatchPtr patch);

  /// No patch of this camera follows.
  void end(const std::string& camera);

  /// As much as `max` whole patches at most, in the order of each camera's time, a patch of each camera in
  /// turn, only of cameras for which the next stage has credit. The turn goes on where the last batch left
  /// off. They are under way until they are `done`.
  std::vector<FramePatchPtr> pop(std::size_t max);

  /// A patch that was popped has reached the next stage, or failed.
  void done(const FramePatch& patch);

  /// Cameras that have ended and of which nothing is left, not under way either, since the last call.
  std::vector<std::string> take_ended();

  /// When the oldest patch that may be popped was captured.
  std::optional<base::Clock::TimePoint> oldest() const;

  std::size_t size() const { return size_; }
  /// Those that may be popped, as so many whole ones.
  double ready() const;

 private:
  struct Lane {
    std::deque<FramePatchPtr> patches;
    std::size_t under_way = 0;
    std::size_t capacity = 0;
    std::uint32_t downstream = 0;
    bool ended = false;
  };

  int frames_per_patch_;
  std::map<std::string, Lane> lanes_;
  /// Name of the camera that was served last.
  std::string last_;
  std::size_t size_ = 0;
};

}  // namespace vigil::actors
