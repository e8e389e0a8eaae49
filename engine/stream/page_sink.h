// Where keys and values go that a stream keeps no longer: the seam for further tiers of the cache.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "engine/kv/view.h"
#include "engine/stream/ids.h"

namespace vigil::stream {

/// slid: no later window shows them; forgotten: the camera's budget is too small for them; evicted: others
/// wanted their room, or the book did not let them be kept; closed: the stream has ended.
enum class Leaving : std::uint8_t { slid, forgotten, evicted, closed };

constexpr std::array<std::string_view, 4> kLeavingNames{"slid", "forgotten", "evicted", "closed"};

constexpr std::string_view name_of(Leaving why) {
  return kLeavingNames[static_cast<std::size_t>(why)];
}

/// Some tokens of a camera's stream, with their keys and values.
struct LeavingTokens {
  std::string camera;
  Leaving why = Leaving::slid;
  /// Whole patches, which follow one another.
  PatchRange patches;
  /// Their tokens, oldest first. As long as it is there, nobody writes to their slots, and their pages are
  /// taken; it may be handed over to another thread, and is over before its book.
  kv::View view;
};

/// Is offered what a stream has computed and keeps no longer, before its pages are free. Only what was
/// computed to its end, and is a stream's: windows under a policy that keeps no keys have none.
class PageSink {
 public:
  virtual ~PageSink() = default;

  /// Called in the desk's thread; what it takes long for, it does elsewhere, with the view. Passes that wrote
  /// the keys may still be on their way to a device: what reads them there is submitted behind these. What it
  /// holds, the desk has no room for until it lets go.
  virtual void take(LeavingTokens tokens) noexcept = 0;
};

}  // namespace vigil::stream
