#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/buffer.h"
#include "kernels/device/cpu.h"
#include "kernels/device/dtype.h"
#include "kernels/device/error.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

TEST(DTypeTest, SizesAndNames) {
  EXPECT_EQ(size_of(DType::f32), 4U);
  EXPECT_EQ(size_of(DType::bf16), 2U);
  EXPECT_EQ(size_of(DType::f16), 2U);
  EXPECT_EQ(size_of(DType::i32), 4U);
  EXPECT_EQ(size_of(DType::e4m3), 1U);
  EXPECT_EQ(size_of(DType::u8), 1U);
  EXPECT_STREQ(name_of(DType::bf16), "bf16");
  EXPECT_STREQ(name_of(DType::e4m3), "e4m3");
}

TEST(DTypeTest, EveryBf16SurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const bf16 value{static_cast<std::uint16_t>(bits)};
    const float number = to_float(value);
    if (std::isnan(number)) {
      ASSERT_TRUE(std::isnan(to_float(to_bf16(number))));
    } else {
      ASSERT_EQ(to_bf16(number).bits, bits);
    }
  }
}

TEST(DTypeTest, FloatsRoundToTheNearestBf16AndTiesToEven) {
  // Between neighbours a < b of every binade: a quarter goes to a, three quarters to b, the half to the one
  // with an even last bit.
  for (std::uint16_t bits = 0x0080; bits < 0x7f7f; bits = static_cast<std::uint16_t>(bits + 13)) {
    const auto a = bf16{bits}, b = bf16{static_cast<std::uint16_t>(bits + 1)};
    const double low = to_float(a), step = double{to_float(b)} - low;
    ASSERT_EQ(to_bf16(static_cast<float>(low + 0.25 * step)).bits, a.bits);
    ASSERT_EQ(to_bf16(static_cast<float>(low + 0.75 * step)).bits, b.bits);
    ASSERT_EQ(to_bf16(static_cast<float>(low + 0.5 * step)).bits, bits % 2 == 0 ? a.bits : b.bits);
    ASSERT_EQ(to_bf16(static_cast<float>(-(low + 0.75 * step))).bits, b.bits | 0x8000U);
  }
}

TEST(DTypeTest, TheEndsOfBf16) {
  EXPECT_EQ(to_bf16(-0.0F).bits, 0x8000);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()).bits,
            0x7f80);  // nearer to infinity's place than to the largest bf16
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::infinity()).bits, 0x7f80);
  EXPECT_EQ(to_bf16(-std::numeric_limits<float>::infinity()).bits, 0xff80);
  // A NaN whose upper half alone would read as infinity.
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0x7f800001U)))));
  EXPECT_TRUE(std::isnan(to_float(to_bf16(std::bit_cast<float>(0xffffffffU)))));
}

TEST(DTypeTest, EveryF16IsItsFormulasNumber) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const int exponent = static_cast<int>((bits >> 10U) & 31U);
    const int fraction = static_cast<int>(bits & 1023U);
    const float number = to_float(f16{static_cast<std::uint16_t>(bits)});
    ASSERT_EQ(std::signbit(number), (bits & 0x8000U) != 0) << bits;
    if (exponent == 31) {
      ASSERT_EQ(std::isnan(number), fraction != 0) << bits;
      ASSERT_EQ(std::isinf(number), fraction == 0) << bits;
    } else {
      const double expected =
          exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
      ASSERT_EQ(std::abs(double{number}), expected) << bits;
    }
  }
}

TEST(MatrixTest, ColumnsAreAViewOnTheSameRows) {
  std::vector<float> data(12);
  const Matrix whole = dense(data.data(), DType::f32, 3, 4);
  const Matrix part = whole.columns(1, 2);
  EXPECT_EQ(part.rows, 3);
  EXPECT_EQ(part.cols, 2);
  part.row<float>(2)[1] = 5;
  EXPECT_EQ(data[2 * 4 + 2], 5);
  const ConstMatrix read = part;
  EXPECT_EQ(read.row<float>(2)[1], 5);
  EXPECT_EQ(read.stride, 4);
}

TEST(BufferTest, IsAlignedAndGrowsOnlyWhenItMust) {
  const Stream stream = Stream::cpu(1);
  Buffer buffer(stream, 100);
  ASSERT_NE(buffer.data(), nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
  EXPECT_EQ(buffer.bytes(), 100U);
  const std::byte* first = buffer.data();
  buffer.reserve(stream, 50);
  EXPECT_EQ(buffer.data(), first);
  EXPECT_EQ(buffer.bytes(), 100U);
  buffer.reserve(stream, 5000);
  EXPECT_EQ(buffer.bytes(), 5000U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0U);
  buffer.as<float>()[1249] = 1;
  const Buffer moved = std::move(buffer);
  EXPECT_EQ(moved.as<float>()[1249], 1.0F);
}

TEST(BufferTest, NothingIsABufferToo) {
  const Buffer none;
  EXPECT_EQ(none.bytes(), 0U);
  const Buffer empty(Stream::cpu(1), 0);
  EXPECT_EQ(empty.bytes(), 0U);
}

TEST(StreamTest, ThreadsAreCountedOrAllThatThereAre) {
  EXPECT_EQ(Stream::cpu(3).threads(), 3);
  EXPECT_GE(Stream::cpu().threads(), 1);
  EXPECT_EQ(Stream::cpu().kind(), DeviceKind::cpu);
  for (const int threads : {-1, 1025, std::numeric_limits<int>::max()})
    EXPECT_THROW(Stream::cpu(threads), std::invalid_argument) << threads;
  EXPECT_STRNE(cpu_isa(), "");
}

TEST(ParallelTest, EveryIndexOnceAndBlocksCoverTheRows) {
  for (const int threads : {1, 4}) {
    const Stream stream = Stream::cpu(threads);
    for (const std::int64_t count : {0, 1, 2, 97}) {
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
      parallel_for(stream, count, [&](std::int64_t i) { ++visits[static_cast<std::size_t>(i)]; });
      for (const auto& visit : visits) EXPECT_EQ(visit, 1);
      std::vector<std::atomic<int>> rows(static_cast<std::size_t>(count));
      parallel_blocks(stream, count, 8, [&](std::int64_t begin, std::int64_t end) {
        EXPECT_LE(end - begin, 8);
        for (std::int64_t i = begin; i < end; ++i) ++rows[static_cast<std::size_t>(i)];
      });
      for (const auto& row : rows) EXPECT_EQ(row, 1);
    }
  }
}

TEST(ParallelTest, AnExceptionComesOutAndTheOthersAreDone) {
  for (const int threads : {1, 4}) {
    std::atomic<int> done{0};
    const auto body = [&](std::int64_t i) {
      if (i == 3) throw std::runtime_error("three");
      ++done;
    };
    EXPECT_THROW(parallel_for(Stream::cpu(threads), 10, body), std::runtime_error);
    EXPECT_EQ(done, 9);
  }
}

// Around the sizes at which copies take another way.
TEST(TransferTest, BytesComeBackAsTheyWent) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stream stream = test_stream();
  constexpr std::size_t kMebi = std::size_t{1} << 20U;
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kMebi / 16 - 1, kMebi / 16, 4 * kMebi - 1,
                                 4 * kMebi + 1, 19 * kMebi + 3}) {
    std::vector<std::uint8_t> sent(size);
    for (std::size_t i = 0; i < size; ++i) sent[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
    const std::vector<std::uint8_t> expected = sent;
    const Buffer first(stream, size), second(stream, size);
    upload(stream, first.data(), sent.data(), size);
    std::fill(sent.begin(), sent.end(), std::uint8_t{0});  // it may change as soon as `upload` returns
    copy(stream, second.data(), first.data(), size);
    std::vector<std::uint8_t> back(size, 1);
    download(stream, back.data(), second.data(), size);
    ASSERT_TRUE(back == expected) << size;
  }
}

TEST(BufferTest, GrowsOnlyWhenItHasTo) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stream stream = test_stream();
  Buffer buffer(stream, 100);
  const std::byte* before = buffer.data();
  buffer.reserve(stream, 100);
  buffer.reserve(stream, 7);
  EXPECT_EQ(buffer.data(), before);
  EXPECT_EQ(buffer.bytes(), 100U);
  buffer.reserve(stream, 5000);
  EXPECT_EQ(buffer.bytes(), 5000U);
}

TEST(DeviceMemoryTest, WhatDoesNotFitIsToldAndLeavesTheGpuUsable) {
  if (!tests_on_gpu() || cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  const Stream stream = Stream::cuda();
  EXPECT_THROW(Buffer(stream, std::size_t{1} << 50U), OutOfDeviceMemory);
  const std::vector<std::uint8_t> sent{1, 2, 3};
  const Buffer small(stream, 3);
  upload(stream, small.data(), sent.data(), 3);
  std::vector<std::uint8_t> back(3);
  download(stream, back.data(), small.data(), 3);
  EXPECT_EQ(back, sent);
}

}  // namespace
}  // namespace vigil::kernels
