#include "engine/kv/view.h"

#include <algorithm>
#include <utility>

namespace vigil::kv {

View::View(View&& other) noexcept
    : book_(other.book_), parts_(std::exchange(other.parts_, {})), slots_(std::exchange(other.slots_, {})) {}

View& View::operator=(View&& other) noexcept {
  if (this != &other) {
    clear();
    book_ = other.book_;
    parts_ = std::exchange(other.parts_, {});
    slots_ = std::exchange(other.slots_, {});
  }
  return *this;
}

std::int64_t View::room_in_last() const {
  return !parts_.empty() && parts_.back().fills ? book_->page_tokens() - parts_.back().end : 0;
}

std::int64_t View::pages_to_append(std::int64_t count) const {
  return book_->pages_for(std::max<std::int64_t>(0, count - room_in_last()));
}

bool View::append(std::int64_t count) {
  std::vector<PageId> fresh;
  if (!book_->allocate(pages_to_append(count), fresh)) return false;
  fill(count, fresh);
  return true;
}

void View::append(std::int64_t count, Book::Claim& claim) {
  std::vector<PageId> fresh;
  claim.allocate(pages_to_append(count), fresh);
  fill(count, fresh);
}

void View::fill(std::int64_t count, std::span<const PageId> fresh) {
  const std::int32_t page_tokens = book_->page_tokens();
  const bool goes_on = room_in_last() > 0 && count > 0;
  for (const PageId page : fresh) parts_.push_back({page, 0, 0, true});
  auto part = parts_.end() - static_cast<std::ptrdiff_t>(fresh.size());
  if (goes_on) --part;
  for (std::int64_t left = count; left > 0; ++part) {
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(left, page_tokens - part->end));
    for (std::int32_t i = 0; i < taken; ++i) slots_.push_back(part->page * page_tokens + part->end + i);
    part->end += taken;
    left -= taken;
  }
}

void View::extend(const View& other, std::int64_t first, std::int64_t count) {
  std::int64_t at = 0;
  for (const Part& part : other.parts_) {
    const std::int64_t size = part.end - part.begin;
    const std::int64_t begin = std::max(first, at);
    const std::int64_t end = std::min(first + count, at + size);
    if (begin < end) {
      book_->retain(part.page);
      parts_.push_back({part.page, part.begin + static_cast<std::int32_t>(begin - at),
                        part.begin + static_cast<std::int32_t>(end - at), false});
    }
    at += size;
  }
  const auto from = other.slots_.begin() + first;
  slots_.insert(slots_.end(), from, from + count);
}

View View::part(std::int64_t first, std::int64_t count) const {
  View copy(*book_);
  copy.extend(*this, first, count);
  return copy;
}

View View::fork() const {
  return part(0, size());
}

template <typename Parts, typename Visit>
void View::visit_shared(Parts& parts, const Book& book, std::span<const TokenRange> ranges, Visit visit) {
  auto range = ranges.begin();
  std::int64_t end = 0;
  for (auto& part : parts) {
    const std::int64_t begin = end;
    end += part.end - part.begin;
    while (range != ranges.end() && range->first + range->count <= begin) ++range;
    std::int64_t covered = 0;
    for (auto each = range; each != ranges.end() && each->first < end; ++each)
      covered += std::min(end, each->first + each->count) - std::max(begin, each->first);
    if (covered > 0 && book.references(part.page) > 1) visit(part, begin, covered);
  }
}

std::int64_t View::pages_to_own(std::span<const TokenRange> ranges) const {
  std::int64_t pages = 0;
  visit_shared(parts_, *book_, ranges, [&](const Part&, std::int64_t, std::int64_t) { ++pages; });
  return pages;
}

void View::own(std::span<const TokenRange> ranges, Book::Claim& claim, std::vector<PageCopy>& copies) {
  std::vector<PageId> fresh;
  claim.allocate(pages_to_own(ranges), fresh);
  auto next = fresh.begin();
  const std::int32_t page_tokens = book_->page_tokens();
  visit_shared(parts_, *book_, ranges, [&](Part& part, std::int64_t begin, std::int64_t covered) {
    const PageId page = *next++;
    const std::int32_t tokens = part.end - part.begin;
    if (covered < tokens) copies.push_back({part.page, page});
    book_->release(part.page);
    part.page = page;
    for (std::int32_t i = 0; i < tokens; ++i)
      slots_[static_cast<std::size_t>(begin + i)] = page * page_tokens + part.begin + i;
  });
}

std::int64_t View::own_pages() const {
  std::vector<PageId> pages;
  pages.reserve(parts_.size());
  for (const Part& part : parts_) pages.push_back(part.page);
  return book_->count_single(pages);
}

void View::drop_front(std::int64_t count) {
  std::int64_t left = std::min(count, size());
  slots_.erase(slots_.begin(), slots_.begin() + left);
  while (left > 0) {
    Part& first = parts_.front();
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(left, first.end - first.begin));
    first.begin += taken;
    left -= taken;
    if (first.begin == first.end) {
      book_->release(first.page);
      parts_.pop_front();
    }
  }
}

void View::drop_back(std::int64_t count, Book::Claim& claim) {
  if (count < 0 || count > size() || !claim.is_of(*book_))
    throw std::logic_error("a view forgets more than it has, or into another book");
  std::int64_t left = count;
  for (auto part = parts_.rbegin(); left > 0; ++part) {
    if (!part->fills || book_->references(part->page) > 1)
      throw std::logic_error("a view forgets what it has not appended, or others see");
    left -= std::min<std::int64_t>(left, part->end - part->begin);
  }
  slots_.resize(slots_.size() - static_cast<std::size_t>(count));
  for (left = count; left > 0;) {
    Part& last = parts_.back();
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(left, last.end - last.begin));
    last.end -= taken;
    left -= taken;
    if (last.begin < last.end) continue;
    claim.put_back(last.page);
    parts_.pop_back();
  }
}

void View::clear() {
  for (const Part& part : parts_) book_->release(part.page);
  parts_.clear();
  slots_.clear();
}

}  // namespace vigil::kv
