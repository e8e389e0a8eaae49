// The patches of a device's cameras, on their way through its vision tower.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/batch_limit.h"
#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "actors/messages/watch_book.h"
#include "actors/vision/encode.h"
#include "actors/vision/patch_queue.h"
#include "base/clock.h"
#include "base/duration.h"
#include "engine/run/executor.h"
#include "engine/run/vision_encoder.h"

namespace vigil::actors {

/// Batches them over cameras; what was captured first is due first. A batch is encoded here, as a piece of
/// work, or by another thread, which is given it by `begin` and gives back what came of it by `finish`.
///
/// A camera may have come from a device that was lost, and choose by what that one had seen of it. Here it
/// begins: until a patch of it was encoded, all of each is, and kept, so that its stream begins with a whole
/// picture. Not thread-safe.
class VisionDesk final : public run::WorkSource {
 public:
  /// They have to outlive it. `batch`: patches of one pass at most, or as much of more of them.
  VisionDesk(run::VisionEncoder& encoder, const base::Clock& clock, std::size_t batch);

  /// A camera, or its next incarnation, starts.
  PatchQueue::Joined join(const WatchPtr& watch);
  /// A camera's settings are these from its next patch on. False if no patch will refer to them.
  bool know(const WatchPtr& watch) { return book_.put(watch); }
  /// What patches refer to; null if nobody told it.
  WatchPtr watch(const WatchRef& ref) const { return book_.find(ref); }
  /// Whether it begins with this camera and is given only a part of a picture: that is of no use.
  bool lacks(const FramePatch& patch) const;
  /// False for a patch of a camera that has not joined, whose settings nobody told, or that is more than the
  /// camera has credit for: it is not taken.
  bool take(const FramePatchPtr& patch);
  /// No patch of this camera follows.
  void end(const std::string& camera) { queue_.end(camera); }
  /// Whoever takes visual tokens can take so many more patches of this camera.
  void grant(const std::string& camera, std::uint32_t credits) { queue_.grant(camera, credits); }

  std::optional<base::Clock::TimePoint> due() const override { return queue_.oldest(); }
  /// A batch that is not full waits so long for more. On an H200 a pass costs 2 ms beside its rows, as much
  /// as those of most of a whole patch.
  std::optional<base::Clock::TimePoint> gathers_until() const override;
  static constexpr base::Duration kGather = std::chrono::milliseconds(150);
  /// Encodes a batch.
  void work(const run::Turn& turn) override;

  /// So many batches may be under way: one more than is encoded; and so many if there is enough for full
  /// ones, since this thread may be away for as long as that takes.
  static constexpr std::size_t kUnderWay = 2, kFullUnderWay = 16;
  /// The next batch, for whoever encodes it; empty if there is none, or enough are under way.
  std::vector<FramePatchPtr> begin();
  /// What came of the first batch that is under way.
  void finish(Encoded encoded);

  struct Batch {
    Encoded encoded;
    /// Of every patch of the batch.
    std::vector<PatchAck> acks;
    /// Of every patch that failed, in the order of `encoded.failures`: its settings.
    std::vector<WatchPtr> failed;
    /// Whole patches of one pass at most from now on.
    std::size_t limit = 0;
  };
  /// What came of the batch since the last call.
  std::optional<Batch> take_batch() { return std::exchange(batch_, std::nullopt); }
  /// Cameras that have ended and of which nothing is left, not under way either, since the last call.
  std::vector<std::string> take_ended();

  /// Patches that wait, also in batches behind the first that is under way.
  std::size_t waiting() const;
  /// Whole patches of the next pass at most; as many whole ones as the last one was.
  std::size_t most() const { return limit_.now(); }
  std::size_t last() const { return last_; }

 private:
  run::VisionEncoder& encoder_;
  const base::Clock& clock_;
  PatchQueue queue_;
  BatchLimit limit_;
  WatchBook book_;
  /// Cameras of which no patch was encoded yet, and of each whether a whole one is on its way.
  std::map<std::string, bool> beginning_;
  /// Begun and not finished, in this order.
  std::deque<std::vector<FramePatchPtr>> under_way_;
  std::optional<Batch> batch_;
  std::size_t last_ = 0;
};

}  // namespace vigil::actors
