// What lies before a camera's windows and is seen by their texts: on its way from the stream's pages to a
// past (engine/past/).
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "base/duration.h"
#include "engine/kv/view.h"
#include "engine/model/files/config.h"
#include "engine/past/past_options.h"
#include "engine/run/passes.h"
#include "engine/run/sequence_past.h"
#include "engine/stream/page_sink.h"

namespace vigil::stream {

/// Stands before the sink of one stream: takes what slides out of its windows, and passes all of it on.
/// Patches become part of the past when nobody's window shows them any more (`settle`), so that nothing is
/// seen twice; until then it holds their pages, which those windows hold, too. What leaves without keys, or
/// because others wanted the room, is not there.
///
/// In the desk's thread. What it makes of the passes has to be over before these.
class WindowMemory final : public PageSink {
 public:
  /// Of patches that ended up to `length` before the newest one, and of those in the same block as these.
  WindowMemory(run::Passes& passes, const model::TextConfig& text, past::PastOptions how,
               base::Duration length);

  void pass_on_to(std::shared_ptr<PageSink> next) { next_ = std::move(next); }
  void set_length(base::Duration length);
  base::Duration length() const { return length_; }

  bool takes_keyless() const override { return next_ && next_->takes_keyless(); }
  void take(LeavingTokens tokens) noexcept override;
  void let_go() noexcept override {
    if (next_) next_->let_go();
  }

  /// Bytes of the host's memory that it could use, of patches like those that it has seen, with nothing
  /// pruned; 0: it has seen none.
  std::int64_t need() const { return need_; }
  /// It may take so many of them from now on; none before the first call. What has no room goes, the oldest
  /// first. Throws as `settle`.
  void allow(std::int64_t bytes);
  /// As it was allowed last; and whether it once might take more.
  std::int64_t room() const { return room_; }
  bool had_more_room() const { return room_ < most_room_; }
  /// How much lies before its windows since something went that is no older than its length, for want of
  /// room: once, until it may take again what it needs, or half of what it might take then.
  std::optional<base::Duration> take_shortened();

  /// Patches before `first` are about to leave the stream for good.
  void leave_before(std::int64_t first) { gone_before_ = std::max(gone_before_, first); }
  /// Whether patches wait for windows to end that show them; and some before `first`.
  bool waits() const { return !waiting_.empty(); }
  bool waits(std::int64_t first) const { return waits() && waiting_.front().number < first; }
  /// No window shows patches before `first`: they are part of the past from now on, and what is too old, or
  /// has no room, is not; of what has too little room for a patch, nothing. Throws what making a past and
  /// appending to it does, but for want of room; `forget` follows then.
  void settle(std::int64_t first);
  /// All of it goes, and it begins anew.
  void forget();

  /// What a pass may see; null while it is empty.
  run::SequencePast* past() const { return past_ && past_->tokens() > 0 ? past_.get() : nullptr; }
  std::int64_t tokens() const { return past_ ? past_->tokens() : 0; }
  std::int64_t host_bytes() const { return past_ ? past_->host_bytes() : 0; }
  std::int64_t device_bytes() const { return past_ ? past_->device_bytes() : 0; }

 private:
  struct Waiting {
    std::int64_t number = 0;
    /// In seconds of the stream.
    double end = 0;
    std::int32_t time = 0;
    kv::View view;
  };
  static double block_patches(double patches);
  /// Of patches like this one.
  double patches_in(const model::VisualTokens& patch) const;
  /// Bytes of all that it may have, of patches like this one of which nothing is pruned.
  std::int64_t room_for(const model::VisualTokens& patch) const;
  void make_past(const model::VisualTokens& patch);
  void gather(std::int64_t first);
  /// What of a change has no room ends what there is; it begins anew with smaller blocks.
  void within_room(const std::function<void()>& change);
  /// Keeps as many ends as the past has patches.
  void follow_past();
  void lay();

  run::Passes& passes_;
  const model::TextConfig& text_;
  past::PastOptions how_;
  base::Duration length_;
  std::shared_ptr<PageSink> next_;
  std::deque<Waiting> waiting_;
  std::int64_t gone_before_ = 0;
  /// The largest number that was taken, and what its patch was like.
  std::int64_t taken_ = -1;
  model::VisualTokensPtr last_;
  std::unique_ptr<run::SequencePast> past_;
  std::int64_t need_ = 0, room_ = 0, most_room_ = 0;
  /// Something went early; and the room there was when that was taken.
  bool is_short_ = false;
  std::int64_t told_room_ = std::numeric_limits<std::int64_t>::max();
  /// Of the past, and what has room; with this room or less, nothing has.
  static constexpr int kMostOfBlock = 40;
  int block_patches_ = 0, most_of_block_ = kMostOfBlock;
  std::int64_t too_little_ = 0;
  /// When each patch of the past ended.
  std::deque<double> ends_;
};

}  // namespace vigil::stream
