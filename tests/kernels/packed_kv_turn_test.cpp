// Keys that are turned while they are unpacked.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/paged_keys/paged_keys.h"
#include "kernels/rope/rope.h"
#include "tests/kernels/packed_case.h"

namespace vigil::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

class PackedKvTurnTest : public PackedFormTest {};
INSTANTIATE_TEST_SUITE_P(Forms, PackedKvTurnTest, kPackedForms, form_name);

struct Turns {
  std::vector<float> cos, sin;
  Turns(std::int64_t tokens, std::int64_t pairs, std::int64_t most, Random& random) {
    std::vector<RopePosition> positions;
    std::vector<RopeFrequency> frequencies;
    for (std::int64_t i = 0; i < tokens; ++i)
      positions.push_back({static_cast<std::int32_t>(random.below(2 * most + 1) - most), 0, 0});
    for (std::int64_t j = 0; j < pairs; ++j)
      frequencies.push_back({1.0F / std::pow(1e4F, static_cast<float>(j) / static_cast<float>(pairs)),
                             static_cast<std::int32_t>(j * 3 / pairs)});
    cos.resize(positions.size() * frequencies.size());
    sin.resize(cos.size());
    Stream stream = Stream::cpu(1);
    rope_angles(stream, positions.data(), tokens, frequencies.data(), pairs, RopeAngles::wide, cos.data(),
                sin.data());
  }
};

TEST_P(PackedKvTurnTest, KeysAreTurnedOnTheirWayAndRoundedOnce) {
  std::uint64_t seed = 30;
  for (const PackedCase& now : kPackedCases) {
    Random random(seed++);
    Cache cache(dtype(), now.layers, now.tokens / now.page_tokens + 3, now.page_tokens, now.kv_heads,
                now.head_dim);
    cache.fill(random);
    Packed packed({form(), now.layers, now.kv_heads, now.head_dim, now.tokens});
    packed.pack(cache, some_slots(now.tokens, cache.tokens(), random), 0);
    const std::int64_t first = now.tokens / 3, count = now.tokens - first, half = now.head_dim / 2;
    const Turns turns(count, half, 100'000'000, random);
    Cache back(dtype(), now.layers, count / 9 + 2, 9, now.kv_heads, now.head_dim);
    const auto places = some_slots(count, back.tokens(), random);
    packed.unpack({0, 0, first, count}, places, 0, back, turns.cos, turns.sin);
    int still = 0;
    for_elements(
        packed.shape, [&](std::int64_t l, bool value, std::int64_t head, std::int64_t token, std::int64_t d) {
          if (token < first) return;
          const auto i = static_cast<std::size_t>(token - first);
          const double own = packed.get(l, value, head, token, d).value;
          const float after = back.get(back.place(l, value, head, places[i], d));
          const std::size_t angle = i * static_cast<std::size_t>(half) + static_cast<std::size_t>(d % half);
          const double c = turns.cos[angle], s = turns.sin[angle];
          if (value || (s == 0 && c == 1)) {
            ASSERT_EQ(after, dtype() == DType::f32 ? static_cast<float>(own)
                                                   : to_float(to_bf16(static_cast<float>(own))));
            still += value ? 0 : 1;
            return;
          }
          const double other = packed.get(l, value, head, token, d < half ? d + half : d - half).value;
          const double turned = d < half ? own * c - other * s : own * c + other * s;
          ASSERT_NEAR(after, turned, rounding_of(dtype()) * std::abs(turned) + 3e-7 * std::hypot(own, other))
              << token << ", " << d << " of " << now.head_dim;
        });
    // The axes that no token moved on.
    EXPECT_EQ(still > 0, now.head_dim > 4);
  }
}

TEST_P(PackedKvTurnTest, APairThatDoesNotTurnKeepsEveryBit) {
  for (const std::int64_t width : {20, 64}) {
    Random random(52);
    constexpr std::int64_t kTokens = 70;
    Cache cache(dtype(), 2, 8, 16, 2, width);
    cache.fill(random);
    const auto slots = some_slots(kTokens, cache.tokens(), random);
    // Zeros of both signs beside numbers of both, infinities beside numbers.
    const std::vector<float> ugly{-0.0F, 0.0F, kInfinity, -kInfinity, 0x1p-126F, -0x1p-133F};
    for (std::size_t i = 0; i < ugly.size(); ++i)
      for (const std::int64_t d : {std::int64_t{1}, width / 2 + 3})
        cache.set(cache.place(1, false, 0, slots[i], d), ugly[i]);
    Packed packed({form(), 2, 2, width, kTokens});
    packed.pack(cache, slots, 0);
    Cache still(dtype(), 2, 8, 16, 2, width), turned(dtype(), 2, 8, 16, 2, width);
    packed.unpack({0, 0, 0, kTokens}, slots, 0, still);
    const auto pairs = static_cast<std::size_t>(kTokens * width / 2);
    packed.unpack({0, 0, 0, kTokens}, slots, 0, turned, std::vector<float>(pairs, 1.0F),
                  std::vector<float>(pairs, 0.0F));
    EXPECT_EQ(still.bytes(), turned.bytes());
  }
}

// Many heads share the angles that are read, a few do not.
TEST(PackedKvTurnsTest, ManyHeadsAreTurnedAsFewAre) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(55);
  constexpr std::int64_t kTokens = 900, kHalf = 450;
  Cache cache(DType::bf16, 40, 15, 64, 7, 32);
  for (std::int64_t at = 0; at < cache.elements(); ++at) cache.set(at, random.number());
  const auto slots = some_slots(kTokens, cache.tokens(), random);
  Packed packed({PackedForm::int4, 40, 7, 32, kTokens});
  packed.pack(cache, slots, 0);
  const Turns turns(kTokens, 16, 1000, random);
  Cache one(DType::bf16, 40, 15, 64, 7, 32), two(DType::bf16, 40, 15, 64, 7, 32);
  packed.unpack({0, 0, 0, kTokens}, slots, 0, one, turns.cos, turns.sin);
  for (const std::int64_t first : {std::int64_t{0}, kHalf}) {
    const auto of = [&](const auto& all, std::int64_t each) {
      return std::vector(all.begin() + first * each, all.begin() + (first + kHalf) * each);
    };
    packed.unpack({0, 0, first, kHalf}, of(slots, 1), 0, two, of(turns.cos, 16), of(turns.sin, 16));
  }
  EXPECT_TRUE(one.bytes() == two.bytes());
  EXPECT_FALSE(one.bytes() == cache.bytes());
}

// Into a cache of f32, both ways take the same steps.
TEST(PackedKvTurnsTest, IsWhatRotateKeysDoes) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(50);
  Cache cache(DType::bf16, 2, 12, 16, 2, 64);
  cache.fill(random);
  Packed packed({PackedForm::bf16, 2, 2, 64, 100});
  packed.pack(cache, some_slots(100, cache.tokens(), random), 0);
  const Turns turns(100, 32, 1000, random);
  Cache one(DType::f32, 2, 12, 16, 2, 64), two(DType::f32, 2, 12, 16, 2, 64);
  const auto slots = some_slots(100, one.tokens(), random);
  packed.unpack({0, 0, 0, 100}, slots, 0, one, turns.cos, turns.sin);
  packed.unpack({0, 0, 0, 100}, slots, 0, two);
  Stream stream = test_stream(2);
  Mirror memory(stream, two.bytes());
  const KvLayers layers = two.layers_in(memory);
  for (std::int64_t l = 0; l < 2; ++l) {
    KvLayer layer = layers.first;
    layer.base = static_cast<float*>(layer.base) + l * layers.stride;
    rotate_keys(stream, DeviceArray<std::int32_t>(stream, slots).data(), 100,
                DeviceArray<float>(stream, turns.cos).data(), DeviceArray<float>(stream, turns.sin).data(),
                layer);
  }
  memory.fetch();
  for (std::int64_t at = 0; at < one.elements(); ++at) {
    if (std::isnan(one.get(at))) continue;
    ASSERT_NEAR(one.get(at), two.get(at), 2e-7 * 16);
  }
}

}  // namespace
}  // namespace vigil::kernels
