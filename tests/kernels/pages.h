// Pages of keys and values for tests, and places in them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/attention/attention.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {

/// The keys and values of one layer, not a number wherever nothing was stored. Pages have room for another
/// layer on either side, `gap` elements each.
class Pages {
 public:
  Pages(DType dtype, std::int64_t pages, std::int64_t page_tokens, std::int64_t kv_heads,
        std::int64_t head_dim, std::int64_t gap = 8)
      : gap_(gap),
        elements_(kv_heads * page_tokens * head_dim),
        stride_(2 * elements_ + 2 * gap),
        memory_(dtype, 1, pages * stride_),
        tokens_(pages * page_tokens) {
    layer_ = {memory_.view().columns(gap, 1).data,
              dtype,
              pages,
              stride_,
              elements_,
              page_tokens,
              kv_heads,
              head_dim};
  }

  const KvLayer& layer() const { return layer_; }
  /// The layer in a mirror of `bytes()`.
  KvLayer layer_in(const Mirror& mirror) const {
    KvLayer layer = layer_;
    layer.base = mirror.data() + static_cast<std::size_t>(gap_) * size_of(layer.dtype);
    return layer;
  }
  std::int64_t tokens() const { return tokens_; }
  const std::vector<std::byte>& bytes() const { return memory_.bytes(); }

  /// Element d of the key (or value) of a slot, by the layout that attention.h writes down.
  float get(std::int64_t slot, std::int64_t head, std::int64_t d, bool value) const {
    return memory_.get(0, place(slot, head, d, value));
  }
  void set(std::int64_t slot, std::int64_t head, std::int64_t d, bool value, float number) {
    memory_.set(0, place(slot, head, d, value), number);
  }

  void fill(std::int64_t slot, Random& random, float scale = 1) {
    for (std::int64_t head = 0; head < layer_.kv_heads; ++head)
      for (std::int64_t d = 0; d < layer_.head_dim; ++d)
        for (const bool value : {false, true}) set(slot, head, d, value, scale * random.number());
  }
  void poison(std::int64_t slot) {
    for (std::int64_t head = 0; head < layer_.kv_heads; ++head)
      for (std::int64_t d = 0; d < layer_.head_dim; ++d)
        for (const bool value : {false, true}) set(slot, head, d, value, std::nanf(""));
  }

 private:
  std::int64_t place(std::int64_t slot, std::int64_t head, std::int64_t d, bool value) const {
    const std::int64_t page = slot / layer_.page_tokens, token = slot % layer_.page_tokens;
    return gap_ + page * stride_ + (value ? elements_ : 0) +
           (head * layer_.page_tokens + token) * layer_.head_dim + d;
  }

  std::int64_t gap_, elements_, stride_;
  TestMatrix memory_;
  std::int64_t tokens_;
  KvLayer layer_;
};

/// The slots of `count` tokens that start in the middle of a page and whose pages lie in no order.
inline std::vector<std::int32_t> scattered_slots(std::int64_t count, std::int64_t start,
                                                 std::int64_t page_tokens, std::int64_t pages,
                                                 Random& random) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(pages));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(i)))]);
  std::vector<std::int32_t> slots;
  for (std::int64_t i = start; i < start + count; ++i)
    slots.push_back(static_cast<std::int32_t>(order[static_cast<std::size_t>(i / page_tokens)] * page_tokens +
                                              i % page_tokens));
  return slots;
}

}  // namespace vigil::kernels
