#include "kernels/collective/collective.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/collective/meeting.h"
#include "kernels/device/error.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

constexpr float kEpsilon = 1e-6F;

/// A rank has a GPU to itself: kernels that wait for each other on one GPU may never run beside each other
/// (of two, and more often of four, one was seen to wait in vain).
#define SKIP_WITHOUT_DEVICES(count) \
  VIGIL_SKIP_WITHOUT_DEVICE();      \
  if (tests_on_gpu() && (count) > cuda_devices()) GTEST_SKIP() << "skipped, " << (count) << " GPUs are wanted"

/// Ranks on the CPU, or each on a GPU.
std::vector<Stream> streams_of(int ranks) {
  std::vector<Stream> streams;
  for (int rank = 0; rank < ranks; ++rank)
    streams.push_back(tests_on_gpu() ? Stream::cuda(rank) : Stream::cpu(1));
  return streams;
}

/// A group, and a thread for each of its ranks.
struct Ranks {
  std::vector<Stream> streams;
  std::vector<Communicator> members;

  explicit Ranks(int ranks, Transport transport = Transport::automatic)
      : streams(streams_of(ranks)), members(make_group(streams, transport)) {}

  void run(const std::function<void(int rank, Stream& stream, const Communicator& member)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t rank = 0; rank < members.size(); ++rank)
      threads.emplace_back([&, rank] { body(static_cast<int>(rank), streams[rank], members[rank]); });
    for (std::thread& thread : threads) thread.join();
  }
};

struct Case {
  int ranks;
  std::int64_t rows, cols;
  Transport transport = Transport::automatic;
};

std::string name_of_case(const ::testing::TestParamInfo<std::tuple<Case, DType>>& info) {
  const auto& [shape, dtype] = info.param;
  return std::to_string(shape.ranks) + "ranks_" + std::to_string(shape.rows) + "x" +
         std::to_string(shape.cols) + "_" + name_of(dtype) +
         (shape.transport == Transport::nccl           ? "_nccl"
          : shape.transport == Transport::in_two_steps ? "_steps"
                                                       : "");
}

/// A rank's part goes where `part` says, with its gaps.
void put(const Stream& stream, const TestMatrix& from, Matrix to) {
  for (std::int64_t i = 0; i < from.rows(); ++i)
    upload(
        stream, to.row<std::byte>(0) + static_cast<std::size_t>(i * to.stride) * size_of(to.dtype),
        from.view().row<std::byte>(0) + static_cast<std::size_t>(i * from.view().stride) * size_of(to.dtype),
        static_cast<std::size_t>(to.cols) * size_of(to.dtype));
}

class AddPartsTest : public ::testing::TestWithParam<std::tuple<Case, DType>> {
 protected:
  void SetUp() override { SKIP_WITHOUT_DEVICES(std::get<0>(GetParam()).ranks); }
};

// Few rows are sent, many are fetched; rows that are no whole number of 16 bytes; blocks with several rows.
INSTANTIATE_TEST_SUITE_P(
    Shapes, AddPartsTest,
    ::testing::Combine(::testing::Values(Case{2, 1, 3584}, Case{2, 5, 60}, Case{2, 64, 904}, Case{2, 65, 128},
                                         Case{2, 700, 97}, Case{1, 3, 40}, Case{4, 1, 8192}, Case{4, 33, 100},
                                         Case{3, 2, 4000}, Case{2, 2, 16384}, Case{2, 140, 3584},
                                         Case{2, 1, 1}, Case{2, 70, 96, Transport::nccl},
                                         Case{2, 70, 96, Transport::in_two_steps},
                                         Case{2, 281, 3584, Transport::in_two_steps}, Case{3, 67, 33},
                                         Case{4, 65, 256}),
                       ::testing::Values(DType::f32, DType::bf16)),
    name_of_case);

TEST_P(AddPartsTest, EveryRankHasTheSumAndItsNorm) {
  const auto [shape, dtype] = GetParam();
  Ranks ranks(shape.ranks, shape.transport);
  constexpr int kSums = 4;
  Random random(5);
  std::vector<std::vector<TestMatrix>> parts;  // [sum][rank]
  for (int sum = 0; sum < kSums; ++sum) {
    auto& of_sum = parts.emplace_back();
    for (int rank = 0; rank < shape.ranks; ++rank)
      of_sum.push_back(TestMatrix::random(dtype, shape.rows, shape.cols, random, 2));
  }
  const TestMatrix before = TestMatrix::random(DType::f32, shape.rows, shape.cols, random, 2, 3);
  const TestMatrix weight = TestMatrix::random(DType::f32, 1, shape.cols, random, 2);

  // What each rank has after each sum.
  std::vector<std::vector<std::unique_ptr<TestMatrix>>> sums(static_cast<std::size_t>(shape.ranks)),
      norms(static_cast<std::size_t>(shape.ranks));
  ranks.run([&, shape = shape, dtype = dtype](int rank, Stream& stream, const Communicator& member) {
    const auto at = static_cast<std::size_t>(rank);
    TestMatrix x = before;
    OnDevice x_there(stream, x), weight_there(stream, weight);
    member.reserve(dtype, shape.rows, shape.cols);
    for (int sum = 0; sum < kSums; ++sum) {
      norms[at].push_back(std::make_unique<TestMatrix>(dtype, shape.rows, shape.cols, 3));
      OnDevice norm_there(stream, *norms[at].back());
      put(stream, parts[static_cast<std::size_t>(sum)][at],
          member.part(sum % 2, dtype, shape.rows, shape.cols));
      // The last one has none.
      const SumNorm norm{sum + 1 < kSums ? weight_there.numbers() : nullptr, kEpsilon, norm_there};
      add_parts(stream, member, sum % 2, dtype, x_there, norm);
      norm_there.fetch();
      x_there.fetch();
      sums[at].push_back(std::make_unique<TestMatrix>(x));
    }
  });

  for (int sum = 0; sum < kSums; ++sum)
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      const auto at = static_cast<std::size_t>(sum);
      double squares = 0;
      for (std::int64_t j = 0; j < shape.cols; ++j) squares += std::pow(double{sums[0][at]->get(i, j)}, 2);
      const double scale = 1 / std::sqrt(squares / static_cast<double>(shape.cols) + double{kEpsilon});
      for (std::int64_t j = 0; j < shape.cols; ++j) {
        double wanted = sum == 0 ? before.get(i, j) : sums[0][at - 1]->get(i, j);
        double size = std::abs(wanted);
        for (const TestMatrix& part : parts[at]) {
          wanted += double{part.get(i, j)};
          size += std::abs(double{part.get(i, j)});
        }
        // Rounded to the parts' type in between.
        const bool rounds = shape.ranks > 2 || shape.transport != Transport::automatic;
        const double error = std::max(0x1p-21, rounds ? rounding_of(dtype) : 0);
        ASSERT_NEAR(sums[0][at]->get(i, j), wanted, error * (size + 1))
            << "sum " << sum << ", " << i << ", " << j;
        for (int rank = 1; rank < shape.ranks; ++rank)
          ASSERT_EQ(sums[static_cast<std::size_t>(rank)][at]->get(i, j), sums[0][at]->get(i, j))
              << "rank " << rank;
        if (sum + 1 == kSums) {
          ASSERT_TRUE(norms[0][at]->row_untouched(i));
          continue;
        }
        const double normed = double{sums[0][at]->get(i, j)} * scale * double{weight.get(0, j)};
        ASSERT_NEAR(norms[0][at]->get(i, j), normed, (rounding_of(dtype) + 1e-5) * std::abs(normed) + 1e-7)
            << "norm " << sum << ", " << i << ", " << j;
        for (int rank = 1; rank < shape.ranks; ++rank)
          ASSERT_EQ(norms[static_cast<std::size_t>(rank)][at]->get(i, j), norms[0][at]->get(i, j))
              << "rank " << rank;
      }
      for (int rank = 0; rank < shape.ranks; ++rank)
        ASSERT_TRUE(sums[static_cast<std::size_t>(rank)][at]->gaps_untouched() &&
                    norms[static_cast<std::size_t>(rank)][at]->gaps_untouched());
    }
}

TEST(CollectiveTest, ManySumsOfManySizesInARowKeepThemApart) {
  SKIP_WITHOUT_DEVICES(2);
  Ranks ranks(2);
  constexpr std::int64_t kCols = 96;
  const std::vector<std::int64_t> sizes{1, 64, 3, 300, 1, 65, 64, 2, 900, 1};
  std::vector<std::vector<float>> found(2);
  ranks.run([&](int rank, Stream& stream, const Communicator& member) {
    member.reserve(DType::f32, 900, kCols);
    TestMatrix x(DType::f32, 900, kCols);
    for (std::int64_t i = 0; i < 900; ++i)
      for (std::int64_t j = 0; j < kCols; ++j) x.set(i, j, 0);
    OnDevice x_there(stream, x);
    // Nobody waits on the host between them.
    for (int sum = 0; sum < 200; ++sum) {
      const std::int64_t rows = sizes[static_cast<std::size_t>(sum) % sizes.size()];
      const Matrix part = member.part(sum % 2, DType::f32, rows, kCols);
      std::vector<float> values(static_cast<std::size_t>(rows * part.stride),
                                static_cast<float>(sum + 1000 * rank));
      upload(stream, part.data, values.data(), values.size() * sizeof(float));
      add_parts(stream, member, sum % 2, DType::f32, x_there.view().rows_from(0, rows), {});
    }
    x_there.fetch();
    for (const std::int64_t i : {std::int64_t{0}, std::int64_t{63}, std::int64_t{299}, std::int64_t{899}})
      found[static_cast<std::size_t>(rank)].push_back(x.get(i, kCols - 1));
  });
  std::vector<float> wanted(4, 0);
  for (int sum = 0; sum < 200; ++sum) {
    const std::int64_t rows = sizes[static_cast<std::size_t>(sum) % sizes.size()];
    const std::vector<std::int64_t> last{0, 63, 299, 899};
    for (std::size_t k = 0; k < last.size(); ++k)
      if (last[k] < rows) wanted[k] += static_cast<float>(2 * sum + 1000);
  }
  EXPECT_EQ(found[0], wanted);
  EXPECT_EQ(found[1], wanted);
}

TEST(CollectiveTest, WhatIsNoNumberArrivesAsNoNumber) {
  SKIP_WITHOUT_DEVICES(2);
  for (const DType dtype : {DType::f32, DType::bf16}) {
    Ranks ranks(2);
    std::vector<std::vector<float>> found(2);
    ranks.run([&](int rank, Stream& stream, const Communicator& member) {
      member.reserve(dtype, 1, 8);
      TestMatrix part(dtype, 1, 8);  // all bits set
      for (std::int64_t j = 2; j < 8; ++j) part.set(0, j, -0.0F);
      TestMatrix x(DType::f32, 1, 8);
      for (std::int64_t j = 0; j < 8; ++j) x.set(0, j, 1);
      OnDevice there(stream, x);
      put(stream, part, member.part(0, dtype, 1, 8));
      add_parts(stream, member, 0, dtype, there, {});
      there.fetch();
      for (std::int64_t j = 0; j < 8; ++j) found[static_cast<std::size_t>(rank)].push_back(x.get(0, j));
    });
    for (const auto& row : found)
      for (std::size_t j = 0; j < 8; ++j) EXPECT_EQ(std::isnan(row[j]), j < 2) << name_of(dtype) << j;
  }
}

TEST(CollectiveTest, ARankThatDoesNotComeHoldsNobodyUp) {
  SKIP_WITHOUT_DEVICES(2);
  for (const auto& [rows, transport] : {std::pair<std::int64_t, Transport>{2, Transport::automatic},
                                        {200, Transport::automatic},
                                        {200, Transport::nccl},
                                        {200, Transport::in_two_steps}}) {
    Ranks ranks(2, transport);
    ranks.run([&](int, Stream&, const Communicator& member) { member.reserve(DType::f32, rows, 64); });
    std::string told;
    ranks.run([&](int rank, Stream& stream, const Communicator& member) {
      if (rank == 1) return member.call_off();
      Buffer x(stream, static_cast<std::size_t>(rows) * 64 * sizeof(float));
      try {
        add_parts(stream, member, 0, DType::f32, dense(x.data(), DType::f32, rows, 64), {});
        stream.synchronize();
        member.reserve(DType::f32, 2 * rows, 64);
      } catch (const DeviceError& error) {
        told = error.what();
      }
    });
    EXPECT_EQ(told, "another part of the model failed");
    // And all is well again.
    ranks.members[0].reset();
    std::vector<float> found(2);
    ranks.run([&](int rank, Stream& stream, const Communicator& member) {
      member.reserve(DType::f32, rows, 64);
      TestMatrix part(DType::f32, rows, 64), x(DType::f32, rows, 64);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < 64; ++j) {
          part.set(i, j, static_cast<float>(rank + 1));
          x.set(i, j, 10);
        }
      OnDevice there(stream, x);
      put(stream, part, member.part(0, DType::f32, rows, 64));
      add_parts(stream, member, 0, DType::f32, there, {});
      there.fetch();
      found[static_cast<std::size_t>(rank)] = x.get(rows - 1, 63);
    });
    EXPECT_EQ(found, (std::vector<float>{13, 13}));
  }
}

TEST(CollectiveTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(make_group({}), std::invalid_argument);
  if (tests_on_gpu() && cuda_devices() > 0) {
    EXPECT_THROW(make_group(std::vector<Stream>{Stream::cuda(0), Stream::cuda(0)}), std::invalid_argument)
        << "their kernels could wait for each other for ever";
  }
  EXPECT_THROW(make_group(std::vector<Stream>(9, Stream::cpu(1))), std::invalid_argument);
  Stream stream = Stream::cpu(1);
  const std::vector<Communicator> alone = make_group(std::span(&stream, 1));
  TestMatrix x(DType::f32, 2, 8), rounded(DType::bf16, 2, 8);
  EXPECT_THROW(alone[0].part(0, DType::f32, 2, 8), std::logic_error) << "nothing was reserved";
  alone[0].reserve(DType::f32, 2, 8);
  EXPECT_THROW(add_parts(stream, alone[0], 0, DType::f32, rounded.view()), std::invalid_argument);
  EXPECT_THROW(add_parts(stream, alone[0], 0, DType::i32, x.view()), std::invalid_argument);
  const float weight[8] = {};
  EXPECT_THROW(add_parts(stream, alone[0], 0, DType::f32, x.view(), {weight, 0, rounded.view()}),
               std::invalid_argument);
  TestMatrix wide(DType::f32, 1, 16385);
  EXPECT_THROW(add_parts(stream, alone[0], 0, DType::f32, wide.view()), std::invalid_argument);
}

TEST(MeetingTest, IsCalledOffForThoseWhoWaitAndThoseWhoCome) {
  Meeting meeting(2);
  std::thread caller([&] { meeting.call_off(); });
  EXPECT_THROW(meeting.meet(), DeviceError);
  caller.join();
  EXPECT_THROW(meeting.meet(), DeviceError);
  meeting.reset();
  std::thread other([&] { meeting.meet(); });
  EXPECT_NO_THROW(meeting.meet());
  other.join();
}

}  // namespace
}  // namespace vigil::kernels
