#include "actors/stream/window_budget.h"

#include <algorithm>
#include <cmath>

#include "config/values/byte_size.h"

namespace vigil::actors {

double WindowBudget::share_of(const Load& load) {
  constexpr std::int64_t kWhole = 2;
  if (!load.budget || load.patches <= kWhole || load.picture <= 0) return 1;
  const auto left = static_cast<double>(*load.budget - kWhole * load.picture);
  return std::clamp(left / static_cast<double>(load.picture * (load.patches - kWhole)), kLeastShare, 1.0);
}

WindowBudget::Verdict WindowBudget::hear(const Load& load) {
  const bool has_budget = load.budget.has_value();
  // A whole picture may come at any time; but where all of them are, there is room for a window.
  const bool calls_for_pruning = has_budget && load.can_prune && load.patches * load.picture > *load.budget &&
                                 load.tokens + load.picture > *load.budget;
  const bool calls_for_less = has_budget && load.forgotten > 0;
  since_pruned_ = calls_for_pruning ? 0 : since_pruned_ + 1;
  since_shortened_ = calls_for_less ? 0 : since_shortened_ + 1;

  Level level = level_;
  if (calls_for_pruning) level = std::max(level, Level::pruned);
  if (calls_for_less) level = Level::shortened;
  const bool is_over = std::min(since_pruned_, since_shortened_) >= load.patches;
  if (!has_budget || is_over) level = Level::within;

  Verdict verdict;
  verdict.left = level_;
  if (level != level_) verdict.entered = level;
  level_ = level;
  if (level != Level::within && load.can_prune) verdict.share = share_of(load);
  return verdict;
}

std::string budget_line(WindowBudget::Level entered, const WindowBudget::Load& load, std::uint64_t bytes) {
  if (!load.budget) return "its windows have no budget of keys and values any more";
  const std::string budget = "its budget of " + config::format_byte_size({bytes}) + " (" +
                             std::to_string(*load.budget) + " visual tokens)";
  switch (entered) {
    case WindowBudget::Level::within:
      return "its windows fit " + budget + " again";
    case WindowBudget::Level::pruned:
      return "its windows of " + std::to_string(load.tokens) + " visual tokens come near " + budget +
             ": at most " + std::to_string(std::lround(100 * WindowBudget::share_of(load))) +
             " % of a patch's groups are sent";
    case WindowBudget::Level::shortened:
      return "its windows do not fit " + budget +
             ": they forget their oldest frames; raise pruning.kv_budget, " +
             (load.can_prune ? "" : "prune it by `scene`, ") + "or shorten the window";
  }
  return {};
}

}  // namespace vigil::actors
