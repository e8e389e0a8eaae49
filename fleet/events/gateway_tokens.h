// What tells one time of serving of a gateway from another, and which was later.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"

namespace vigil::fleet {

/// Each token has 20 digits, a number that is at least the time of day in milliseconds, and a name that
/// nobody else gives: in the order of texts they come behind those of runs before this one, as far as the
/// time of day tells. Not thread-safe.
class GatewayTokens {
 public:
  /// `name`: another one with each call, 16 hexadecimal digits. The clock has to outlive it.
  GatewayTokens(const base::Clock& clock, std::function<std::string()> name);

  /// Without spaces if `after` has none; behind `after`, whoever made that and whatever became of it, and
  /// behind all before it.
  std::string next(const std::string& after);

 private:
  const base::Clock& clock_;
  std::function<std::string()> name_;
  std::uint64_t number_ = 0;
  std::string last_;
};

}  // namespace vigil::fleet
