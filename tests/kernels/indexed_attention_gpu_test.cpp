// Indexed attention on the GPU against the whole row of scores in double precision.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/indexed_attention_cuda.h"
#include "tests/kernels/paged_case_cuda.h"

namespace vigil::kernels {
namespace {

using test::every;
using test::last;
using test::PagedCase;
using test::PagedShape;
using test::StreamShape;

#define SKIP_WITHOUT_GPU() \
  if (!test::gpu_here()) GTEST_SKIP() << "skipped, no GPU"

unsigned fresh_seed() {
  static std::random_device device;
  return device();
}

/// The tiles of all streams, at most `rows` queries each, longest first.
std::vector<cuda::QueryTile> tiles_of(const PagedCase& of, int rows) {
  std::vector<cuda::QueryTile> tiles;
  for (std::size_t s = 0; s < of.shape().streams.size(); ++s) {
    const auto queries = static_cast<std::int32_t>(of.shape().streams[s].queries.size());
    for (std::int32_t first = 0; first < queries; first += rows) {
      const std::int32_t count = std::min(rows, queries - first);
      const auto last_row = static_cast<std::size_t>(of.first_row[s] + first + count - 1);
      tiles.push_back({of.first_row[s] + first, count, of.first_page[s], of.position[last_row] / 64 + 1});
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const auto& a, const auto& b) { return a.pages > b.pages; });
  return tiles;
}

std::vector<std::uint16_t> run(const PagedCase& of, int rows, bool with_workspace) {
  const test::OnDevice<std::uint16_t> q(of.q);
  const test::OnDevice<std::uint16_t> pool(of.pool);
  const test::OnDevice<std::int32_t> page_ids(of.page_ids);
  const test::OnDevice<std::uint64_t> live(of.live);
  const test::OnDevice<std::int32_t> position(of.position);
  const std::vector<cuda::QueryTile> list = tiles_of(of, rows);
  const test::OnDevice<cuda::QueryTile> tiles(list);
  const test::OnDevice<std::uint16_t> out(of.q.size());
  cuda::IndexedAttention call;
  call.q = q.data();
  call.q_stride = of.stride();
  call.out = out.data();
  call.out_stride = of.stride();
  call.base = pool.data() + of.layer_offset();
  call.page_stride = of.page_stride();
  call.value_offset = of.value_offset();
  call.pool_pages = of.pool_pages;
  call.kv_heads = of.shape().kv_heads;
  call.heads = of.shape().heads;
  call.head_dim = of.shape().head_dim;
  call.page_ids = page_ids.data();
  call.live = live.data();
  call.position = position.data();
  call.tiles = tiles.data();
  call.tile_count = static_cast<std::int32_t>(list.size());
  call.scale = of.scale();
  const test::OnDevice<std::uint8_t> workspace(with_workspace ? cuda::indexed_workspace_bytes(call.head_dim)
                                                              : 0);
  if (with_workspace) call.workspace = workspace.data();
  cuda::indexed_attention(nullptr, call);
  test::require_cuda(cudaDeviceSynchronize());
  return out.host();
}

void expect_right(const PagedShape& shape, int rows, std::size_t sample = 4000, bool with_workspace = false) {
  const unsigned seed = fresh_seed();
  const PagedCase paged(shape, seed);
  const PagedCase::Errors errors = paged.compare(run(paged, rows, with_workspace), sample);
  EXPECT_EQ(errors.strays, "") << "seed " << seed;
  EXPECT_LT(errors.whole, 6e-3) << "seed " << seed;
  EXPECT_LT(errors.worst, 3e-2) << "seed " << seed;
  std::printf("    relative error %.2e, worst row %.2e\n", errors.whole, errors.worst);
}

/// Streams of awkward lengths, all with some queries.
std::vector<StreamShape> awkward() {
  return {{1, {0}},
          {63, every(63, 1)},
          {64, {63}},
          {65, {0, 64}},
          {127, every(127, 2)},
          {128, {127}},
          {129, {5, 77, 128}},
          {192, last(192, 3)},
          {331, every(331, 7), 13},
          {257, last(257, 41), 63},
          {640, last(640, 131)},
          {701, every(701, 11, 3), 1}};
}

struct Heads {
  int heads, kv_heads, head_dim;
};
class IndexedAttention : public testing::TestWithParam<Heads> {
 protected:
  PagedShape shape() const {
    const Heads heads = GetParam();
    PagedShape shape;
    shape.heads = heads.heads;
    shape.kv_heads = heads.kv_heads;
    shape.head_dim = heads.head_dim;
    return shape;
  }
  int rows() const { return cuda::tile_rows(GetParam().heads, GetParam().kv_heads); }
};

TEST_P(IndexedAttention, AwkwardStreamsInOneCall) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.streams = awkward();
  shape.skipped_rows = 3;
  shape.padding = 24;
  expect_right(shape, rows());
}

TEST_P(IndexedAttention, DeadKeysLeaveNoTrace) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.streams = awkward();
  shape.dead = 0.4;
  expect_right(shape, rows());
  shape.dead = 0.02;
  shape.dead_page = 2;
  expect_right(shape, rows());
}

TEST_P(IndexedAttention, NearlyAllKeysDead) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.streams = {{900, every(900, 97)}, {1500, last(1500, 2)}};
  shape.dead = 1;
  expect_right(shape, rows());
}

TEST_P(IndexedAttention, TilesOfOneQueryAndOddTiles) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.streams = {{400, every(400, 17)}, {70, last(70, 9), 60}};
  expect_right(shape, 1);
  expect_right(shape, std::max(1, rows() / 2));
  expect_right(shape, std::max(1, rows() / 2 + 1));
}

TEST_P(IndexedAttention, FewTilesShareTheDevice) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.skipped_rows = 1;
  shape.streams = {{4000, last(4000, 30)}, {2111, every(2111, 300), 9}, {100, {99}}};
  expect_right(shape, rows(), 4000, true);
  shape.dead = 0.5;
  shape.dead_page = 2;
  expect_right(shape, rows(), 4000, true);
}

TEST_P(IndexedAttention, LargeScores) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.streams = {{600, every(600, 3)}};
  shape.spread = 30;  // scores of ±100: nearly all weight on one key, and the maximum moves
  expect_right(shape, rows());
}

TEST_P(IndexedAttention, EveryTokenOfALongStream) {
  SKIP_WITHOUT_GPU();
  PagedShape shape = this->shape();
  shape.streams = {{2500, every(2500, 1)}};
  expect_right(shape, rows(), 150);
}

INSTANTIATE_TEST_SUITE_P(Heads, IndexedAttention,
                         testing::Values(Heads{2, 2, 128}, Heads{3, 3, 64}, Heads{10, 2, 128},
                                         Heads{5, 1, 64}, Heads{28, 4, 128}, Heads{14, 2, 64},
                                         Heads{8, 1, 128}),
                         [](const auto& param) {
                           return "H" + std::to_string(param.param.heads) + "Kv" +
                                  std::to_string(param.param.kv_heads) + "D" +
                                  std::to_string(param.param.head_dim);
                         });

TEST(IndexedAttentionLong, QueriesSpreadAndLast) {
  SKIP_WITHOUT_GPU();
  PagedShape shape;
  shape.heads = 28;
  shape.kv_heads = 4;
  shape.streams = {{10240, every(10240, 5)}, {10240, last(10240, 2048)}};
  expect_right(shape, cuda::tile_rows(28, 4), 60);
}

TEST(IndexedAttentionArguments, WhatDoesNotFitIsSaid) {
  SKIP_WITHOUT_GPU();
  const test::OnDevice<std::uint16_t> memory(1 << 16);
  cuda::IndexedAttention good;
  good.q = good.out = memory.data();
  good.out = memory.data();
  good.q_stride = good.out_stride = 256;
  good.base = memory.data();
  good.page_stride = std::int64_t{4} * 64 * 128;
  good.value_offset = std::int64_t{64} * 128;
  good.pool_pages = 1;
  good.kv_heads = 1;
  good.heads = 2;
  good.head_dim = 128;
  EXPECT_NO_THROW(cuda::indexed_attention(nullptr, good));  // no tile: nothing to do
  const auto refuse = [&](auto change) {
    cuda::IndexedAttention bad = good;
    bad.tile_count = 1;
    change(bad);
    EXPECT_THROW(cuda::indexed_attention(nullptr, bad), std::invalid_argument);
  };
  refuse([](auto& bad) { bad.head_dim = 80; });
  refuse([](auto& bad) { bad.heads = 3, bad.kv_heads = 2; });
  refuse([](auto& bad) { bad.q_stride = 257; });
  refuse([](auto& bad) { bad.out_stride = 128; });
  refuse([](auto& bad) { bad.q = static_cast<const char*>(bad.q) + 2; });
  refuse([](auto& bad) { bad.base = static_cast<const char*>(bad.base) + 2; });
  refuse([](auto& bad) { bad.page_stride += 64; });
  refuse([](auto& bad) { bad.scale = 0; });
  refuse([](auto& bad) { bad.tile_count = -1; });
  refuse([](auto& bad) { bad.workspace = static_cast<char*>(bad.out) + 4; });
}

}  // namespace
}  // namespace vigil::kernels
