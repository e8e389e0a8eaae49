// The one owner of a camera's stream: its visual tokens in the order of time, and what is kept of them.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "engine/kv/book.h"
#include "engine/kv/view.h"
#include "engine/model/files/config.h"
#include "engine/model/language/positions.h"
#include "engine/model/vision/visual_tokens.h"
#include "engine/stream/answer.h"
#include "engine/stream/ids.h"
#include "engine/stream/page_sink.h"
#include "engine/stream/refresh.h"

namespace vigil::stream {

/// What of a window is to be computed: rows in the order of their tokens. A run takes the rows
/// [first, first + count) of the prompt's tokens or of a patch's embeddings; they belong to the tokens
/// [at, at + count) of the window.
struct RowRun {
  std::int64_t at = 0;
  std::int64_t count = 0;
  /// Null: tokens of the prompt.
  model::VisualTokensPtr patch = nullptr;
  std::int64_t first = 0;
  /// Of the patch, counted over the stream.
  std::int64_t number = 0;
};

/// A window that has a place in the cache.
struct PlacedWindow {
  explicit PlacedWindow(kv::Book& book) : view(book) {}

  /// The prompt, then the window's visual tokens: slots of keys that are there, or are written by `rows`.
  kv::View view;
  std::vector<model::Position> positions;
  /// Where the texts behind it go on.
  model::PositionCursor cursor;
  /// It lies where the stream is, or reaches there, which may be far from zero.
  bool is_far = false;
  std::vector<RowRun> rows;
  /// Until it is known which tokens are computed anew (`CameraStream::choose`), `rows` are none; and these,
  /// the prompt and after it all tokens that are kept, are what is to be looked at (Passes::key_distances).
  /// The view ends with them.
  std::vector<RowRun> probe;
  WindowTokens tokens;
  /// To be copied before the rows are computed: others go on reading what was there.
  std::vector<kv::PageCopy> copies;
  PatchRange patches;
};

/// A patch that is remembered, for a stream that begins with what another one had.
struct RememberedPatch {
  /// Without embeddings if its keys are all that is left of it.
  model::VisualTokensPtr tokens;
  /// Where it lies, in positions since its stream began; later than the one before.
  std::int64_t time = 0;
  /// Its keys and values come, too; otherwise they are computed from the embeddings.
  bool has_keys = false;
};

/// A camera's patches are appended at the back and forgotten at the front; windows are ranges of them. Under
/// a policy that keeps keys, they are kept in pages of the stream, which windows look at; a token that is
/// computed anew is written to another page if a window still reads it. Between two patches there are as many
/// positions as there was time, in steps of a patch: a gap of time is a gap of positions.
///
/// What it keeps between windows, the book has to allow (`keep`); what leaves it is offered to a sink, if
/// there is one, but for what its destructor gives back. Not thread-safe.
class CameraStream {
 public:
  /// The book has to outlive it. `model`: what a second is in positions, and on which axes. `prompt`: the
  /// tokens before the frames, which are the same for all windows.
  CameraStream(kv::Book& book, const model::ModelConfig& model, std::span<const std::int32_t> prompt,
               RefreshPolicyPtr policy);

  /// The next patch; how manieth it is. It may be of another size than those before it, but no window shows
  /// both. `captured`: when its last frame was, for the sink.
  std::int64_t append(model::VisualTokensPtr patch,
                      std::optional<base::Clock::WallTime> captured = std::nullopt);
  /// Begins, in place of `append` and under a policy that keeps keys, with what is remembered, or goes on
  /// with it where the keys of all its patches are there: all of it is as if it had been computed, as soon as
  /// somebody has written the keys and values of those that have some into their `slots`. Those of the others
  /// the policy has to choose, with each window. Takes pages from the claim. Once what it keeps was given
  /// back, a window of patches without embeddings cannot be placed. Throws std::invalid_argument for no
  /// patches, for times that descend or that no position can tell, and for patches with neither keys nor
  /// embeddings: nothing has changed then.
  void restore(std::span<const RememberedPatch> patches, kv::Book::Claim& claim);
  /// Whether the keys of all its patches are there, so that it may go on with more.
  bool can_restore() const { return policy_->keeps_keys() && keyed_.last == patches().last; }
  /// The slots of all its tokens whose keys are there, oldest first. Until it changes.
  std::span<const std::int32_t> slots() const { return keys_.slots(); }
  /// Forgets the patches before this one.
  void slide(std::int64_t first, Leaving why = Leaving::slid);

  /// The patches that are there.
  PatchRange patches() const { return {first_, first_ + static_cast<std::int64_t>(patches_.size())}; }
  /// Of a patch of them.
  const model::VisualTokens& patch(std::int64_t number) const { return *at(number).tokens; }
  std::int64_t visual_tokens(const PatchRange& range) const;

  /// Pages that placing a window takes now. Throws std::invalid_argument for patches that are not there, for
  /// patches of several sizes, and for none.
  std::int64_t pages_for(const PatchRange& range) const;
  /// Pages that placing a window takes at most, when nothing of it is kept.
  std::int64_t most_pages_for(const PatchRange& range) const;
  /// Gives it a place. One window at a time: `computed` or `discard` follows, or nothing, if it is given up
  /// while it has a `probe`. Throws as `pages_for` does, and std::invalid_argument if its positions reach too
  /// far: nothing has changed then.
  PlacedWindow place(const PatchRange& range, kv::Book::Claim& claim);
  /// Completes the place of a window that has a `probe`: of the tokens that are kept, as many as
  /// `tokens.refreshed` says are computed anew, those whose keys are farthest. `distances`: one a token that
  /// is kept. The claim is what `place` has left of `pages_for`. Its `copies` are to be made before its rows.
  void choose(PlacedWindow& window, std::span<const float> distances, kv::Book::Claim& claim);

  // A window whose last patches are still to come can have its place before they are there, and grow with
  // them; but under a policy that keeps keys, where one that is asked has few rows anyway.
  bool can_grow() const { return !policy_->keeps_keys(); }
  /// Pages that `grow` takes now. Throws as `pages_for` does.
  std::int64_t pages_to_grow(const PlacedWindow& window, std::int64_t last) const;
  /// Adds the patches up to `last`, which is not before those that it has. Rows that were computed stay.
  /// Throws as `place` does; the window is of no use then.
  void grow(PlacedWindow& window, std::int64_t last, kv::Book::Claim& claim) const;

  /// All rows of the window that was placed last have been computed.
  void computed(const PlacedWindow& window);

  /// Goes on by another policy; what it keeps is given back. Not between `place` and `computed`.
  void follow(RefreshPolicyPtr policy);

  /// Where its keys go from now on when they leave it, under this name and number; null: nowhere.
  void leave_to(std::shared_ptr<PageSink> sink, std::string camera, std::uint64_t run);

  /// Pages that it may keep, and that a window's visual tokens may take; nothing: any number.
  void set_limit(std::optional<std::int64_t> pages);
  /// Of these patches, which are there, the newest ones whose tokens the limit has room for: at least the
  /// last.
  PatchRange within_limit(const PatchRange& range) const;
  /// Visual tokens that a window may have by the limit; nothing: any number.
  std::optional<std::int64_t> most_tokens() const;

  /// Tells the book what it keeps, and gives all of it back if it must not: what begins later than a window
  /// is of no use to it. Not between `place` and `computed`.
  void keep();
  /// Gives back what it keeps between windows; what is needed again is computed again. Not between `place`
  /// and `computed`.
  void evict(Leaving why = Leaving::evicted);
  /// The same, of a window that was placed and is not computed to its end: nothing of it is anybody's.
  void discard();
  /// Offers the sink the patches that are there, and none of them goes: those whose keys are there, which are
  /// left out while a window's policy has some of them computed anew; under a policy that keeps no keys, all
  /// that were never offered.
  void show(bool is_computed_anew = false);
  /// Pages that it keeps for later windows.
  bool keeps_pages() const { return keys_.size() > 0; }
  /// Those of them that nobody else sees.
  std::int64_t evictable_pages() const { return keys_.own_pages(); }

 private:
  struct Patch {
    model::VisualTokensPtr tokens;
    std::optional<base::Clock::WallTime> captured;
    /// Positions since the stream began.
    std::int64_t time = 0;
    /// Windows since all of it was computed.
    std::int64_t windows = 0;
  };
  const Patch& at(std::int64_t number) const { return patches_[static_cast<std::size_t>(number - first_)]; }
  void check(const PatchRange& range) const;
  /// Offers these patches: with their keys, of which the first has the oldest; or, without, those of them
  /// that were never offered.
  void offer(const PatchRange& patches, Leaving why, bool with_keys);
  /// Whether keys of the stream's pages serve the window at all.
  bool continues(const PatchRange& range) const;
  /// Which of the tokens of these patches, whose keys are there, the policy computes anew: counted from their
  /// first. Where it looks at keys, `ranked` says how many, and if these are neither none nor all, this
  /// nothing.
  std::vector<kv::TokenRange> refreshed(const PatchRange& kept) const;
  /// How many tokens of these patches are chosen by their keys: none where that takes no look at them.
  std::int64_t ranked(const PatchRange& kept) const;
  /// The last part of `place`: the rows of these tokens, counted from the first that is kept, and of what is
  /// not kept.
  void complete(PlacedWindow& window, std::span<const kv::TokenRange> anew, kv::Book::Claim& claim);
  /// The same, counted from the first token that has keys.
  std::vector<kv::TokenRange> among_keys(std::span<const kv::TokenRange> refreshed,
                                         const PatchRange& kept) const;
  /// Adds the rows of these tokens, which are counted from the window's first visual one.
  void add_rows(const PlacedWindow& window, const kv::TokenRange& tokens, std::vector<RowRun>& to) const;
  /// Positions of the prompt and of a window's patches, and of what follows.
  void lay_out(PlacedWindow& window, std::int64_t origin) const;

  kv::Book& book_;
  model::VisionConfig vision_;
  model::TimeAxes time_axes_;
  std::vector<std::int32_t> prompt_;
  RefreshPolicyPtr policy_;
  std::int64_t first_ = 0;
  std::deque<Patch> patches_;
  /// Of the patches [keyed_.first, keyed_.last).
  kv::View keys_;
  PatchRange keyed_;
  /// Of what `keys_` keeps between windows.
  kv::Book::Account account_;
  std::shared_ptr<PageSink> sink_;
  /// For the sink.
  std::string camera_;
  std::uint64_t run_ = 0;
  /// Patches before this one were offered.
  std::int64_t offered_ = 0;
};

}  // namespace vigil::stream
