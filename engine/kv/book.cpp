#include "engine/kv/book.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <utility>

namespace vigil::kv {

Book::Book(std::int64_t pages, int page_tokens) : page_tokens_(page_tokens) {
  if (pages < 0 || page_tokens <= 0) throw std::invalid_argument("a book needs pages of at least one token");
  references_.resize(static_cast<std::size_t>(pages), 0);
  free_.reserve(references_.size());
  for (std::int64_t page = pages - 1; page >= 0; --page) free_.push_back(static_cast<PageId>(page));
}

std::int64_t Book::free_pages() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(free_.size()) - promised_;
}

double Book::usage() const {
  return pages() == 0 ? 0 : 1 - static_cast<double>(free_pages()) / static_cast<double>(pages());
}

std::optional<Book::Claim> Book::claim(std::int64_t pages) {
  const std::lock_guard lock(mutex_);
  if (pages > static_cast<std::int64_t>(free_.size()) - promised_) {
    ++events_.refused;
    return std::nullopt;
  }
  promised_ += pages;
  return Claim(*this, pages);
}

void Book::set_reserve(std::int64_t pages) {
  if (pages < 0) throw std::invalid_argument("a reserve is no negative number of pages");
  const std::lock_guard lock(mutex_);
  reserve_ = pages;
}

std::int64_t Book::reserve() const {
  const std::lock_guard lock(mutex_);
  return reserve_;
}

std::int64_t Book::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

bool Book::allocate(std::int64_t count, std::vector<PageId>& to) {
  const std::lock_guard lock(mutex_);
  if (count > static_cast<std::int64_t>(free_.size()) - promised_) return false;
  take(count, to);
  return true;
}

void Book::take(std::int64_t count, std::vector<PageId>& to) {
  for (std::int64_t i = 0; i < count; ++i) {
    to.push_back(free_.back());
    references_[static_cast<std::size_t>(free_.back())] = 1;
    free_.pop_back();
  }
  events_.taken += static_cast<std::uint64_t>(count);
}

void Book::retain(PageId page) {
  const std::lock_guard lock(mutex_);
  assert(references_[static_cast<std::size_t>(page)] > 0);
  ++references_[static_cast<std::size_t>(page)];
}

void Book::release(PageId page) {
  const std::lock_guard lock(mutex_);
  std::int32_t& references = references_[static_cast<std::size_t>(page)];
  assert(references > 0);
  if (--references > 0) return;
  free_.push_back(page);
  ++events_.freed;
}

std::int32_t Book::references(PageId page) const {
  const std::lock_guard lock(mutex_);
  return references_[static_cast<std::size_t>(page)];
}

std::int64_t Book::count_single(std::span<const PageId> pages) const {
  const std::lock_guard lock(mutex_);
  return std::count_if(pages.begin(), pages.end(),
                       [&](PageId page) { return references_[static_cast<std::size_t>(page)] == 1; });
}

Book::Events Book::events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

Book::Account::Account(Account&& other) noexcept
    : book_(other.book_), limit_(other.limit_), kept_(std::exchange(other.kept_, 0)) {}

bool Book::Account::keep(std::int64_t pages) {
  const std::lock_guard lock(book_->mutex_);
  const std::int64_t more = pages - kept_;
  // What all keep may be in the reserve already, if that has grown: then less is better than as much.
  const bool is_reserved = more > 0 && more > book_->pages() - book_->reserve_ - book_->kept_;
  if (pages < 0 || (pages > 0 && pages > limit_) || is_reserved) {
    ++book_->events_.not_kept;
    return false;
  }
  kept_ = pages;
  book_->kept_ += more;
  return true;
}

Book::Claim::Claim(Claim&& other) noexcept
    : book_(std::exchange(other.book_, nullptr)), left_(std::exchange(other.left_, 0)) {}

Book::Claim& Book::Claim::operator=(Claim&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  book_ = std::exchange(other.book_, nullptr);
  left_ = std::exchange(other.left_, 0);
  return *this;
}

void Book::Claim::allocate(std::int64_t count, std::vector<PageId>& to) {
  if (count > left_) throw std::logic_error("the KV cache has less room than was counted");
  if (count == 0) return;
  const std::lock_guard lock(book_->mutex_);
  book_->take(count, to);
  book_->promised_ -= count;
  left_ -= count;
}

Book::Claim Book::Claim::split(std::int64_t count) {
  if (count > left_) throw std::logic_error("the KV cache has less room than was counted");
  left_ -= count;
  Claim part;
  part.book_ = book_;
  part.left_ = count;
  return part;
}

void Book::Claim::put_back(PageId page) {
  if (book_ == nullptr) throw std::logic_error("a page is put back to no book");
  const std::lock_guard lock(book_->mutex_);
  std::int32_t& references = book_->references_[static_cast<std::size_t>(page)];
  if (references != 1) throw std::logic_error("a page is put back that others have");
  references = 0;
  book_->free_.push_back(page);
  ++book_->events_.freed;
  ++book_->promised_;
  ++left_;
}

void Book::Claim::give_back() {
  if (left_ == 0) return;
  const std::lock_guard lock(book_->mutex_);
  book_->promised_ -= std::exchange(left_, 0);
}

}  // namespace vigil::kv
