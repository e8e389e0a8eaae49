// What the tokens of a camera's frames are chosen by for a drafter, computed once, when they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "base/grid_mask.h"
#include "engine/prune/draft_tokens.h"
#include "kernels/device/buffer.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::prune {

/// Embeddings of the last frame of each camera, which wait for the next one: of all cameras of a device,
/// within a number of bytes. Where there is no room, those go that have waited longest. Not thread-safe.
class WaitingFrames {
 public:
  struct Frame {
    base::GridMask places;
    /// `places.list()` and [tokens, width], dense, on the device.
    kernels::Buffer list, embeddings;
    kernels::DType dtype = kernels::DType::f32;
    std::int64_t width = 0;

    std::uint64_t bytes() const { return list.bytes() + embeddings.bytes(); }
  };

  explicit WaitingFrames(std::uint64_t most_bytes) : most_(most_bytes) {}

  /// Makes room, by sending away. False: so many bytes are more than there may be, and all stay.
  bool make_room(std::uint64_t bytes);
  /// There has to be room.
  void put(std::shared_ptr<Frame> frame);
  /// It waits no more. Null where it was sent away.
  std::shared_ptr<Frame> take(const std::weak_ptr<Frame>& frame);

  std::uint64_t bytes() const { return bytes_; }
  /// Frames that were sent away, and those that found no room, so far.
  std::uint64_t gone() const { return gone_; }
  void count_gone() { ++gone_; }

 private:
  std::uint64_t most_;
  std::uint64_t bytes_ = 0, gone_ = 0;
  /// The one that has waited longest first.
  std::list<std::shared_ptr<Frame>> frames_;
};

/// The frames of one camera that a window may have, in order, with the scores that no question changes:
/// cosines with the frame before, and spreads (kernels/similarity). A frame's embeddings are needed until the
/// next one has come, and kept as `WaitingFrames` can; where they are gone, both frames lack that neighbour.
/// Scores take 12 bytes a token. Not thread-safe.
class FrameScores {
 public:
  /// `stream`: where embeddings lie and are compared; `waiting`: of its device.
  FrameScores(const kernels::Stream& stream, std::shared_ptr<WaitingFrames> waiting)
      : stream_(stream), waiting_(std::move(waiting)) {}
  ~FrameScores() { interrupt(); }
  FrameScores(const FrameScores&) = delete;
  FrameScores& operator=(const FrameScores&) = delete;

  /// The next frame. places: of the picture's grid, those that have a token; embeddings: [tokens, width], f32
  /// or bf16, dense, of these in order, copied in the stream's order. With the frame before it is compared
  /// where that has the same grid, width and type. Throws std::invalid_argument where they do not fit each
  /// other, std::bad_alloc, DeviceError: then the frame is not there, and the next one has none before it.
  void add(const base::GridMask& places, kernels::ConstMatrix embeddings);
  /// The next frame follows none: something is missing between.
  void interrupt();

  /// Frames that are there.
  std::size_t frames() const { return frames_.size(); }
  /// The first ones leave. Throws std::out_of_range where there are not so many.
  void drop(std::size_t count);
  /// Of `count` frames from `first` on, without attention: valid until the next call of another member that
  /// is not const. Waits for the stream where some of them are asked for the first time. Throws
  /// std::out_of_range for frames that are not there, DeviceError.
  std::vector<ScoredFrame> window(std::size_t first, std::size_t count);

 private:
  struct Frame {
    std::vector<std::int32_t> places;
    /// Cosines of all tokens, then spreads; on the device until they are asked for.
    std::vector<float> scores;
    kernels::Buffer there;
  };
  void keep(const base::GridMask& places, kernels::Buffer list, kernels::ConstMatrix embeddings);

  kernels::Stream stream_;
  std::shared_ptr<WaitingFrames> waiting_;
  std::weak_ptr<WaitingFrames::Frame> last_;
  std::deque<Frame> frames_;
};

}  // namespace vigil::prune
