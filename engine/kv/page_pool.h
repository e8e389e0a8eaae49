// Pages of keys and values: a fixed arena, reference-counted pages, no policy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/device/buffer.h"
#include "kernels/device/stream.h"

namespace vigil::kv {

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

/// A fixed number of pages in one allocation. Pages are counted by reference: views that share a prefix share
/// its pages. Taking and giving back pages is thread-safe, so that whoever drops the last view of a window
/// may do so anywhere; the memory of a page belongs to whoever holds it.
class PagePool {
 public:
  using PageId = std::int32_t;

  /// Throws std::invalid_argument for a layout or a count without room, std::bad_alloc.
  PagePool(const kernels::Stream& stream, const PageLayout& layout, std::int64_t pages);

  const PageLayout& layout() const { return layout_; }
  std::int64_t pages() const { return static_cast<std::int64_t>(references_.size()); }
  std::int64_t free_pages() const;

  /// Takes `count` pages with one reference each, appended to `to`. False, and nothing changes, if there are
  /// too few.
  bool allocate(std::int64_t count, std::vector<PageId>& to);
  /// One more reference to a page in use.
  void retain(PageId page);
  /// One reference less; the page is free when none is left.
  void release(PageId page);

  /// A page's memory, `layout().page_bytes()` on the stream's device.
  std::byte* page(PageId page) const {
    return memory_.data() + static_cast<std::size_t>(page) * static_cast<std::size_t>(layout_.page_bytes());
  }

  /// The pages as layer `layer` sees them.
  kernels::KvLayer layer(int layer) const;

 private:
  PageLayout layout_;
  kernels::Buffer memory_;
  mutable std::mutex mutex_;
  std::vector<std::int32_t> references_;
  std::vector<PageId> free_;
};

}  // namespace vigil::kv
