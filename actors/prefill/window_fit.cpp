#include "actors/prefill/window_fit.h"

#include <cstddef>
#include <cstdint>

#include "actors/prefill/ask.h"
#include "config/duration.h"

namespace vigil::actors {

std::optional<std::string> WindowFit::check(const VisualPatchPtr& patch) {
  const CameraPtr& camera = patch->camera;
  const Seen seen{camera, patch->tokens->grid_height, patch->tokens->grid_width};
  Seen& last = seen_[camera->name];
  if (last == seen) return std::nullopt;
  last = seen;

  // All patches of a camera have as many tokens, and the rules add theirs: a window of copies takes the room
  // of a real one.
  const config::Duration length = camera->stream.window.length;
  DueWindow longest;
  longest.camera = camera;
  longest.patches.assign(static_cast<std::size_t>(patches_in(*camera, length, frames_per_patch_)), patch);
  const std::int64_t needed = room_for(prefiller_, longest);
  const std::int64_t room = prefiller_.room();
  if (needed <= room) return std::string();
  return "a window of " + config::format_duration(length) + " needs " + std::to_string(needed) +
         " tokens of KV cache, there is room for " + std::to_string(room) +
         ": it will not be answered; raise engine.kv_tokens, or shorten the window";
}

}  // namespace vigil::actors
