#include "engine/kv/carried_view.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <stdexcept>

namespace vigil::kv {

std::int64_t CarriedView::tokens() const {
  std::int64_t all = 0;
  for (const Part& part : parts) all += part.end - part.begin;
  return all;
}

bool CarriedView::is_sound(int page_tokens) const {
  // Of each page, how often it is there.
  if (pages < 1 || static_cast<std::size_t>(pages) > parts.size()) return false;
  std::vector<std::int32_t> uses(static_cast<std::size_t>(pages));
  for (const Part& part : parts) {
    if (part.page < 0 || part.page >= pages || part.begin < 0 || part.begin >= part.end ||
        part.end > page_tokens)
      return false;
    ++uses[static_cast<std::size_t>(part.page)];
    if (part.fills && &part != &parts.back()) return false;
  }
  const Part& last = parts.back();
  if (last.fills && uses[static_cast<std::size_t>(last.page)] > 1) return false;
  return std::find(uses.begin(), uses.end(), 0) == uses.end();
}

std::int64_t CarriedView::pages_to_append(std::int64_t count, int page_tokens) const {
  const std::int64_t room = !parts.empty() && parts.back().fills ? page_tokens - parts.back().end : 0;
  return (std::max<std::int64_t>(0, count - room) + page_tokens - 1) / page_tokens;
}

CarriedView CarriedView::of(const View& view, std::vector<PageId>& pages) {
  CarriedView carried;
  std::map<PageId, std::int32_t> known;
  for (const View::Part& part : view.parts_) {
    const auto [page, is_new] = known.try_emplace(part.page, carried.pages);
    if (is_new) {
      pages.push_back(part.page);
      ++carried.pages;
    }
    // Those before the last one are full.
    const bool fills = part.fills && &part == &view.parts_.back();
    carried.parts.push_back({page->second, part.begin, part.end, fills});
  }
  return carried;
}

View CarriedView::in(Book& book, Book::Claim& claim, std::vector<PageId>& taken) const {
  const std::int32_t page_tokens = book.page_tokens();
  if (!is_sound(page_tokens)) throw std::invalid_argument("these are no pages of a view");
  std::vector<PageId> own;
  claim.allocate(pages, own);
  std::vector<bool> is_held(own.size());
  View view(book);
  for (const Part& part : parts) {
    const auto at = static_cast<std::size_t>(part.page);
    const PageId page = own[at];
    // They come with a reference.
    if (is_held[at]) book.retain(page);
    is_held[at] = true;
    view.parts_.push_back({page, part.begin, part.end, part.fills});
    for (std::int32_t i = part.begin; i < part.end; ++i) view.slots_.push_back(page * page_tokens + i);
  }
  taken.insert(taken.end(), own.begin(), own.end());
  return view;
}

}  // namespace vigil::kv
