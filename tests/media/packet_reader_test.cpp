#include "media/packet_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/packet_history.h"
#include "tests/media/clip.h"
#include "tests/media/kept.h"

namespace vigil::media {
namespace {

using ::testing::HasSubstr;

class PacketReaderTest : public ::testing::Test {
 protected:
  std::string made(const Clip& clip) {
    write_clip(path_, clip);
    return path_;
  }

  Scratch scratch_;
  std::string path_ = scratch_ / "a.mp4";
};

TEST_F(PacketReaderTest, GivesEveryPacketAsTheDecoderFindsItsFrame) {
  Clip clip;
  clip.frames = 60;
  clip.gop = 12;
  clip.b_frames = 2;
  const auto reader = PacketReader::open(made(clip), {});
  std::vector<std::int64_t> timestamps;
  int keys = 0;
  while (const auto packet = reader->next()) {
    ASSERT_TRUE(packet->timestamp.has_value());
    timestamps.push_back(*packet->timestamp);
    keys += packet->key ? 1 : 0;
  }
  EXPECT_EQ(reader->broken_by(), "");
  std::vector<std::int64_t> shown;
  for (const OracleFrame& frame : oracle_decode(path_)) shown.push_back(frame.timestamp);
  EXPECT_THAT(timestamps, ::testing::UnorderedElementsAreArray(shown));
  EXPECT_EQ(keys, 5);
}

TEST_F(PacketReaderTest, WhatIsKeptCanBeCut) {
  Clip clip;
  clip.frames = 100;
  clip.gop = 25;
  ReadOptions options;
  options.history = history();
  const auto reader = PacketReader::open(made(clip), options);
  while (const auto packet = reader->next())
    if (packet->key) options.history->anchor(packet->timestamp, 10 + packet->seconds);
  const Cut cut = options.history->cut({11, 13, 12.2});
  EXPECT_NEAR(cut.from(), 11, 0.05);
  EXPECT_NEAR(cut.to(), 13, 0.05);
  EXPECT_NEAR(cut.still(12.2).seconds, 12.2, 0.041);
}

TEST_F(PacketReaderTest, BadSourcesAreNamed) {
  EXPECT_THAT(reason_of_failure([] { PacketReader::open("/nowhere/a.mp4", {}); }),
              HasSubstr("/nowhere/a.mp4: "));
  write_bytes(path_, "");
  EXPECT_THAT(reason_of_failure([&] { PacketReader::open(path_, {}); }), HasSubstr("the file is empty"));
  Clip early;
  early.muxer_options = {{"movflags", "+faststart"}};
  write_clip(path_, early);
  const std::string fast = read_bytes(path_);
  write_bytes(path_, fast.substr(0, fast.size() / 2));
  const auto reader = PacketReader::open(path_, {});
  int packets = 0;
  while (reader->next()) ++packets;
  EXPECT_GT(packets, 5);
  EXPECT_LT(packets, 50);
  EXPECT_NE(reader->broken_by(), "");
}

}  // namespace
}  // namespace vigil::media
