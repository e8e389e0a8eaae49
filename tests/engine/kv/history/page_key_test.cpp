// Keys: the order of their bytes, and what is within what.
#include "engine/kv/history/page_key.h"

#include <algorithm>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::history {
namespace {

using namespace std::string_literals;

/// Names that are apt to be taken for each other.
const std::vector<std::string> kNames = {"",       "a",       "a\0"s,    "a\0\0"s, "a\0\x01"s, "a\0\xFF"s,
                                         "a\x01"s, "ab",      "\0"s,     "\x01"s,  "\xFF"s,    "\xFF\xFF"s,
                                         "a\xFF"s, "\0\x01"s, "\0\xFF"s, "b"};

PageKey random_key(std::mt19937_64& random) {
  const auto number = [&](std::uint64_t most) {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    const std::uint64_t some[] = {0, 1, 255, 256, 65535, 65536, kMost};
    return std::min(some[random() % std::size(some)], most);
  };
  PageKey key;
  key.part.hour.camera = {kNames[random() % kNames.size()], kNames[random() % kNames.size()]};
  key.part.hour.hour = static_cast<std::uint32_t>(number(std::numeric_limits<std::uint32_t>::max()));
  key.part.part = number(std::numeric_limits<std::uint64_t>::max());
  key.layers = {static_cast<std::uint16_t>(number(65535)), static_cast<std::uint16_t>(number(65535))};
  key.page = number(std::numeric_limits<std::uint64_t>::max());
  return key;
}

TEST(PageKeys, TheOrderOfBytesIsTheOrderOfKeys) {
  std::mt19937_64 random(20261129);
  for (int i = 0; i < 20000; ++i) {
    const PageKey a = random_key(random);
    const PageKey b = random_key(random);
    const std::string x = encode(a);
    const std::string y = encode(b);
    ASSERT_EQ(x < y, a < b);
    ASSERT_EQ(x == y, a == b);
  }
}

TEST(PageKeys, AreWhatTheyWere) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 5000; ++i) {
    const PageKey key = random_key(random);
    ASSERT_EQ(decode_page_key(encode(key)), key);
    ASSERT_EQ(decode_part_key(encode(key.part)), key.part);
    ASSERT_EQ(decode_hour_key(encode(key.part.hour)), key.part.hour);
    ASSERT_EQ(decode_camera(encode(key.part.hour.camera)), key.part.hour.camera);
  }
}

TEST(PageKeys, OfACameraBeginWithItsBytesAndNoOthersDo) {
  std::set<std::string> prefixes;
  for (const std::string& tenant : kNames)
    for (const std::string& camera : kNames) prefixes.insert(encode(CameraId{tenant, camera}));
  ASSERT_EQ(prefixes.size(), kNames.size() * kNames.size());
  std::mt19937_64 random(2);
  for (int i = 0; i < 2000; ++i) {
    const PageKey key = random_key(random);
    const std::string bytes = encode(key);
    const auto fitting = std::count_if(prefixes.begin(), prefixes.end(),
                                       [&](const std::string& prefix) { return bytes.starts_with(prefix); });
    ASSERT_EQ(fitting, 1);
    ASSERT_TRUE(bytes.starts_with(encode(key.part)));
    ASSERT_TRUE(encode(key.part).starts_with(encode(key.part.hour)));
    ASSERT_TRUE(bytes.starts_with(encode(key.part.hour.camera)));
  }
}

TEST(PageKeys, BytesThatAreNoneAreRefused) {
  const PageKey key{{{{"north", "gate\0x"s}, 495994}, 7}, {2, 4}, 99};
  const std::string bytes = encode(key);
  for (std::size_t i = 0; i < bytes.size(); ++i) EXPECT_FALSE(decode_page_key(bytes.substr(0, i))) << i;
  EXPECT_FALSE(decode_page_key(bytes + "x"));
  EXPECT_FALSE(decode_part_key(bytes));
  EXPECT_FALSE(
      decode_camera("a\0\x02"
                    "b\0\x01"s))
      << "an escape that there is not";
  EXPECT_FALSE(
      decode_camera("a\0\x01"
                    "b\0"s));
}

}  // namespace
}  // namespace vigil::history
