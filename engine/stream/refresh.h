// Which keys of a camera's window are computed anew when it is asked.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace vigil::stream {

/// A policy decides it a patch at a time; what has no keys yet is computed whatever it says. Immutable,
/// thread-safe.
class RefreshPolicy {
 public:
  virtual ~RefreshPolicy() = default;

  /// Whether keys stay from one window to the next. If not, every window is computed whole, at the origin, as
  /// if there had been none before it; if so, visual tokens keep their place in the stream, and the texts
  /// around them are placed where the window is.
  virtual bool keeps_keys() const = 0;

  /// A patch of the window whose keys are there.
  struct Kept {
    /// Counted over the stream.
    std::int64_t patch = 0;
    /// Windows that were asked since it was last computed.
    std::int64_t windows = 0;
  };
  /// Whether to compute it anew.
  virtual bool refreshes(const Kept& kept) const = 0;
};
using RefreshPolicyPtr = std::shared_ptr<const RefreshPolicy>;

/// "all": every window from its first token, the yardstick of every policy that saves work; "none": what was
/// computed once stays as long as its window does. Throws std::invalid_argument for another name.
RefreshPolicyPtr make_refresh(std::string_view name);

}  // namespace vigil::stream
