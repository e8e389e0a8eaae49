#include "engine/kv/page_store.h"

#include <limits>
#include <stdexcept>
#include <string>

namespace vigil::kv {
namespace {

/// What all layers have in common.
kernels::KvLayer shape_of(const PageLayout& layout) {
  return {.dtype = layout.dtype,
          .page_stride = layout.page_elements(),
          .value_offset = std::int64_t{1} * layout.kv_heads * layout.page_tokens * layout.head_dim,
          .page_tokens = layout.page_tokens,
          .kv_heads = layout.kv_heads,
          .head_dim = layout.head_dim};
}

std::size_t store_bytes(const PageLayout& layout, std::int64_t pages) {
  if (layout.layers <= 0 || layout.kv_heads <= 0 || layout.head_dim <= 0 || layout.page_tokens <= 0 ||
      pages <= 0)
    throw std::invalid_argument("a cache needs at least one page, layer, head and token");
  if (pages > std::numeric_limits<std::int32_t>::max() / layout.page_tokens)
    throw std::invalid_argument("a cache of this size has more slots than 32 bits can name");
  return static_cast<std::size_t>(layout.page_bytes()) * static_cast<std::size_t>(pages);
}

}  // namespace

void check_pages(const PageLayout& layout, std::int64_t pages, int heads, kernels::DeviceKind device) {
  store_bytes(layout, pages);
  const std::int64_t most = kernels::most_pages(shape_of(layout), heads, device);
  if (pages > most)
    throw std::invalid_argument(
        "a KV cache of " + std::to_string(pages * layout.page_tokens) +
        " tokens is too large for this model on a GPU, whose attention names keys and "
        "values in 32 bits: at most " +
        std::to_string(most * layout.page_tokens) + " tokens are possible");
}

PageStore::PageStore(const kernels::Stream& stream, const PageLayout& layout, std::int64_t pages)
    : layout_(layout), pages_(pages), memory_(stream, store_bytes(layout, pages)) {}

kernels::KvLayer PageStore::layer(int layer) const {
  kernels::KvLayer shape = shape_of(layout_);
  shape.base = memory_.data() +
               static_cast<std::size_t>(2 * shape.value_offset * layer) * kernels::size_of(layout_.dtype);
  shape.pages = pages();
  return shape;
}

}  // namespace vigil::kv
