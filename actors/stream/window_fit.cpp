#include "actors/stream/window_fit.h"

#include <algorithm>
#include <cstdint>

#include "base/duration.h"

namespace vigil::actors {

std::optional<std::string> WindowFit::check(const VisualPatch& patch, const WatchPtr& watch,
                                            const std::vector<stream::CompiledQuestionPtr>& questions) {
  const Seen seen{watch, patch.tokens->kept.height(), patch.tokens->kept.width()};
  Seen& last = seen_[watch->name];
  if (last == seen) return std::nullopt;
  last = seen;

  const base::Duration length = watch->window.length;
  const std::int64_t patches = patches_in(*watch, length, frames_per_patch_);
  const std::int64_t picture = patch.tokens->kept.cells();
  std::int64_t tokens = patches * picture;
  // A window that a budget shortens has a patch at least.
  if (desk_.is_open(watch->name))
    if (const auto most = desk_.stream(watch->name).most_tokens())
      tokens = std::min(tokens, std::max(*most, picture));
  const std::int64_t needed = desk_.pages_for(tokens, questions);
  if (needed <= desk_.pages()) return std::string();
  const std::int64_t page_tokens = desk_.tokens() / desk_.pages();
  return "a window of " + base::format_duration(length) + " needs " + std::to_string(needed * page_tokens) +
         " tokens of KV cache, there is room for " + std::to_string(desk_.tokens()) +
         ": windows of full length will not be answered; raise engine.kv_tokens, or shorten the window";
}

}  // namespace vigil::actors
