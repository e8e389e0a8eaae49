#include "actors/stream/stream_room.h"

#include <utility>

namespace vigil::actors {

std::optional<std::string> StreamRoom::hear(const std::string& camera, std::int64_t tokens,
                                            std::int64_t most) {
  wanted_ += tokens - std::exchange(cameras_[camera], tokens);
  if (wanted_ <= most - most / 10) is_told_ = false;
  if (wanted_ <= most || std::exchange(is_told_, true)) return std::nullopt;
  return "with it, streams want to keep " + std::to_string(wanted_) + " tokens between windows, of " +
         std::to_string(cameras_.size()) + (cameras_.size() == 1 ? " camera" : " cameras") +
         ", and there is room for " + std::to_string(most) +
         " beside texts: some windows will be computed whole; raise engine.kv_tokens, or set "
         "pruning.kv_budget";
}

void StreamRoom::forget(const std::string& camera) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return;
  wanted_ -= entry->second;
  cameras_.erase(entry);
}

}  // namespace vigil::actors
