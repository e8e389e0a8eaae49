#include "actors/prefill/window_fit.h"

#include <cstddef>
#include <cstdint>

#include "actors/prefill/ask.h"
#include "base/duration.h"

namespace vigil::actors {

std::optional<std::string> WindowFit::check(const VisualPatchPtr& patch, const WatchPtr& watch) {
  const Seen seen{watch, patch->tokens->grid_height, patch->tokens->grid_width};
  Seen& last = seen_[watch->name];
  if (last == seen) return std::nullopt;
  last = seen;

  // All patches of a camera have as many tokens, and the rules add theirs: a window of copies takes the room
  // of a real one.
  const base::Duration length = watch->window.length;
  DueWindow longest;
  longest.watch = watch;
  longest.patches.assign(static_cast<std::size_t>(patches_in(*watch, length, frames_per_patch_)), patch);
  const std::int64_t needed = room_for(prefiller_, longest);
  const std::int64_t room = prefiller_.room();
  if (needed <= room) return std::string();
  return "a window of " + base::format_duration(length) + " needs " + std::to_string(needed) +
         " tokens of KV cache, there is room for " + std::to_string(room) +
         ": it will not be answered; raise engine.kv_tokens, or shorten the window";
}

}  // namespace vigil::actors
