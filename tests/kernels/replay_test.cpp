#include "kernels/device/replay.h"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/device_table.h"
#include "kernels/device/error.h"
#include "kernels/gather/gather.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

template <typename T>
std::vector<T> fetched(const Stream& stream, const T* from, std::size_t count) {
  std::vector<T> values(count);
  download(stream, values.data(), from, count * sizeof(T));
  return values;
}

TEST(DeviceTableTest, ArraysArriveAndKeepTheirPlacesWhileTheyHaveRoom) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stream stream = test_stream();
  DeviceTable table;
  const std::int32_t* first = nullptr;
  const std::uint64_t* second = nullptr;
  for (std::uint64_t round = 0; round < 3; ++round) {
    const std::vector<std::int32_t> few(10 + round, static_cast<std::int32_t>(round));
    const std::vector<std::uint64_t> many(100 - round, round << 40U);
    table.clear();
    table.add(std::span(few));
    table.add(std::span<const std::int32_t>());
    table.add(std::span(many));
    table.send(stream);
    EXPECT_EQ(fetched(stream, table.at<std::int32_t>(0), few.size()), few);
    EXPECT_EQ(fetched(stream, table.at<std::uint64_t>(2), many.size()), many);
    if (round == 0) {
      first = table.at<std::int32_t>(0);
      second = table.at<std::uint64_t>(2);
    }
    EXPECT_EQ(table.at<std::int32_t>(0), first);
    EXPECT_EQ(table.at<std::uint64_t>(2), second);
  }
  const std::vector<std::int32_t> more(1000, 7);
  const std::vector<std::uint64_t> rest(3, 9);
  table.clear();
  table.add(std::span(more));
  table.add(std::span<const std::int32_t>());
  table.add(std::span(rest));
  table.send(stream);
  EXPECT_EQ(fetched(stream, table.at<std::int32_t>(0), more.size()), more);
  EXPECT_EQ(fetched(stream, table.at<std::uint64_t>(2), rest.size()), rest);
}

TEST(DeviceTableTest, NothingIsATableToo) {
  const Stream stream = Stream::cpu();
  DeviceTable table;
  EXPECT_NO_THROW(table.send(stream));
}

/// Picks row `wanted` of a matrix of three rows, as work that comes back with another row.
class Pick {
 public:
  explicit Pick(Stream& stream) : stream_(stream), rows_(stream, kRows), out_(stream, 2 * sizeof(float)) {}

  /// What the pick gives, through `replay`.
  std::vector<float> operator()(Replay& replay, std::int32_t wanted) {
    const std::vector<std::int32_t> row{wanted};
    table_.clear();
    table_.add(std::span(row));
    table_.send(stream_);
    replay.run(stream_, 1, [&] {
      ++submitted;
      gather_rows(stream_, dense(rows_.data(), DType::f32, 3, 2), table_.at<std::int32_t>(0),
                  dense(out_.data(), DType::f32, 1, 2));
    });
    return fetched(stream_, out_.as<float>(), 2);
  }

  int submitted = 0;

 private:
  static constexpr float kValues[6] = {1, 2, 3, 4, 5, 6};
  static constexpr std::span<const float> kRows{kValues};
  Stream& stream_;
  DeviceArray<float> rows_;
  Buffer out_;
  DeviceTable table_;
};

TEST(ReplayTest, WorkThatComesBackSeesNewValues) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream();
  Pick pick(stream);
  Replay replay;
  for (const std::int32_t row : {0, 2, 1, 2, 0}) {
    const auto first = static_cast<float>(2 * row + 1);
    EXPECT_EQ(pick(replay, row), (std::vector<float>{first, first + 1}));
  }
  // On a GPU once to run, once to record; a graph then.
  EXPECT_EQ(pick.submitted, tests_on_gpu() ? 2 : 5);
  EXPECT_EQ(replay.recorded(), tests_on_gpu() ? 1U : 0U);
}

TEST(ReplayTest, AnotherPlaceInMemoryIsRecordedAnew) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream();
  Pick pick(stream);
  Replay replay;
  for (int i = 0; i < 3; ++i) pick(replay, i);
  const Buffer something(stream, 100);
  EXPECT_EQ(pick(replay, 2), (std::vector<float>{5, 6}));
  EXPECT_EQ(replay.recorded(), 0U) << "what was recorded may name memory that is gone";
  EXPECT_EQ(pick(replay, 1), (std::vector<float>{3, 4}));
  EXPECT_EQ(replay.recorded(), tests_on_gpu() ? 1U : 0U);
}

TEST(ReplayTest, EachKeyHasWorkOfItsOwn) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream();
  const Buffer from(stream, 8), to(stream, 8);
  const std::vector<std::uint8_t> values{1, 2, 3, 4, 5, 6, 7, 8};
  upload(stream, from.data(), values.data(), 8);
  Replay replay;
  for (int round = 0; round < 4; ++round)
    for (const std::size_t count : {3U, 8U}) {
      const std::vector<std::uint8_t> nothing(8, 0);
      upload(stream, to.data(), nothing.data(), 8);
      replay.run(stream, count, [&] { copy(stream, to.data(), from.data(), count); });
      std::vector<std::uint8_t> expected = nothing;
      std::copy_n(values.begin(), count, expected.begin());
      EXPECT_EQ(fetched(stream, to.as<std::uint8_t>(), 8), expected);
    }
}

TEST(ReplayTest, AnErrorComesOutAndLeavesTheStreamUsable) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream();
  Pick pick(stream);
  Replay replay;
  const auto fails = [] { throw std::runtime_error("no"); };
  EXPECT_THROW(replay.run(stream, 7, fails), std::runtime_error);
  replay.run(stream, 7, [] {});
  EXPECT_THROW(replay.run(stream, 7, fails), std::runtime_error) << "while it is recorded, on a GPU";
  EXPECT_EQ(pick(replay, 1), (std::vector<float>{3, 4}));
}

TEST(ReplayTest, WhereARecordingHasNoRoomTheWorkIsSubmitted) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  if (!tests_on_gpu()) GTEST_SKIP() << "skipped, nothing is recorded on the CPU";
  Stream stream = test_stream();
  Replay replay;
  int calls = 0, done = 0;
  const auto work = [&] {
    if (++calls == 2) throw OutOfDeviceMemory("no room for a graph");
    ++done;
  };
  for (int i = 1; i <= 2; ++i) {
    replay.run(stream, 7, work);
    EXPECT_EQ(done, i);
    EXPECT_EQ(replay.recorded(), 0U);
  }
  replay.run(stream, 7, work);
  replay.run(stream, 7, work);
  EXPECT_EQ(replay.recorded(), 1U) << "there is room again";
}

TEST(ReplayTest, MemoryIsNotAllocatedWhileWorkIsRecorded) {
  if (!tests_on_gpu() || cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  Stream stream = test_stream();
  Pick pick(stream);
  Replay replay;
  replay.run(stream, 7, [] {});
  EXPECT_THROW(replay.run(stream, 7, [&] { Buffer(stream, 100); }), std::logic_error);
  EXPECT_EQ(pick(replay, 1), (std::vector<float>{3, 4}));
}

}  // namespace
}  // namespace vigil::kernels
