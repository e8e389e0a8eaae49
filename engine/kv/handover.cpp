#include "engine/kv/handover.h"

namespace vigil::kv {

Handover::~Handover() {
  for (const auto& [from, to] : shared_) to_->release(to);
}

std::optional<View> Handover::take(const View& view, std::vector<PageCopy>& copies) {
  std::vector<PageId> fresh;
  std::int64_t missing = 0;
  for (const View::Part& part : view.parts_)
    if (part.fills || !shared_.contains(part.page)) ++missing;
  if (!to_->allocate(missing, fresh)) return std::nullopt;

  View taken(*to_);
  auto next = fresh.begin();
  const std::int32_t page_tokens = to_->page_tokens();
  for (const View::Part& part : view.parts_) {
    PageId page = 0;
    if (part.fills) {
      page = *next++;
      copies.push_back({part.page, page});
    } else {
      const auto [known, first] = shared_.try_emplace(part.page, next != fresh.end() ? *next : 0);
      page = known->second;
      if (first) copies.push_back({part.page, *next++});
      to_->retain(page);
    }
    taken.parts_.push_back({page, part.begin, part.end, part.fills});
    for (std::int32_t i = part.begin; i < part.end; ++i) taken.slots_.push_back(page * page_tokens + i);
  }
  return taken;
}

}  // namespace vigil::kv
