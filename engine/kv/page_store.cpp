#include "engine/kv/page_store.h"

#include <limits>
#include <stdexcept>

namespace vigil::kv {
namespace {

std::size_t store_bytes(const PageLayout& layout, std::int64_t pages) {
  if (layout.layers <= 0 || layout.kv_heads <= 0 || layout.head_dim <= 0 || layout.page_tokens <= 0 ||
      pages <= 0)
    throw std::invalid_argument("a page pool needs at least one page, layer, head and token");
  if (pages > std::numeric_limits<std::int32_t>::max() / layout.page_tokens)
    throw std::invalid_argument("a page pool of this size has more slots than 32 bits can name");
  return static_cast<std::size_t>(layout.page_bytes()) * static_cast<std::size_t>(pages);
}

}  // namespace

PageStore::PageStore(const kernels::Stream& stream, const PageLayout& layout, std::int64_t pages)
    : layout_(layout), pages_(pages), memory_(stream, store_bytes(layout, pages)) {}

kernels::KvLayer PageStore::layer(int layer) const {
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
