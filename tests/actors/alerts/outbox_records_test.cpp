// Bytes on the disk to values and back, and all that is no such bytes.
#include "actors/alerts/outbox_records.h"

#include <random>

#include <gtest/gtest.h>

#include "tests/actors/outboxes.h"

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;
using testing::kStart;

std::string number(std::uint64_t value) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

TEST(OutboxRecords, AnEventComesBackAsItWas) {
  for (const std::string& body : {std::string(), std::string("\0\xff\n", 3), std::string(70'000, 'x')}) {
    const OutboxEvent event{7, "alert/n/gate/", 9, kStart + 5ms, body};
    const std::string bytes = encode_event(event, kStart + 1h);
    const auto head = decode_event_head(bytes);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->stamp, kStart + 1h);
    const auto back = decode_event(7, bytes);
    ASSERT_TRUE(back);
    EXPECT_EQ(back->position, 7U);
    EXPECT_EQ(back->topic, event.topic);
    EXPECT_EQ(back->sequence, event.sequence);
    EXPECT_EQ(back->time, event.time);
    EXPECT_EQ(back->body, body);
  }
}

TEST(OutboxRecords, AnEventOfAnOlderLayoutHasNoStamp) {
  const std::string bytes = number(9) + number(1'785'578'400'000'000) + number(2) + "a/" + "body";
  const auto event = decode_event(3, bytes);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->topic, "a/");
  EXPECT_EQ(event->sequence, 9U);
  EXPECT_EQ(event->time, kStart);
  EXPECT_EQ(event->body, "body");
  EXPECT_EQ(decode_event_head(bytes)->stamp, std::nullopt);
}

TEST(OutboxRecords, WhatIsCutOffOrMakesNoSenseIsNoEvent) {
  const std::string whole = encode_event({1, "a/", 2, kStart, ""}, kStart);
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(decode_event_head(whole.substr(0, length))) << length;
  const std::string old = number(9) + number(1) + number(2) + "a/";
  for (std::size_t length = 0; length < old.size(); ++length)
    EXPECT_FALSE(decode_event_head(old.substr(0, length))) << length;
  const std::uint64_t huge = ~std::uint64_t{0};
  EXPECT_FALSE(decode_event_head(number(9) + number(1) + number(huge) + "a/")) << "a topic of 2^64 bytes";
  EXPECT_FALSE(decode_event_head(number(9) + number(huge >> 1U) + number(0))) << "no such time";
  EXPECT_FALSE(decode_number(""));
  EXPECT_FALSE(decode_number("123456789"));
  EXPECT_FALSE(decode_position_key(""));
  EXPECT_FALSE(decode_position_key("e1234567"));
}

TEST(OutboxRecords, KeysKeepTheOrderOfTheirNumbers) {
  EXPECT_LT(position_key('e', 255), position_key('e', 256));
  EXPECT_LT(index_key("a/", 9), index_key("a/", 1'000'000));
  EXPECT_EQ(decode_position_key(position_key('p', 1ULL << 40U)), 1ULL << 40U);
}

TEST(OutboxRecords, EveryDamagedBitOfAWatermarkIsSeen) {
  const Watermark watermark{5, "6f1c6f1c6f1c6f1c", 8812, 17, kStart};
  const std::string bytes = encode_watermark(watermark);
  ASSERT_EQ(bytes.size(), kWatermarkBytes);
  const auto back = decode_watermark(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->counter, 5U);
  EXPECT_EQ(back->identity, watermark.identity);
  EXPECT_EQ(back->position, 8812U);
  EXPECT_EQ(back->settled, 17U);
  EXPECT_EQ(back->time, kStart);
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    EXPECT_FALSE(decode_watermark(flipped)) << bit;
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    std::string torn = bytes;
    for (std::size_t at = random() % torn.size(); at < torn.size(); ++at)
      torn[at] = static_cast<char>(random());
    EXPECT_TRUE(torn == bytes || !decode_watermark(torn));
  }
  EXPECT_FALSE(decode_watermark(""));
  EXPECT_FALSE(decode_watermark(std::string(kWatermarkBytes, '\0')));
  EXPECT_FALSE(decode_watermark(bytes + '\0'));
  EXPECT_THROW(encode_watermark({1, std::string(65, 'x'), 1, 1, kStart}), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::actors
