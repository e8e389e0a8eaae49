#include "kernels/fetch_clusters/fetch_clusters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/host_buffer.h"
#include "kernels/packed_kv/packed_kv_reference.h"
#include "tests/kernels/cluster_table.h"
#include "tests/kernels/packed_case.h"

namespace vigil::kernels {
namespace {

/// Packed pieces of clusters in memory of the host that the device can read.
struct Pieces {
  PackedForm form;
  std::int64_t kv_heads, head_dim;
  std::vector<std::int32_t> counts, first;
  std::vector<std::int64_t> begins;
  HostMemory host;
  HostBytes memory;

  Pieces(const Stream& stream, PackedForm as, std::int64_t heads, std::int64_t width,
         std::vector<std::int32_t> tokens, Random& random)
      : form(as), kv_heads(heads), head_dim(width), counts(std::move(tokens)), host(stream, 1U << 24U) {
    std::int64_t bytes = 0;
    std::int32_t before = 0;
    for (const std::int32_t count : counts) {
      // Not side by side, and in no order that counts.
      bytes += 16 * (1 + before % 3);
      begins.push_back(bytes);
      first.push_back(before + 2);
      bytes += kv_heads * shape(count).bytes();
      before += count;
    }
    memory = host.take(static_cast<std::size_t>(bytes));
    std::memset(memory.get(), 0xff, static_cast<std::size_t>(bytes));
    Stream cpu = Stream::cpu(1);
    for (std::size_t c = 0; c < counts.size(); ++c)
      for (std::int64_t head = 0; head < kv_heads; ++head) {
        Cache cache(DType::bf16, 1, 1, counts[c], 1, head_dim);
        cache.fill(random);
        std::vector<std::int32_t> slots(static_cast<std::size_t>(counts[c]));
        std::iota(slots.begin(), slots.end(), 0);
        pack_kv(cpu, cache.layers(), {slots.data(), 0}, shape(counts[c]), 0, 0,
                memory.get() + piece(c, head));
      }
  }
  PackedShape shape(std::int64_t tokens) const { return {form, 1, 1, head_dim, tokens}; }
  std::int64_t piece(std::size_t c, std::int64_t head) const {
    return begins[c] + head * shape(counts[c]).bytes();
  }
  std::int64_t tokens() const { return std::accumulate(counts.begin(), counts.end(), std::int64_t{2}); }
};

using Chosen = std::vector<std::vector<std::int32_t>>;

struct Fetched {
  TestMatrix keys, values;
  std::vector<std::int32_t> counts;
};

/// Runs both on the device under test. `angles`: cosines, then sines, of each row.
Fetched fetch(Stream& stream, const Pieces& from, const Chosen& chosen, DType dtype, std::int64_t capacity,
              const std::vector<float>& angles) {
  const auto heads = static_cast<std::size_t>(from.kv_heads);
  const std::size_t clusters = from.counts.size() + 3;
  std::vector<std::int32_t> lists(heads * clusters, 1'000'000), count;
  for (std::size_t head = 0; head < heads; ++head) {
    std::copy(chosen[head].begin(), chosen[head].end(),
              lists.begin() + static_cast<std::ptrdiff_t>(head * clusters));
    count.push_back(static_cast<std::int32_t>(chosen[head].size()));
  }
  Fetched found{TestMatrix(dtype, from.kv_heads * capacity, from.head_dim),
                TestMatrix(dtype, from.kv_heads * capacity, from.head_dim),
                {}};
  Values<std::int32_t> lists_there(stream, lists), count_there(stream, count), counts(stream, from.counts),
      first(stream, from.first), places(stream, std::vector<std::int32_t>(heads * clusters, -7)),
      lengths(stream, std::vector<std::int32_t>(heads, -7));
  Values<std::int64_t> begins(stream, from.begins);
  const std::size_t half = angles.size() / 2;
  Values<float> cos(stream, {angles.begin(), angles.begin() + static_cast<std::ptrdiff_t>(half)}),
      sin(stream, {angles.begin() + static_cast<std::ptrdiff_t>(half), angles.end()});
  OnDevice keys(stream, found.keys), values(stream, found.values);
  const ClusterSelection selection{lists_there.data(), count_there.data(), nullptr};
  const ClusterPieces pieces{from.memory.get(), begins.data(), counts.data(),
                             from.form,         from.kv_heads, from.head_dim};
  const FetchedLists to{keys.view().data, values.view().data, dtype, capacity, lengths.data(), places.data()};
  place_clusters(stream, selection, static_cast<std::int64_t>(clusters), pieces, to);
  fetch_clusters(stream, pieces, selection, static_cast<std::int64_t>(clusters),
                 angles.empty() ? ClusterTurn{} : ClusterTurn{cos.data(), sin.data(), first.data()}, to);
  keys.fetch();
  values.fetch();
  found.counts = lengths.fetch();
  return found;
}

/// What has to be in the list of one head, from the pages' words, or nothing where the list ends.
void expect_list(const Pieces& from, const std::vector<std::int32_t>& chosen, std::int64_t head,
                 std::int64_t capacity, const std::vector<float>& angles, const Fetched& found) {
  const std::int64_t half = from.head_dim / 2;
  std::int64_t place = 0;
  for (const std::int32_t c : chosen) {
    const auto at = static_cast<std::size_t>(c);
    const std::int64_t tokens = from.counts[at];
    if (place + tokens > capacity) break;
    for (std::int64_t i = 0; i < tokens; ++i, ++place)
      for (std::int64_t j = 0; j < half; ++j) {
        const auto element = [&](bool value, std::int64_t d) {
          return static_cast<float>(reference::unpacked(from.memory.get() + from.piece(at, head),
                                                        from.shape(tokens), 0, value, 0, i, d)
                                        .value);
        };
        float low = element(false, j), high = element(false, j + half);
        if (!angles.empty()) {
          const auto angle = static_cast<std::size_t>((from.first[at] + i) * half + j);
          const float cos = angles[angle], sin = angles[angles.size() / 2 + angle];
          if (!(sin == 0 && cos == 1)) {
            const float a = low, b = high;
            low = a * cos - b * sin;
            high = b * cos + a * sin;
          }
        }
        TestMatrix wanted(found.keys.view().dtype, 1, 4);
        wanted.set(0, 0, low);
        wanted.set(0, 1, high);
        wanted.set(0, 2, element(true, j));
        wanted.set(0, 3, element(true, j + half));
        const std::int64_t row = head * capacity + place;
        ASSERT_EQ(found.keys.get(row, j), wanted.get(0, 0))
            << "head " << head << ", cluster " << c << ", " << i;
        ASSERT_EQ(found.keys.get(row, j + half), wanted.get(0, 1)) << c << ", " << i;
        ASSERT_EQ(found.values.get(row, j), wanted.get(0, 2)) << c << ", " << i;
        ASSERT_EQ(found.values.get(row, j + half), wanted.get(0, 3)) << c << ", " << i;
      }
  }
  EXPECT_EQ(found.counts[static_cast<std::size_t>(head)], place);
  for (; place < capacity; ++place) {
    ASSERT_TRUE(found.keys.row_untouched(head * capacity + place)) << "past the list's end";
    ASSERT_TRUE(found.values.row_untouched(head * capacity + place));
  }
}

std::vector<float> angles_of(const Pieces& from, Random& random) {
  const auto count = static_cast<std::size_t>(from.tokens() * from.head_dim / 2);
  std::vector<float> angles(2 * count);
  for (std::size_t i = 0; i < count; ++i) {
    const float angle = i % 7 == 0 ? 0.0F : 3 * random.number();
    angles[i] = std::cos(angle);
    angles[count + i] = std::sin(angle);
  }
  return angles;
}

class FetchClustersTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, FetchClustersTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(FetchClustersTest, ListsHoldWhatTheirClustersHold) {
  std::uint64_t seed = 1;
  for (const PackedForm form : {PackedForm::bf16, PackedForm::fp8, PackedForm::int4})
    for (const std::int64_t head_dim : {6, 32, 64, 128, 256})
      for (const bool turned : {false, true}) {
        Random random(seed++);
        Stream stream = test_stream(2);
        const Pieces from(stream, form, 3, head_dim, {1, 5, 64, 65, 130, 31, 2}, random);
        const Chosen chosen = {{0, 2, 4, 6}, {}, {0, 1, 2, 3, 4, 5, 6}};
        const std::vector<float> angles = turned ? angles_of(from, random) : std::vector<float>{};
        const Fetched found = fetch(stream, from, chosen, GetParam(), 320, angles);
        for (std::int64_t head = 0; head < 3; ++head)
          expect_list(from, chosen[static_cast<std::size_t>(head)], head, 320, angles, found);
      }
}

TEST_P(FetchClustersTest, ManyClustersOfFewTokens) {
  Random random(70);
  Stream stream = test_stream(2);
  std::vector<std::int32_t> counts;
  for (std::int64_t c = 0; c < 2300; ++c) counts.push_back(static_cast<std::int32_t>(1 + random.below(3)));
  const Pieces from(stream, PackedForm::fp8, 2, 32, counts, random);
  Chosen chosen(2);
  for (std::int32_t c = 0; c < 2300; ++c) {
    if (random.below(3) != 0) chosen[0].push_back(c);
    if (random.below(9) == 0) chosen[1].push_back(c);
  }
  const Fetched found = fetch(stream, from, chosen, GetParam(), 5000, {});
  for (std::int64_t head = 0; head < 2; ++head)
    expect_list(from, chosen[static_cast<std::size_t>(head)], head, 5000, {}, found);
}

// The first cluster that has no room ends a list, whatever comes after it.
TEST_P(FetchClustersTest, WhatHasNoRoomEndsTheList) {
  Random random(80);
  Stream stream = test_stream(2);
  const Pieces from(stream, PackedForm::fp8, 2, 64, {10, 50, 3, 1}, random);
  for (const std::int64_t capacity : {0, 9, 10, 59, 60, 63, 64})
    for (const Chosen& chosen : {Chosen{{0, 1, 2, 3}, {1, 3}}, Chosen{{1}, {3, 2, 1, 0}}}) {
      const Fetched found = fetch(stream, from, chosen, GetParam(), capacity, {});
      for (std::int64_t head = 0; head < 2; ++head)
        expect_list(from, chosen[static_cast<std::size_t>(head)], head, capacity, {}, found);
    }
}

TEST_P(FetchClustersTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  alignas(16) std::byte memory[64] = {};
  std::int32_t numbers[4] = {};
  const ClusterSelection chosen{numbers, numbers, nullptr};
  const ClusterPieces pieces{memory, nullptr, numbers, PackedForm::fp8, 1, 2};
  const FetchedLists to{memory, memory, GetParam(), 1, numbers, numbers};
  const auto refused = [&](const ClusterPieces& from, std::int64_t clusters, const ClusterTurn& turn,
                           const FetchedLists& lists) {
    EXPECT_THROW(fetch_clusters(stream, from, chosen, clusters, turn, lists), std::invalid_argument);
  };
  ClusterPieces wrong = pieces;
  wrong.kv_heads = 0;
  refused(wrong, 1, {}, to);
  EXPECT_THROW(place_clusters(stream, chosen, 1, wrong, to), std::invalid_argument);
  EXPECT_THROW(place_clusters(stream, chosen, 0, pieces, to), std::invalid_argument);
  wrong = pieces;
  wrong.head_dim = 3;
  refused(wrong, 1, {}, to);
  wrong = pieces;
  wrong.memory = memory + 8;
  refused(wrong, 1, {}, to);
  refused(pieces, 0, {}, to);
  const float number = 1;
  refused(pieces, 1, {&number, nullptr, numbers}, to);
  refused(pieces, 1, {&number, &number, nullptr}, to);
  FetchedLists lists = to;
  lists.capacity = -1;
  refused(pieces, 1, {}, lists);
  lists = to;
  lists.dtype = DType::e4m3;
  refused(pieces, 1, {}, lists);
  lists = to;
  lists.places = nullptr;
  refused(pieces, 1, {}, lists);
  lists = to;
  lists.values = memory + 2;
  refused(pieces, 1, {}, lists);
  EXPECT_NO_THROW(fetch_clusters(stream, pieces, chosen, 1, {}, to));
}

}  // namespace
}  // namespace vigil::kernels
