#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "kernels/rope/rope_reference.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/pages.h"

namespace vigil::kernels {
namespace {

/// A plan whose queries are the tokens in these slots, and so are their keys.
struct Writers {
  std::vector<std::int32_t> keys, own;
  AttentionSegment segment;
  explicit Writers(const std::vector<std::int32_t>& slots) : keys(slots), own(slots.size()) {
    std::iota(own.begin(), own.end(), 0);
    segment = {keys, own, 0};
  }
  PagedPlan plan(const Stream& stream, const KvLayer& layer) const {
    return {stream, std::span(&segment, 1), layer, layer.kv_heads};
  }
};

/// Of `rows` rows and heads of `head_dim`.
struct Angles {
  std::vector<float> cos, sin;
  Angles(std::int64_t rows, std::int64_t head_dim, Random& random) {
    for (std::int64_t i = 0; i < rows * head_dim / 2; ++i) {
      const float angle = 100 * random.number();
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
  }
};

/// The same numbers in rows with `gap` elements between them.
TestMatrix copy_of(const TestMatrix& from, std::int64_t gap) {
  const ConstMatrix view = from.view();
  TestMatrix copy(view.dtype, view.rows, view.cols, gap);
  for (std::int64_t i = 0; i < view.rows; ++i)
    for (std::int64_t j = 0; j < view.cols; ++j) copy.set(i, j, from.get(i, j));
  return copy;
}

class StoreRotatedTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }

  /// Two products of numbers below 4 in f32, then the storage.
  void expect_rotated(float got, double expected) const {
    ASSERT_NEAR(got, expected, 1e-6 + rounding_of(GetParam()) * 1.01 * std::abs(expected));
  }
};
INSTANTIATE_TEST_SUITE_P(Types, StoreRotatedTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(StoreRotatedTest, RotatesQueriesAndWritesItsSlotsAndNothingElse) {
  Random random(1);
  struct Case {
    std::int64_t rows, heads, kv_heads, head_dim;
  };
  for (const Case& now : {Case{1, 6, 2, 20}, Case{16, 0, 2, 20}, Case{17, 2, 2, 18}, Case{300, 7, 1, 64},
                          Case{5, 14, 2, 128}}) {
    const std::int64_t kv_width = now.kv_heads * now.head_dim;
    Pages pages(GetParam(), 25, 16, now.kv_heads, now.head_dim);
    auto slots = scattered_slots(400, 0, 16, 25, random);
    slots.resize(static_cast<std::size_t>(now.rows));
    const TestMatrix q_before = TestMatrix::random(GetParam(), now.rows, now.heads * now.head_dim, random, 4);
    const TestMatrix k_before = TestMatrix::random(GetParam(), now.rows, kv_width, random, 1, 7);
    TestMatrix q = copy_of(q_before, 4), k = copy_of(k_before, 7);
    const TestMatrix v = TestMatrix::random(GetParam(), now.rows, kv_width, random, 1, 2);
    const Angles angles(now.rows, now.head_dim, random);
    Stream stream = test_stream(2);
    Mirror memory(stream, pages.bytes());
    OnDevice there(stream, q);
    store_rotated(stream, there, OnDevice(stream, k), OnDevice(stream, v),
                  DeviceArray<float>(stream, angles.cos).data(),
                  DeviceArray<float>(stream, angles.sin).data(), Writers(slots).plan(stream, pages.layer()),
                  pages.layer_in(memory));
    memory.fetch();
    there.fetch();
    for (std::int64_t i = 0; i < now.rows; ++i) {
      const auto query =
          reference::rope(q_before.view(), now.head_dim, angles.cos.data(), angles.sin.data(), i);
      for (std::int64_t j = 0; j < q.cols(); ++j)
        expect_rotated(q.get(i, j), query[static_cast<std::size_t>(j)]);
      const auto key =
          reference::rope(k_before.view(), now.head_dim, angles.cos.data(), angles.sin.data(), i);
      const std::int64_t slot = slots[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < kv_width; ++j) {
        expect_rotated(pages.get(slot, j / now.head_dim, j % now.head_dim, false),
                       key[static_cast<std::size_t>(j)]);
        ASSERT_EQ(pages.get(slot, j / now.head_dim, j % now.head_dim, true), v.get(i, j)) << "slot " << slot;
      }
    }
    EXPECT_TRUE(q.gaps_untouched());
    // Nothing else differs from fresh pages.
    const Pages fresh(GetParam(), 25, 16, now.kv_heads, now.head_dim);
    std::size_t written = 0;
    for (std::size_t at = 0; at < fresh.bytes().size(); at += size_of(GetParam()))
      written += std::equal(fresh.bytes().begin() + static_cast<std::ptrdiff_t>(at),
                            fresh.bytes().begin() + static_cast<std::ptrdiff_t>(at + size_of(GetParam())),
                            pages.bytes().begin() + static_cast<std::ptrdiff_t>(at))
                     ? 0U
                     : 1U;
    EXPECT_EQ(written, static_cast<std::size_t>(now.rows * 2 * kv_width));
  }
}

TEST_P(StoreRotatedTest, WhatDoesNotFitIsRefused) {
  Pages pages(GetParam(), 1, 16, 2, 20);
  const DType other = GetParam() == DType::f32 ? DType::bf16 : DType::f32;
  TestMatrix rows(GetParam(), 2, 40), other_type(other, 2, 40), narrow(GetParam(), 2, 20),
      longer(GetParam(), 3, 40), odd(GetParam(), 2, 30);
  const std::vector<std::int32_t> slots = {0, 1};
  const std::vector<float> angles(40, 0.0F);
  Stream stream = Stream::cpu(1);
  const auto store = [&](TestMatrix& q, TestMatrix& k, TestMatrix& v, const std::vector<std::int32_t>& to,
                         const KvLayer& planned) {
    store_rotated(stream, q.view(), k.view(), v.view(), angles.data(), angles.data(),
                  Writers(to).plan(stream, planned), pages.layer());
  };
  const auto refused = [&](TestMatrix& q, TestMatrix& k, TestMatrix& v, const std::vector<std::int32_t>& to) {
    EXPECT_THROW(store(q, k, v, to, pages.layer()), std::invalid_argument);
  };
  refused(rows, other_type, rows, slots);
  refused(rows, rows, other_type, slots);
  refused(other_type, rows, rows, slots);
  refused(rows, narrow, narrow, slots);
  refused(rows, rows, narrow, slots);
  refused(rows, rows, longer, slots);
  refused(longer, rows, rows, slots);
  refused(odd, rows, rows, slots);
  refused(rows, rows, rows, {0});
  TestMatrix nothing(GetParam(), 0, 40);
  EXPECT_NO_THROW(store(nothing, nothing, nothing, {}, pages.layer()));
  KvLayer small_pages = pages.layer();
  small_pages.page_tokens = 8;
  EXPECT_THROW(store(rows, rows, rows, slots, small_pages), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::kernels
