// How a camera prunes of which pruning costs more than it may.
#pragma once

#include "config/settings.h"

namespace vigil::actors {

/// A step less: more of what changed in the stream, then all of every frame, then nothing reused either.
inline config::PruningSettings pruned_less(config::PruningSettings pruning, int steps) {
  using config::Pruning;
  for (; steps > 0; --steps) {
    if (pruning.policy == Pruning::changes) {
      pruning.policy = Pruning::scene;
    } else if (pruning.policy != Pruning::none) {
      pruning.policy = Pruning::none;
    } else {
      pruning.refresh = config::Refresh::all;
    }
  }
  return pruning;
}

/// So many steps come to the end, whatever the settings.
inline constexpr int kMostLess = 3;

/// Whether there is nothing to do less of: all of each window is computed.
inline bool computes_all(const config::PruningSettings& pruning) {
  return pruning.policy == config::Pruning::none && pruning.refresh == config::Refresh::all;
}

}  // namespace vigil::actors
