#include "kernels/packed_kv/packed_kv.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/packed_case.h"

namespace vigil::kernels {
namespace {

constexpr float kInfinite = std::numeric_limits<float>::infinity();

class PackedKvTest : public PackedFormTest {};
INSTANTIATE_TEST_SUITE_P(Forms, PackedKvTest, kPackedForms, form_name);

/// What NumPy and torch make of two layers: tools/golden_packed_kv.py.
struct Golden {
  PackedShape shape{PackedForm::bf16, 2, 2, 32, 70};
  Packed bf16{shape}, wanted{shape};

  explicit Golden(PackedForm form) {
    std::ifstream file(VIGIL_SOURCE_DIR "/tests/golden/packed_kv.bin", std::ios::binary);
    const auto take = [&](Packed& to) {
      file.read(reinterpret_cast<char*>(to.bytes.data()), static_cast<std::streamsize>(to.bytes.size()));
    };
    for (const PackedForm next : {PackedForm::bf16, PackedForm::fp8, PackedForm::int4}) {
      shape.form = next;
      Packed now(shape);
      take(now);
      if (next == PackedForm::bf16) bf16 = now;
      if (next == form) wanted = now;
    }
    EXPECT_TRUE(file && file.peek() == std::ifstream::traits_type::eof());
    shape.form = form;
  }
  /// In a cache whose slots differ by layer.
  std::vector<std::int32_t> put(Cache& cache, std::int64_t first_head, Random& random) const {
    auto slots = some_slots(shape.tokens, cache.tokens(), random);
    const auto others = some_slots(shape.tokens, cache.tokens(), random);
    slots.insert(slots.end(), others.begin(), others.end());
    const std::int64_t heads = cache.layers().first.kv_heads;
    for_elements(shape,
                 [&](std::int64_t l, bool value, std::int64_t head, std::int64_t token, std::int64_t d) {
                   if (head < first_head || head >= first_head + heads) return;
                   const std::int32_t slot = slots[static_cast<std::size_t>(l * shape.tokens + token)];
                   cache.set(cache.place(l, value, head - first_head, slot, d),
                             static_cast<float>(bf16.get(l, value, head, token, d).value));
                 });
    return slots;
  }
};

/// NaN of one kind: a cache of f32 has no other, and devices differ in the sign of what is computed.
std::vector<std::byte> one_nan(std::vector<std::byte> bytes) {
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, 2);
    if ((bits & 0x7fffU) > 0x7f80U) bits = 0x7fff;
    std::memcpy(bytes.data() + at, &bits, 2);
  }
  return bytes;
}

TEST_P(PackedKvTest, BytesAreThoseOfNumpyAndTorch) {
  const Golden golden(form());
  for (const std::int64_t page_tokens : {7, 64}) {
    Random random(1);
    Cache cache(dtype(), 2, 90 / page_tokens + 2, page_tokens, 2, 32);
    const auto slots = golden.put(cache, 0, random);
    Packed packed(golden.shape);
    packed.pack(cache, slots, golden.shape.tokens);
    if (form() == PackedForm::bf16) {
      EXPECT_EQ(one_nan(packed.bytes), one_nan(golden.wanted.bytes));
    } else {
      ASSERT_EQ(packed.bytes, golden.wanted.bytes) << "pages of " << page_tokens;
    }
  }
}

// Whoever has which heads and layers: the bytes are the same, and those of others are left alone.
TEST_P(PackedKvTest, DevicesThatShareTheHeadsMakeTheSameBytes) {
  const Golden golden(form());
  Packed packed(golden.shape);
  for (const std::int64_t head : {1, 0}) {
    Random random(2);
    Cache cache(dtype(), 2, 12, 16, 1, 32);
    const auto slots = golden.put(cache, head, random);
    packed.pack(cache, slots, golden.shape.tokens, 0, head);
    if (head == 0) break;
    for (std::int64_t l = 0; l < 2; ++l)
      for (const bool value : {false, true}) {
        const auto begin = packed.bytes.begin() + golden.shape.offset(l, value, 0, 0);
        EXPECT_EQ(std::count(begin, begin + golden.shape.segment_bytes(), std::byte{0xff}),
                  golden.shape.segment_bytes());
      }
  }
  EXPECT_EQ(one_nan(packed.bytes), one_nan(golden.wanted.bytes));
  // One layer after the other.
  Packed layers(golden.shape);
  Random random(3);
  Cache cache(dtype(), 2, 12, 16, 2, 32);
  const auto slots = golden.put(cache, 0, random);
  for (const std::int64_t l : {1, 0}) {
    Stream stream = test_stream(2);
    const Mirror memory(stream, cache.bytes());
    Mirror there(stream, layers.bytes);
    KvLayers one = cache.layers_in(memory);
    one.first.base =
        static_cast<std::byte*>(one.first.base) + static_cast<std::size_t>(l * one.stride) * size_of(dtype());
    one.count = 1;
    const std::vector<std::int32_t> its(slots.begin() + l * 70, slots.begin() + (l + 1) * 70);
    pack_kv(stream, one, {DeviceArray<std::int32_t>(stream, its).data(), 0}, layers.shape, l, 0,
            there.data());
    there.fetch();
  }
  EXPECT_EQ(layers.bytes, packed.bytes);
}

TEST_P(PackedKvTest, WhatComesBackIsWithinTheForm) {
  std::uint64_t seed = 1;
  for (const PackedCase& now : kPackedCases) {
    Random random(seed++);
    Cache cache(dtype(), now.layers, now.tokens / now.page_tokens + 3, now.page_tokens, now.kv_heads,
                now.head_dim);
    cache.fill(random);
    const auto slots = some_slots(now.tokens, cache.tokens(), random);
    Packed packed({form(), now.layers, now.kv_heads, now.head_dim, now.tokens});
    packed.pack(cache, slots, 0);
    Cache back(dtype(), now.layers, now.tokens / 9 + 2, 9, now.kv_heads, now.head_dim);
    const auto places = some_slots(now.tokens, back.tokens(), random);
    packed.unpack({0, 0, 0, now.tokens}, places, 0, back);
    double moved = 0;
    for_elements(
        packed.shape, [&](std::int64_t l, bool value, std::int64_t head, std::int64_t token, std::int64_t d) {
          const auto i = static_cast<std::size_t>(token);
          const float before = to_float(to_bf16(cache.get(cache.place(l, value, head, slots[i], d))));
          const auto [wanted, off] = packed.get(l, value, head, token, d);
          const float after = back.get(back.place(l, value, head, places[i], d));
          ASSERT_EQ(after, dtype() == DType::f32 ? static_cast<float>(wanted)
                                                 : to_float(to_bf16(static_cast<float>(wanted))));
          ASSERT_LE(std::abs(wanted - before), off)
              << "token " << token << ", column " << d << " of " << now.head_dim;
          moved += std::abs(wanted - before);
        });
    EXPECT_EQ(moved == 0, form() == PackedForm::bf16 || (form() == PackedForm::int4 && now.tokens == 1));
    // Nothing else was written.
    std::int64_t written = 0;
    for (std::int64_t at = 0; at < back.elements(); ++at) written += std::isnan(back.get(at)) ? 0 : 1;
    EXPECT_EQ(written, now.layers * 2 * now.kv_heads * now.tokens * now.head_dim);
  }
}

TEST_P(PackedKvTest, AnyPartComesAlone) {
  for (const std::int64_t width : {20, 64}) {
    Random random(5);
    constexpr std::int64_t kTokens = 150;
    Cache cache(dtype(), 3, 12, 16, 4, width);
    cache.fill(random);
    Packed packed({form(), 3, 4, width, kTokens});
    packed.pack(cache, some_slots(kTokens, cache.tokens(), random), 0);
    struct Range {
      std::int64_t first, count;
    };
    for (const Range& range : std::vector<Range>{{0, 1}, {64, 64}, {63, 2}, {128, 22}, {5, 130}, {149, 1}}) {
      // Two of the heads of the second layer and the third one, slots of their own.
      Cache back(dtype(), 2, 20, 9, 2, width);
      auto places = some_slots(range.count, back.tokens(), random);
      const auto others = some_slots(range.count, back.tokens(), random);
      places.insert(places.end(), others.begin(), others.end());
      packed.unpack({1, 1, range.first, range.count}, places, range.count, back);
      for (std::int64_t l = 0; l < 2; ++l)
        for (const bool value : {false, true})
          for (std::int64_t head = 0; head < 2; ++head)
            for (std::int64_t i = 0; i < range.count; ++i)
              for (std::int64_t d = 0; d < width; ++d) {
                const auto at = static_cast<std::size_t>(l * range.count + i);
                const auto wanted =
                    static_cast<float>(packed.get(l + 1, value, head + 1, range.first + i, d).value);
                ASSERT_EQ(back.get(back.place(l, value, head, places[at], d)),
                          dtype() == DType::f32 ? wanted : to_float(to_bf16(wanted)))
                    << range.first << " + " << i;
              }
    }
  }
}

// No number that is not finite becomes one, and none takes others with it.
TEST_P(PackedKvTest, WhatIsNoNumberStaysInItsPlace) {
  for (const std::int64_t width : {20, 64})
    for (const float bad : {std::nanf(""), -std::nanf(""), kInfinite, -kInfinite}) {
      Random random(60);
      constexpr std::int64_t kTokens = 75;
      Cache cache(dtype(), 1, 8, 16, 2, width);
      cache.fill(random);
      const auto slots = some_slots(kTokens, cache.tokens(), random);
      const auto is_bad = [&](bool value, std::int64_t head, std::int64_t token, std::int64_t d) {
        // One; a column of a short block; all of a token, values alone.
        return (head == 0 && ((token == 9 && d == 3) || (token >= 64 && d == width - 1))) ||
               (value && head == 1 && token == 40);
      };
      Packed clean({form(), 1, 2, width, kTokens});
      clean.pack(cache, slots, 0);
      for_elements(clean.shape,
                   [&](std::int64_t l, bool value, std::int64_t head, std::int64_t token, std::int64_t d) {
                     if (is_bad(value, head, token, d))
                       cache.set(cache.place(l, value, head, slots[static_cast<std::size_t>(token)], d), bad);
                   });
      Packed packed(clean.shape);
      packed.pack(cache, slots, 0);
      Cache back(dtype(), 1, 8, 16, 2, width);
      packed.unpack({0, 0, 0, kTokens}, slots, 0, back);
      for_elements(clean.shape, [&](std::int64_t l, bool value, std::int64_t head, std::int64_t token,
                                    std::int64_t d) {
        const std::int64_t at = cache.place(l, value, head, slots[static_cast<std::size_t>(token)], d);
        if (!is_bad(value, head, token, d)) {
          const float before = to_float(to_bf16(cache.get(at)));
          const auto [wanted, off] = packed.get(l, value, head, token, d);
          ASSERT_LE(std::abs(wanted - before), off);
          ASSERT_NEAR(back.get(at), wanted, rounding_of(dtype()) * std::abs(wanted));
          // Of the form's own error, not much more than without it.
          ASSERT_LE(off, clean.get(l, value, head, token, d).off * 1.15 + 1e-6);
        } else if (form() == PackedForm::bf16 && std::isinf(bad)) {
          ASSERT_EQ(back.get(at), bad);
        } else {
          ASSERT_TRUE(std::isnan(back.get(at))) << bad << " at " << token << ", " << d;
        }
      });
    }
}

// The largest and the smallest numbers that there are, beside each other and alone.
TEST_P(PackedKvTest, NothingComesBackBeyondTheLargest) {
  constexpr float kMost = 3.3895314e38F;
  const std::vector<std::vector<float>> columns{{kMost, -kMost},
                                                {kMost},
                                                {-kMost, 0},
                                                {kMost, 1},
                                                {0x1p-126F, 0},
                                                {0x1p-133F, -0x1p-133F},
                                                {0.0F, -0.0F},
                                                {-0.0F},
                                                {1, 1.0078125F},
                                                {-3, -3},
                                                {0x1p-120F, 0x1.02p-120F},
                                                {0x1p-122F, 0, -0x1p-122F}};
  for (const std::int64_t width : {2, 64}) {
    Random random(70);
    Cache cache(dtype(), 1, 8, 16, 1, width);
    cache.fill(random);
    const auto slots = some_slots(70, cache.tokens(), random);
    for (const std::vector<float>& column : columns) {
      for (std::int64_t token = 0; token < 70; ++token)
        for (std::int64_t d = 0; d < width; ++d)
          cache.set(cache.place(0, false, 0, slots[static_cast<std::size_t>(token)], d),
                    column[static_cast<std::size_t>(token) % column.size()]);
      Packed packed({form(), 1, 1, width, 70});
      packed.pack(cache, slots, 0);
      Cache back(dtype(), 1, 8, 16, 1, width);
      packed.unpack({0, 0, 0, 70}, slots, 0, back);
      const auto [least, most] = std::minmax_element(column.begin(), column.end());
      for (std::int64_t token = 0; token < 70; ++token) {
        const auto slot = slots[static_cast<std::size_t>(token)];
        const float before = cache.get(cache.place(0, false, 0, slot, width - 1));
        const float after = back.get(back.place(0, false, 0, slot, width - 1));
        const float bound = std::max(std::abs(*least), std::abs(*most));
        ASSERT_LE(std::abs(after), bound) << before;
        ASSERT_LE(std::abs(double{after} - before), packed.get(0, false, 0, token, width - 1).off * 1.01);
        const bool alone = form() == PackedForm::int4 && column.size() == 1;
        ASSERT_TRUE(!alone || after == before) << before;
      }
    }
  }
}

TEST(PackedShapeTest, BytesAreThoseOfTheForms) {
  const auto of_heads = [](PackedForm form, std::int64_t width, std::int64_t tokens) {
    return PackedShape{form, 28, 4, width, tokens}.bytes() / (28 * 4 * 2);
  };
  EXPECT_EQ(of_heads(PackedForm::bf16, 128, 256), 256 * 256);
  EXPECT_EQ(of_heads(PackedForm::fp8, 128, 256), 256 * 130);
  EXPECT_EQ(of_heads(PackedForm::int4, 128, 256), 256 * 72);
  EXPECT_EQ(of_heads(PackedForm::int4, 64, 256) * 1000 / of_heads(PackedForm::bf16, 64, 256), 281);
  // A short block keeps its scales whole.
  EXPECT_EQ(of_heads(PackedForm::int4, 64, 65), 64 * 36 + 256 + 32);
  EXPECT_EQ(of_heads(PackedForm::fp8, 64, 1), 16 + 64);
  EXPECT_EQ(of_heads(PackedForm::fp8, 6, 3), 16 + 32);
  for (const PackedForm form : {PackedForm::bf16, PackedForm::fp8, PackedForm::int4})
    for (const std::int64_t width : {2, 6, 20, 64})
      for (const std::int64_t tokens : {1, 63, 64, 65, 200}) {
        const PackedShape shape{form, 2, 3, width, tokens};
        for (std::int64_t block = 0; block < shape.blocks(); ++block)
          EXPECT_EQ(shape.offset(1, true, 2, block) % 16, 0);
        EXPECT_EQ(shape.offset(1, true, 2, 0) + shape.segment_bytes(), shape.bytes());
      }
}

TEST(PackedKvArgumentsTest, WhatDoesNotFitIsRefused) {
  Random random(80);
  const Cache cache(DType::bf16, 2, 2, 16, 2, 20);
  const PackedShape shape{PackedForm::int4, 2, 2, 20, 5};
  Packed packed(shape);
  packed.bytes.resize(packed.bytes.size() + 32);
  std::byte* memory = packed.bytes.data() + 16 - reinterpret_cast<std::uintptr_t>(packed.bytes.data()) % 16;
  Stream stream = Stream::cpu(1);
  const std::int32_t slots[] = {4, 3, 2, 1, 0};
  const float angles[50] = {};
  const auto packing = [&](const KvLayers& from, const PackedShape& to, std::int64_t layer, std::int64_t head,
                           std::byte* at) {
    pack_kv(stream, from, {slots, 0}, to, layer, head, at);
  };
  const auto unpacking = [&](const PackedPart& part, const float* cos, const float* sin) {
    unpack_kv(stream, memory, shape, part, cos, sin, {slots, 0}, cache.layers());
  };
  EXPECT_NO_THROW(packing(cache.layers(), shape, 0, 0, memory));
  KvLayers integers = cache.layers(), none = cache.layers(), wide = cache.layers(), nothing = cache.layers();
  integers.first.dtype = DType::i32;
  none.first.kv_heads = 0;
  wide.first.head_dim = 22;
  nothing.count = 0;
  for (const KvLayers& from : {integers, none, wide})
    EXPECT_THROW(packing(from, shape, 0, 0, memory), std::invalid_argument);
  EXPECT_NO_THROW(packing(nothing, shape, 2, 0, nullptr));
  PackedShape odd = shape, few = shape;
  odd.head_dim = 5;
  few.kv_heads = 1;
  EXPECT_THROW(packing(cache.layers(), odd, 0, 0, memory), std::invalid_argument);
  EXPECT_THROW(packing(cache.layers(), few, 0, 0, memory), std::invalid_argument);
  for (const std::int64_t other : {-1, 1}) {
    EXPECT_THROW(packing(cache.layers(), shape, other, 0, memory), std::invalid_argument);
    EXPECT_THROW(packing(cache.layers(), shape, 0, other, memory), std::invalid_argument);
  }
  EXPECT_THROW(packing(cache.layers(), shape, 0, 0, memory + 8), std::invalid_argument);
  EXPECT_THROW(unpacking({0, 0, 0, 6}, nullptr, nullptr), std::invalid_argument);
  EXPECT_THROW(unpacking({0, 0, 5, 1}, nullptr, nullptr), std::invalid_argument);
  EXPECT_THROW(unpacking({0, 0, -1, 1}, nullptr, nullptr), std::invalid_argument);
  EXPECT_THROW(unpacking({1, 0, 0, 1}, nullptr, nullptr), std::invalid_argument);
  EXPECT_THROW(unpacking({0, 0, 0, 5}, angles, nullptr), std::invalid_argument);
  EXPECT_THROW(unpacking({0, 0, 0, 5}, nullptr, angles), std::invalid_argument);
  EXPECT_NO_THROW(unpacking({0, 0, 5, 0}, nullptr, nullptr));
}

}  // namespace
}  // namespace vigil::kernels
