#include "engine/kv/view.h"

#include <algorithm>
#include <utility>

namespace vigil::kv {

View::View(View&& other) noexcept
    : pool_(other.pool_), parts_(std::exchange(other.parts_, {})), slots_(std::exchange(other.slots_, {})) {}

View& View::operator=(View&& other) noexcept {
  if (this != &other) {
    clear();
    pool_ = other.pool_;
    parts_ = std::exchange(other.parts_, {});
    slots_ = std::exchange(other.slots_, {});
  }
  return *this;
}

bool View::append(std::int64_t count) {
  const std::int32_t page_tokens = pool_->layout().page_tokens;
  const std::int64_t room = !parts_.empty() && parts_.back().own ? page_tokens - parts_.back().end : 0;
  const std::int64_t pages = std::max<std::int64_t>(0, (count - room + page_tokens - 1) / page_tokens);
  std::vector<PagePool::PageId> fresh;
  if (!pool_->allocate(pages, fresh)) return false;
  for (const PagePool::PageId page : fresh) parts_.push_back({page, 0, 0, true});
  auto part = parts_.end() - static_cast<std::ptrdiff_t>(fresh.size());
  if (room > 0 && count > 0) --part;
  for (std::int64_t left = count; left > 0; ++part) {
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(left, page_tokens - part->end));
    for (std::int32_t i = 0; i < taken; ++i) slots_.push_back(part->page * page_tokens + part->end + i);
    part->end += taken;
    left -= taken;
  }
  return true;
}

void View::truncate(std::int64_t count) {
  for (std::int64_t excess = size() - count; excess > 0;) {
    Part& last = parts_.back();
    const auto taken = static_cast<std::int32_t>(std::min<std::int64_t>(excess, last.end - last.begin));
    last.end -= taken;
    excess -= taken;
    slots_.resize(slots_.size() - static_cast<std::size_t>(taken));
    if (last.end == last.begin) {
      pool_->release(last.page);
      parts_.pop_back();
    }
  }
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
      pool_->release(first.page);
      parts_.pop_front();
    }
  }
}

View View::fork() {
  View copy(*pool_);
  // The rest of a page that is shared from now on belongs to neither: both go on in pages of their own.
  for (Part& part : parts_) {
    part.own = false;
    pool_->retain(part.page);
  }
  copy.parts_ = parts_;
  copy.slots_ = slots_;
  return copy;
}

void View::clear() {
  for (const Part& part : parts_) pool_->release(part.page);
  parts_.clear();
  slots_.clear();
}

}  // namespace vigil::kv
