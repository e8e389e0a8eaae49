// How window memories share what they may take of the host's memory together.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace vigil::stream {

/// Equal shares, and what somebody does not need of his is the others': there is a level, up to which each
/// has what it needs. Not thread-safe.
class MemoryShares {
 public:
  /// Bytes of all; below 0: as 0.
  explicit MemoryShares(std::int64_t budget) : budget_(std::max<std::int64_t>(0, budget)) {}

  /// Who is there now, by what each could use: not below 0.
  void divide(std::vector<std::int64_t> needs);
  /// What nobody of them needs.
  std::int64_t left() const { return left_; }
  /// What one that needs so much may take. Over all of those that were told this is never more than the
  /// budget, and fewer bytes less than there are of them if it is not what they need.
  std::int64_t of(std::int64_t need) const { return std::min(need, level_); }

 private:
  std::int64_t budget_;
  std::int64_t left_ = budget_;
  std::int64_t level_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace vigil::stream
