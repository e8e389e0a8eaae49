// Descriptions of pages as bytes.
#include "engine/kv/history/page_info.h"

#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/kv/history/history_pages.h"

namespace vigil::history {
namespace {

using ::testing::HasSubstr;
using testing::info_of;

PageInfo random_info(std::mt19937_64& random) {
  const auto any = [&] {
    constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
    const std::int64_t some[] = {0, 1, -1, 300, kLeast, -(kLeast + 1), static_cast<std::int64_t>(random())};
    return some[random() % std::size(some)];
  };
  PageInfo info;
  info.number = static_cast<std::uint64_t>(any());
  info.stream = random();
  for (auto& byte : info.fingerprint) byte = static_cast<std::uint8_t>(random());
  info.form = static_cast<std::uint8_t>(random());
  info.tokens = static_cast<std::uint32_t>(random());
  info.bytes = static_cast<std::uint64_t>(any());
  const auto patches = 1 + random() % 5;
  for (std::uint64_t i = 0; i < patches; ++i) {
    PatchInfo patch;
    patch.number = any();
    patch.place = any();
    patch.row = static_cast<std::int32_t>(any());
    patch.column = static_cast<std::int32_t>(any());
    patch.wall.from = any();
    patch.wall.to = std::max(patch.wall.from, any());
    patch.seconds = static_cast<double>(random()) / 7;
    const auto height = static_cast<std::int64_t>(random() % 9);
    const auto width = static_cast<std::int64_t>(random() % 9);
    patch.kept = random() % 3 == 0 ? base::GridMask::all(height, width) : base::GridMask::none(height, width);
    for (std::int64_t cell = 0; cell < patch.kept.cells(); ++cell)
      if (random() % 2 == 0) patch.kept.add(cell);
    info.patches.push_back(patch);
  }
  return info;
}

TEST(PageInfos, AreWhatTheyWereAndHaveOneEncoding) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 5000; ++i) {
    const PageInfo info = random_info(random);
    const std::string bytes = encode_page_info(info);
    const auto again = decode_page_info(bytes);
    ASSERT_TRUE(again) << i;
    ASSERT_EQ(*again, info) << i;
    ASSERT_EQ(summary_of(bytes), (PageSummary{info.number, info.form, info.bytes, wall_of(info)})) << i;
  }
}

TEST(PageInfos, CutOrLongerAreNone) {
  const std::string bytes = encode_page_info(info_of(12, testing::kFirstHour, 30, 10));
  ASSERT_TRUE(decode_page_info(bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(decode_page_info(bytes.substr(0, i))) << i;
  EXPECT_FALSE(decode_page_info(bytes + '\0'));
}

TEST(PageInfos, WhatBytesAreTakenIsWhatTheyWouldBeAgain) {
  std::mt19937_64 random(4);
  const std::string bytes = encode_page_info(info_of(12, testing::kFirstHour, 30, 4));
  int taken = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string other = bytes;
    for (int flips = 0; flips < 2; ++flips) other[random() % other.size()] = static_cast<char>(random());
    const auto info = decode_page_info(other);
    ASSERT_EQ(summary_of(other).has_value(), info.has_value());
    if (!info) continue;
    ++taken;
    ASSERT_EQ(encode_page_info(*info), other);
  }
  EXPECT_GT(taken, 1000);
}

TEST(PageInfos, AListOfPatchesIsNotBelieved) {
  // 2^63 patches are announced, and none come.
  std::string bytes = encode_page_info(info_of(1, testing::kFirstHour, 0, 1));
  const std::string head = bytes.substr(0, 2 + 1 + 8 + 16 + 1 + 1);
  EXPECT_FALSE(decode_page_info(head + "\xff\xff\xff\xff\xff\xff\xff\xff\x7f"));
}

TEST(PageInfos, SayWhatIsWrongWithThem) {
  PageInfo info = info_of(1, testing::kFirstHour, 0, 2);
  EXPECT_EQ(fault_of(info), std::nullopt);
  info.patches[1].wall.to = info.patches[1].wall.from - 1;
  EXPECT_THAT(fault_of(info).value(), HasSubstr("its patch 1 ends before it begins"));
  info.patches[1].kept = base::GridMask::none(300, 300);
  EXPECT_THAT(fault_of(info).value(), HasSubstr("its patch 1 has 90000 cells, of at most 65536"));
  info.patches.clear();
  EXPECT_THAT(fault_of(info).value(), HasSubstr("no patches"));
}

TEST(PageInfos, LastFromTheFirstPatchToTheLast) {
  PageInfo info = info_of(1, testing::kFirstHour, 5, 3);
  std::swap(info.patches[0], info.patches[2]);
  const std::int64_t hour = testing::kFirstHour * testing::kHour;
  EXPECT_EQ(wall_of(info), (WallRange{hour + 5 * testing::kSecond, hour + 8 * testing::kSecond - 1}));
}

TEST(PageInfos, TakeFewBytes) {
  // 15 seconds, a patch each, a third of 12 x 21 tokens.
  PageInfo info = info_of(170'000, testing::kFirstHour, 3000, 15);
  for (PatchInfo& patch : info.patches) {
    patch.kept = base::GridMask::none(12, 21);
    for (int cell = 0; cell < 252; cell += 3) patch.kept.add(cell);
  }
  EXPECT_LT(encode_page_info(info).size(), 900U);
}

TEST(Fingerprints, AreXxh3) {
  // Of no bytes at all: the value of the reference implementation's own tests.
  const Fingerprint none{0x99, 0xaa, 0x06, 0xd3, 0x01, 0x47, 0x98, 0xd8,
                         0x60, 0x01, 0xc3, 0x24, 0x46, 0x8d, 0x49, 0x7f};
  EXPECT_EQ(fingerprint_of({}), none);
  const auto bytes = testing::random_bytes(1, 1000);
  const std::span<const std::byte> all(bytes);
  const std::span<const std::byte> halves[] = {all.first(400), all.subspan(400)};
  EXPECT_EQ(fingerprint_of(halves), fingerprint_of({&all, 1})) << "of the bytes, however they are cut";
  EXPECT_NE(fingerprint_of({halves, 1}), fingerprint_of({&all, 1}));
}

}  // namespace
}  // namespace vigil::history
