// What crosses, byte by byte.
#include "cluster/bulk/wire.h"

#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xxhash.h>

#include "tests/cluster/bulk/heard.h"

namespace vigil::cluster {
namespace {

using testing::made_bytes;

Frames changed(const Frames& frames, std::size_t frame, std::string text) {
  Frames result = frames;
  result[frame] = Bytes(std::move(text));
  return result;
}

/// With the sum that belongs to it.
std::string sealed(std::string text) {
  const std::uint64_t sum = XXH3_64bits(text.data(), text.size());
  return text.append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

std::vector<BulkNumbered> some_messages() {
  return {{7, {"header", {made_bytes(1, 100), made_bytes(2, 20'000), Bytes()}}},
          {8, {"", {}}},
          {9, {"last", {made_bytes(3, 9000), made_bytes(4, 1)}}}};
}

TEST(BulkWireTest, MessagesComeBack) {
  const auto messages = some_messages();
  std::size_t begin = 0;
  const Frames frames = encode_together(messages, begin, true);
  EXPECT_EQ(begin, 3U);
  ASSERT_EQ(frames.size(), 3U) << "two parts are large";
  EXPECT_EQ(frames[1].data(), messages[0].message.parts[1].data()) << "which are not copied";
  const auto decoded = decode(frames, {}, true);
  ASSERT_TRUE(std::holds_alternative<BulkParcel>(decoded));
  const auto& data = std::get<BulkData>(std::get<BulkParcel>(decoded));
  ASSERT_EQ(data.messages.size(), messages.size());
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(data.messages[i].number, messages[i].number);
    EXPECT_EQ(data.messages[i].message.header, messages[i].message.header);
    ASSERT_EQ(data.messages[i].message.parts.size(), messages[i].message.parts.size());
    for (std::size_t part = 0; part < messages[i].message.parts.size(); ++part)
      EXPECT_EQ(data.messages[i].message.parts[part].text(), messages[i].message.parts[part].text());
  }
}

TEST(BulkWireTest, SmallMessagesGoTogetherWithinBounds) {
  std::vector<BulkNumbered> messages;
  for (std::uint64_t i = 0; i < 100; ++i) messages.push_back({i, {"", {made_bytes(i, 4096)}}});
  std::size_t begin = 0;
  std::size_t parcels = 0;
  while (begin < messages.size()) {
    const Frames frames = encode_together(messages, begin, true);
    EXPECT_EQ(frames.size(), 1U);
    EXPECT_LE(frames[0].size(), kTogether + 8192);
    ++parcels;
  }
  EXPECT_EQ(parcels, 13U);
}

TEST(BulkWireTest, TheLargestFirstFrameIsAsLargeAsTold) {
  const BulkLimits limits{.message = 1 << 20, .header = 1000, .parts = 40};
  std::vector<BulkNumbered> messages = {{1,
                                         {"",
                                          {made_bytes(1, kSmallPart), made_bytes(1, kSmallPart),
                                           made_bytes(1, kSmallPart), made_bytes(1, kSmallPart - 100)}}},
                                        {2, {std::string(1000, 'x'), {}}}};
  for (int i = 0; i < 40; ++i) messages[1].message.parts.push_back(made_bytes(1, kSmallPart));
  std::size_t begin = 0;
  const Frames frames = encode_together(messages, begin, true);
  EXPECT_EQ(begin, 2U);
  EXPECT_LE(frames[0].size(), most_bytes_of_first_frame(limits));
}

TEST(BulkWireTest, ControlParcelsStaySmall) {
  BulkHello hello;
  hello.from = std::string(kNameBytes, 'x');
  hello.to = std::string(kNameBytes, 'y');
  EXPECT_LE(encode(hello)[0].size(), kControlBytes);
  EXPECT_LE(encode(BulkCredit{std::vector<std::uint64_t>(kCreditNumbers, 1), {}})[0].size(), kControlBytes);
  const auto decoded = decode(encode(hello), {}, true);
  ASSERT_TRUE(std::holds_alternative<BulkParcel>(decoded));
  EXPECT_EQ(std::get<BulkHello>(std::get<BulkParcel>(decoded)).from, hello.from);
}

TEST(BulkWireTest, AnyChangedBitIsNoticed) {
  const auto messages = some_messages();
  std::size_t begin = 0;
  const Frames frames = encode_together(messages, begin, true);
  for (std::size_t frame = 0; frame < frames.size(); ++frame) {
    for (std::size_t at = 0; at < frames[frame].size(); at += frame == 0 ? 1 : 97) {
      std::string text(frames[frame].text());
      text[at] = static_cast<char>(text[at] ^ (1 << (at % 8)));
      EXPECT_EQ(std::get<BulkEnd>(decode(changed(frames, frame, text), {}, true)), BulkEnd::checksum);
    }
  }
}

TEST(BulkWireTest, PiecesAreRefused) {
  std::size_t begin = 0;
  const Frames frames = encode_together(some_messages(), begin, true);
  for (std::size_t size = 0; size < frames[0].size(); ++size)
    EXPECT_TRUE(std::holds_alternative<BulkEnd>(
        decode(changed(frames, 0, std::string(frames[0].text().substr(0, size))), {}, true)));
  EXPECT_EQ(std::get<BulkEnd>(decode({}, {}, true)), BulkEnd::protocol);
  EXPECT_EQ(std::get<BulkEnd>(decode({frames[0]}, {}, true)), BulkEnd::protocol);
  EXPECT_EQ(std::get<BulkEnd>(decode({frames[0], frames[1]}, {}, true)), BulkEnd::protocol);
  EXPECT_EQ(std::get<BulkEnd>(decode({frames[0], frames[1], frames[2], frames[2]}, {}, true)),
            BulkEnd::protocol);
  EXPECT_EQ(std::get<BulkEnd>(decode({frames[0], frames[2], frames[1]}, {}, true)), BulkEnd::protocol);
}

TEST(BulkWireTest, WhatIsSealedAndMakesNoSenseIsRefused) {
  // Whoever means harm can compute sums: every first frame that a parcel might have, with bytes replaced.
  std::mt19937_64 random(3);
  std::size_t begin = 0;
  std::vector<Frames> parcels = {encode_together(some_messages(), begin, true),
                                 encode(BulkHello{"a", "b", 1, {2, 3}, {}, true}),
                                 encode(BulkWelcome{}),
                                 encode(BulkCredit{{1, 2, 3}, {}}),
                                 encode(BulkAlive{}),
                                 encode(BulkBye{})};
  const BulkLimits limits{.bytes = 1 << 20, .message = 1 << 20, .header = 100, .parts = 10};
  std::size_t sane = 0;
  for (int i = 0; i < 20'000; ++i) {
    const Frames& frames = parcels[random() % parcels.size()];
    std::string text(frames[0].text().substr(0, frames[0].size() - 8));
    for (std::size_t changes = random() % 4; changes > 0; --changes)
      text[random() % std::min<std::size_t>(text.size(), 200)] =
          static_cast<char>(random() % 4 == 0 ? 0xff : random());
    if (random() % 4 == 0) text.resize(random() % (text.size() + 1));
    const auto decoded = decode(changed(frames, 0, sealed(text)), limits, true);
    const auto* parcel = std::get_if<BulkParcel>(&decoded);
    if (parcel == nullptr) continue;
    ++sane;
    const auto* data = std::get_if<BulkData>(parcel);
    if (data == nullptr) continue;
    for (const BulkNumbered& each : data->messages) {
      EXPECT_LE(each.message.bytes(), limits.message);
      EXPECT_LE(each.message.header.size(), limits.header);
      EXPECT_LE(each.message.parts.size(), limits.parts);
    }
  }
  EXPECT_GT(sane, 1000U);
}

}  // namespace
}  // namespace vigil::cluster
