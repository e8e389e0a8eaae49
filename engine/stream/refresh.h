// Which keys of a camera's window are computed anew when it is asked.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv/view.h"

namespace vigil::stream {

/// A patch of a window whose keys are there.
struct KeptPatch {
  /// Counted over the stream.
  std::int64_t number = 0;
  std::int64_t tokens = 0;
  /// Windows that were asked since all of it was last computed.
  std::int64_t windows = 0;
  /// It shows an I-frame.
  bool intra = false;
};

/// What was computed when older patches were still there saw them: that alone makes a key differ from what it
/// would be anew, since no token sees what comes after it. What has no keys yet is computed whatever a policy
/// says. Immutable, thread-safe.
class RefreshPolicy {
 public:
  virtual ~RefreshPolicy() = default;

  /// Whether keys stay from one window to the next. If not, every window is computed whole, at the origin, as
  /// if there had been none before it; if so, visual tokens keep their place in the stream, and the texts
  /// around them are placed where the window is.
  virtual bool keeps_keys() const = 0;

  /// Which tokens to compute anew: ranges counted from the first token of the first of these patches, which
  /// follow one another; ascending, apart from each other and not empty, appended to `to`. The same each time
  /// for the same patches.
  virtual void choose(std::span<const KeptPatch> kept, std::vector<kv::TokenRange>& to) const = 0;

  /// Of a policy that looks at keys, not at patches: how many of so many tokens are computed anew, from none
  /// to all. They are those whose keys differ most from what they would be (`farthest`), which takes a pass
  /// of its own unless it is none or all. Nothing: `choose` says which.
  virtual std::optional<std::int64_t> ranked(std::int64_t /*tokens*/) const { return std::nullopt; }
};
using RefreshPolicyPtr = std::shared_ptr<const RefreshPolicy>;

/// The `count` tokens that are farthest (run::Passes::key_distances), of equal ones the older; what is no
/// number is farther than all. As ranges like those of `RefreshPolicy::choose`.
std::vector<kv::TokenRange> farthest(std::span<const float> distances, std::int64_t count);

/// Computes all tokens of these patches anew, by their numbers, which ascend: of a stream that begins with
/// what is remembered, those whose keys are not.
RefreshPolicyPtr computes_those(std::vector<std::int64_t> patches);

struct RefreshOptions {
  /// Of the tokens whose keys are there, those that are computed anew, from 0 to 1.
  double share = 0.15;
};

/// The names that `make_refresh` knows.
inline constexpr std::array<std::string_view, 6> kRefreshPolicies{"all",     "none",     "codecsight",
                                                                  "first-k", "random-k", "topk"};

/// "all": every window from its first token, the yardstick of every policy that saves work; "none": what was
/// computed once stays as long as its window does; "codecsight": patches with an I-frame, and the first of
/// the window (section 3.4.1 of CodecSight); "first-k": the oldest tokens, which have seen most of what has
/// left; "random-k": any, as many (the control); "topk": those whose keys at the second layer differ most
/// from what they would be in this window (CacheBlend). Throws std::invalid_argument for another name and a
/// share that is none.
RefreshPolicyPtr make_refresh(std::string_view name, const RefreshOptions& options = {});

}  // namespace vigil::stream
