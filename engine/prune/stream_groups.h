// Which groups of a camera its stream keeps, beside those that changed.
#pragma once

#include <cstdint>
#include <vector>

#include "base/grid_mask.h"

namespace vigil::prune {

/// What moved and stopped goes on being shown for a few patches, and every few patches all of the picture is:
/// a model that never sees what stands still takes it for gone. Tokens of what did not change cost the vision
/// tower nothing. Not thread-safe.
class StreamGroups {
 public:
  /// What is kept of the next patch, of which these groups changed. All of them: the whole picture was shown.
  base::GridMask keep(const base::GridMask& changed);

 private:
  /// Of each group the patches since it changed last.
  std::vector<std::int32_t> quiet_;
  /// Patches since all of a picture was kept.
  std::int32_t since_whole_ = 0;
};

}  // namespace vigil::prune
