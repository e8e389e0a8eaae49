// Where keys and values lie: a fixed arena of pages on one device. Who has which page is the book's to say.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/device/buffer.h"
#include "kernels/device/stream.h"

namespace vigil::kv {

/// Names a page in every store of a model: devices that share it have the keys and values of their own heads
/// under the same number.
using PageId = std::int32_t;

/// The shape of a model's keys and values, and how many tokens share a page.
struct PageLayout {
  int layers = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int page_tokens = 64;
  kernels::DType dtype = kernels::DType::f32;

  /// Elements of one page: [layers, 2, kv_heads, page_tokens, head_dim]. A page holds all layers of its
  /// tokens, so that it can leave and come back as one piece.
  std::int64_t page_elements() const { return std::int64_t{2} * layers * kv_heads * page_tokens * head_dim; }
  std::int64_t page_bytes() const {
    return page_elements() * static_cast<std::int64_t>(kernels::size_of(dtype));
  }
};

/// Throws std::invalid_argument, in one line, for pages that could not be used: a layout or a count without
/// room, and more of them than attention of `heads` query heads can address on a device of this kind.
void check_pages(const PageLayout& layout, std::int64_t pages, int heads, kernels::DeviceKind device);

/// A fixed number of pages in one allocation. The memory of a page belongs to whoever has it by the book.
class PageStore {
 public:
  /// Throws std::invalid_argument for a layout or a count without room, std::bad_alloc.
  PageStore(const kernels::Stream& stream, const PageLayout& layout, std::int64_t pages);

  const PageLayout& layout() const { return layout_; }
  std::int64_t pages() const { return pages_; }

  /// A page's memory, `layout().page_bytes()` on the stream's device.
  std::byte* page(PageId page) const {
    return memory_.data() + static_cast<std::size_t>(page) * static_cast<std::size_t>(layout_.page_bytes());
  }

  /// The pages as layer `layer` sees them.
  kernels::KvLayer layer(int layer) const;

 private:
  PageLayout layout_;
  std::int64_t pages_;
  kernels::Buffer memory_;
};

}  // namespace vigil::kv
