#include "engine/kv/page_pool.h"

#include <cassert>
#include <limits>
#include <stdexcept>

namespace vigil::kv {
namespace {

std::size_t pool_bytes(const PageLayout& layout, std::int64_t pages) {
  if (layout.layers <= 0 || layout.kv_heads <= 0 || layout.head_dim <= 0 || layout.page_tokens <= 0 ||
      pages <= 0)
    throw std::invalid_argument("a page pool needs at least one page, layer, head and token");
  if (pages > std::numeric_limits<std::int32_t>::max() / layout.page_tokens)
    throw std::invalid_argument("a page pool of this size has more slots than 32 bits can name");
  return static_cast<std::size_t>(layout.page_bytes()) * static_cast<std::size_t>(pages);
}

}  // namespace

PagePool::PagePool(const kernels::Stream& stream, const PageLayout& layout, std::int64_t pages)
    : layout_(layout),
      memory_(stream, pool_bytes(layout, pages)),
      references_(static_cast<std::size_t>(pages), 0) {
  free_.reserve(references_.size());
  for (std::int64_t page = pages - 1; page >= 0; --page) free_.push_back(static_cast<PageId>(page));
}

std::int64_t PagePool::free_pages() const {
  const std::lock_guard lock(mutex_);
  return static_cast<std::int64_t>(free_.size());
}

bool PagePool::allocate(std::int64_t count, std::vector<PageId>& to) {
  const std::lock_guard lock(mutex_);
  if (count > static_cast<std::int64_t>(free_.size())) return false;
  for (std::int64_t i = 0; i < count; ++i) {
    to.push_back(free_.back());
    references_[static_cast<std::size_t>(free_.back())] = 1;
    free_.pop_back();
  }
  return true;
}

void PagePool::retain(PageId page) {
  const std::lock_guard lock(mutex_);
  assert(references_[static_cast<std::size_t>(page)] > 0);
  ++references_[static_cast<std::size_t>(page)];
}

void PagePool::release(PageId page) {
  const std::lock_guard lock(mutex_);
  std::int32_t& references = references_[static_cast<std::size_t>(page)];
  assert(references > 0);
  if (--references == 0) free_.push_back(page);
}

kernels::KvLayer PagePool::layer(int layer) const {
  const std::int64_t half = std::int64_t{1} * layout_.kv_heads * layout_.page_tokens * layout_.head_dim;
  return {
      .base = memory_.data() + static_cast<std::size_t>(2 * half * layer) * kernels::size_of(layout_.dtype),
      .dtype = layout_.dtype,
      .pages = pages(),
      .page_stride = layout_.page_elements(),
      .value_offset = half,
      .page_tokens = layout_.page_tokens,
      .kv_heads = layout_.kv_heads,
      .head_dim = layout_.head_dim};
}

}  // namespace vigil::kv
