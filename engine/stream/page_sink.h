// Where keys and values go that a stream keeps no longer: the seam for further tiers of the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "engine/kv/view.h"
#include "engine/model/language/positions.h"
#include "engine/model/vision/visual_tokens.h"
#include "engine/stream/ids.h"

namespace vigil::stream {

/// slid: no later window shows them; forgotten: the camera's budget is too small for them; evicted: others
/// wanted their room, or the book did not let them be kept; closed: the stream has ended; shown: they stay,
/// and somebody wants to know of them now.
enum class Leaving : std::uint8_t { slid, forgotten, evicted, closed, shown };

constexpr std::array<std::string_view, 5> kLeavingNames{"slid", "forgotten", "evicted", "closed", "shown"};

constexpr std::string_view name_of(Leaving why) {
  return kLeavingNames[static_cast<std::size_t>(why)];
}

/// A patch that leaves: what the stream had of its picture, and where its tokens lie.
struct LeavingPatch {
  /// How manieth of its stream.
  std::int64_t number = 0;
  model::VisualTokensPtr tokens;
  /// Of the first cell of its grid; in the others, height and width count on from there.
  model::Position at;
  /// When its last frame was captured; nothing where nobody said.
  std::optional<base::Clock::WallTime> captured;
};

/// Some tokens of a camera's stream, with their keys and values.
struct LeavingTokens {
  std::string camera;
  Leaving why = Leaving::slid;
  /// Which of the desk's streams it is: none before had this number. Positions of two are not comparable.
  std::uint64_t run = 0;
  /// They follow one another; at least one.
  std::vector<LeavingPatch> patches;
  /// Their tokens, oldest first; without any, nobody kept their keys. As long as it is there, nobody writes
  /// to their slots, and their pages are taken; it may be handed over to another thread, and is over before
  /// its book.
  kv::View view;

  PatchRange range() const { return {patches.front().number, patches.back().number + 1}; }
};

/// Is offered what a stream has computed and keeps no longer, before its pages are free; and what it still
/// keeps, if that is wanted. Only keys that were computed to their end, and are a stream's: windows under a
/// policy that keeps no keys have none. A patch comes again where its keys were computed again, and when it
/// leaves after it was shown.
class PageSink {
 public:
  virtual ~PageSink() = default;

  /// Whether patches whose keys were never offered are of use as well, for what the tower has made of them.
  virtual bool takes_keyless() const { return false; }

  /// Called in the desk's thread; what it takes long for, it does elsewhere, with the view. Passes that wrote
  /// the keys may still be on their way to a device: what reads them there is submitted behind these. What it
  /// holds, the desk has no room for until it lets go; of what stays (`shown`), it lets go before its stream
  /// is asked again, which would write to copies.
  virtual void take(LeavingTokens tokens) noexcept = 0;

  /// The desk has a window that lacks room: what can be let go of is, before others give theirs.
  virtual void let_go() noexcept {}
};

}  // namespace vigil::stream
