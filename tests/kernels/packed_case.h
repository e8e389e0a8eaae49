// Caches of several layers, what is packed of them, and the shapes that tests of packing go through.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/packed_kv/packed_kv.h"
#include "kernels/packed_kv/packed_kv_reference.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/pages.h"

namespace vigil::kernels {

/// Pages that hold all layers of their tokens, as a page store lays them out.
class Cache {
 public:
  Cache(DType dtype, std::int64_t layers, std::int64_t pages, std::int64_t page_tokens, std::int64_t kv_heads,
        std::int64_t head_dim)
      : part_(kv_heads * page_tokens * head_dim), memory_(dtype, 1, pages * layers * 2 * part_) {
    layers_ = {
        {memory_.view().data, dtype, pages, layers * 2 * part_, part_, page_tokens, kv_heads, head_dim},
        layers,
        2 * part_};
  }

  const KvLayers& layers() const { return layers_; }
  KvLayers layers_in(const Mirror& mirror) const {
    KvLayers layers = layers_;
    layers.first.base = mirror.data();
    return layers;
  }
  std::int64_t tokens() const { return layers_.first.pages * layers_.first.page_tokens; }
  const std::vector<std::byte>& bytes() const { return memory_.bytes(); }

  std::int64_t place(std::int64_t l, bool value, std::int64_t head, std::int64_t slot, std::int64_t d) const {
    return l * layers_.stride + (value ? part_ : 0) + layers_.first.offset(slot, head) + d;
  }
  float get(std::int64_t at) const { return memory_.get(0, at); }
  void set(std::int64_t at, float number) { memory_.set(0, at, number); }
  std::int64_t elements() const { return memory_.cols(); }
  /// Columns of very different size, some far from zero, of tokens that resemble their neighbours.
  void fill(Random& random) {
    for (std::int64_t at = 0; at < elements(); ++at) {
      const auto column = static_cast<float>(at % layers_.first.head_dim);
      set(at, random.number() * std::exp2(std::fmod(column * 7, 9.0F) - 4) +
                  (std::fmod(column, 5.0F) == 3 ? 11 * std::sin(column) : 0));
    }
  }

 private:
  std::int64_t part_;
  TestMatrix memory_;
  KvLayers layers_;
};

/// `count` slots, all different, of as many tokens as a cache has.
inline std::vector<std::int32_t> some_slots(std::int64_t count, std::int64_t tokens, Random& random) {
  auto slots = scattered_slots(tokens, 0, 1, tokens, random);
  slots.resize(static_cast<std::size_t>(count));
  return slots;
}

/// Packed memory that holds 0xff at first.
struct Packed {
  PackedShape shape;
  std::vector<std::byte> bytes;

  explicit Packed(const PackedShape& of)
      : shape(of), bytes(static_cast<std::size_t>(of.bytes()), std::byte{0xff}) {}

  void pack(const Cache& cache, const std::vector<std::int32_t>& slots, std::int64_t stride,
            std::int64_t layer = 0, std::int64_t head = 0) {
    Stream stream = test_stream(2);
    const Mirror memory(stream, cache.bytes());
    Mirror there(stream, bytes);
    pack_kv(stream, cache.layers_in(memory), {DeviceArray<std::int32_t>(stream, slots).data(), stride}, shape,
            layer, head, there.data());
    there.fetch();
  }
  void unpack(const PackedPart& part, const std::vector<std::int32_t>& slots, std::int64_t stride,
              Cache& cache, const std::vector<float>& cos = {}, const std::vector<float>& sin = {}) const {
    Stream stream = test_stream(2);
    Mirror memory(stream, cache.bytes());
    const Mirror there(stream, bytes);
    const DeviceArray<float> c(stream, cos), s(stream, sin);
    unpack_kv(stream, there.data(), shape, part, cos.empty() ? nullptr : c.data(),
              sin.empty() ? nullptr : s.data(), {DeviceArray<std::int32_t>(stream, slots).data(), stride},
              cache.layers_in(memory));
    memory.fetch();
  }
  reference::Unpacked get(std::int64_t l, bool value, std::int64_t head, std::int64_t token,
                          std::int64_t d) const {
    return reference::unpacked(bytes.data(), shape, l, value, head, token, d);
  }
};

template <typename Body>
void for_elements(const PackedShape& shape, const Body& body) {
  for (std::int64_t l = 0; l < shape.layers; ++l)
    for (const bool value : {false, true})
      for (std::int64_t head = 0; head < shape.kv_heads; ++head)
        for (std::int64_t token = 0; token < shape.tokens; ++token)
          for (std::int64_t d = 0; d < shape.head_dim; ++d) body(l, value, head, token, d);
}

struct PackedCase {
  std::int64_t layers, kv_heads, head_dim, page_tokens, tokens;
};
// Heads that are no whole packs and those that are, one token, a block and one more, some blocks.
inline const std::vector<PackedCase> kPackedCases{
    {1, 1, 2, 16, 1},   {2, 3, 6, 5, 65},   {1, 2, 20, 16, 63},   {2, 1, 80, 16, 130},
    {1, 2, 32, 16, 64}, {3, 2, 64, 64, 71}, {2, 4, 128, 64, 200}, {1, 1, 256, 16, 66}};

inline const char* name_of(PackedForm form) {
  return form == PackedForm::bf16 ? "bf16" : form == PackedForm::fp8 ? "fp8" : "int4";
}

/// Of a type of the cache and a form.
class PackedFormTest : public ::testing::TestWithParam<std::tuple<DType, PackedForm>> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
  static DType dtype() { return std::get<0>(GetParam()); }
  static PackedForm form() { return std::get<1>(GetParam()); }
};
/// All of them, and their names.
inline const auto kPackedForms =
    ::testing::Combine(::testing::Values(DType::f32, DType::bf16),
                       ::testing::Values(PackedForm::bf16, PackedForm::fp8, PackedForm::int4));
inline std::string form_name(const ::testing::TestParamInfo<std::tuple<DType, PackedForm>>& now) {
  return std::string(name_of(std::get<0>(now.param))) + "_" + name_of(std::get<1>(now.param));
}

}  // namespace vigil::kernels
