// Bad input: one clear line, or what can be decoded and a count of what could not.
#include <algorithm>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/clip.h"

namespace vigil::media {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A line names the file first, and is one line.
auto one_line_about(const std::string& path) {
  return AllOf(StartsWith(path + ": "), Not(HasSubstr("\n")), testing::SizeIs(testing::Gt(path.size() + 5)));
}

TEST(Damage, WhatCannotBeOpenedSaysWhy) {
  const Scratch scratch;
  EXPECT_EQ(error_of(scratch / "missing.mp4"), scratch / "missing.mp4: No such file or directory");

  write_bytes(scratch / "empty.mp4", "");
  EXPECT_THAT(error_of(scratch / "empty.mp4"),
              AllOf(one_line_about(scratch / "empty.mp4"), HasSubstr("the file is empty")));

  for (const char* name : {"notes.txt", "notes.mp4", "notes", "notes.md"}) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "Nothing to see here, and certainly no video.\n";
    write_bytes(scratch / name, text);
    EXPECT_THAT(error_of(scratch / name), AllOf(one_line_about(scratch / name), HasSubstr("Invalid data")))
        << name;
  }

  std::filesystem::create_directory(scratch / "folder");
  EXPECT_THAT(error_of(scratch / "folder"),
              AllOf(one_line_about(scratch / "folder"), HasSubstr("is a folder")));

  EXPECT_THAT(error_of(""), HasSubstr("empty"));
}

TEST(Damage, SoundAloneIsNoVideo) {
  const Scratch scratch;
  // A WAVE file of 1000 samples of silence.
  std::string wave(
      "RIFF\x04\x08\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x40\x1f\0\0\x80\x3e\0\0\x02\0\x10\0data\xd0\x07\0\0",
      44);
  wave.append(2000, '\0');
  write_bytes(scratch / "sound.wav", wave);
  EXPECT_THAT(error_of(scratch / "sound.wav"),
              AllOf(one_line_about(scratch / "sound.wav"), HasSubstr("no video stream"),
                    HasSubstr("Stream not found")));
}

TEST(Damage, AnUnknownCodecIsNamed) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "mpeg4";
  write_clip(scratch / "a.avi", clip);
  std::string bytes = read_bytes(scratch / "a.avi");
  int replaced = 0;
  for (std::size_t at = bytes.find("FMP4"); at != std::string::npos; at = bytes.find("FMP4", at)) {
    bytes.replace(at, 4, "QZX7");
    ++replaced;
  }
  ASSERT_GT(replaced, 0);
  write_bytes(scratch / "a.avi", bytes);
  EXPECT_THAT(error_of(scratch / "a.avi"),
              AllOf(one_line_about(scratch / "a.avi"), HasSubstr("QZX7"), HasSubstr("Decoder not found")));
}

TEST(Damage, CredentialsAreNeverShown) {
  ReadOptions options;
  options.open_timeout = std::chrono::seconds(20);
  for (const char* url :
       {"rtsp://admin:hunter2@127.0.0.1:1/live", "http://admin:hunter2@127.0.0.1:1/v.mp4?token=hunter2",
        "nosuchprotocol://admin:hunter2@host/x"}) {
    const std::string error = error_of(url, options);
    EXPECT_THAT(error, AllOf(HasSubstr("://***@"), Not(HasSubstr("hunter2"))));
  }
  EXPECT_THAT(error_of("rtsp://admin:hunter2@127.0.0.1:1/live", options), HasSubstr("Connection refused"));
}

class TruncatedIn : public testing::TestWithParam<const char*> {};

TEST_P(TruncatedIn, TheRestIsDecodedAndTheLossIsTold) {
  const Scratch scratch;
  const std::string path = scratch / (std::string("a.") + GetParam());
  Clip clip;
  clip.frames = 150;
  clip.b_frames = 2;
  if (std::string(GetParam()) == "mp4") clip.muxer_options = {{"movflags", "faststart"}};
  write_clip(path, clip);
  ReadOptions options;
  options.fps = 1e9;
  const ReadResult whole = read_all(path, options);
  ASSERT_EQ(whole.samples.size(), 150u);
  EXPECT_EQ(whole.stats.damaged_packets, 0u);
  EXPECT_EQ(whole.stats.last_damage, "");

  const std::string bytes = read_bytes(path);
  // Not at a packet's edge; the last sector of a TS file is cut as well.
  write_bytes(path, bytes.substr(0, bytes.size() * 6 / 10 + 77));
  for (const int threads : {1, 2}) {
    options.threads = threads;
    const ReadResult part = read_all(path, options);
    EXPECT_GT(part.samples.size(), 60u);
    EXPECT_LT(part.samples.size(), 120u);
    EXPECT_GE(part.stats.damaged_packets, 1u);
    EXPECT_NE(part.stats.last_damage, "");
    for (std::size_t i = 0; i + 5 < part.samples.size(); ++i) {
      ASSERT_TRUE(part.samples[i].image->rgb == whole.samples[i].image->rgb) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Media, TruncatedIn, testing::Values("mp4", "mkv", "avi", "ts", "flv"));

// Nothing looks broken then: only the announced length tells.
TEST(Damage, AFileCutBetweenPacketsIsNotShortInSilence) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "flv";
  clip.frames = 150;
  write_clip(scratch / "a.flv", clip);
  const std::string bytes = read_bytes(scratch / "a.flv");
  // A header of 9 bytes and a number of 4; then tags of 11 bytes, their data, and a number of 4.
  std::size_t edge = 13;
  while (edge < bytes.size() / 2) {
    std::size_t size = 0;
    for (std::size_t i = 1; i <= 3; ++i) size = size * 256 + static_cast<unsigned char>(bytes[edge + i]);
    edge += 11 + size + 4;
  }
  write_bytes(scratch / "a.flv", bytes.substr(0, edge));
  const ReadResult part = read_all(scratch / "a.flv");
  EXPECT_GT(part.stats.decoded_frames, 50u);
  EXPECT_LT(part.stats.decoded_frames, 125u);
  EXPECT_EQ(part.stats.damaged_packets, 1u);
  EXPECT_THAT(part.stats.last_damage, testing::MatchesRegex("the data ends at [0-9.]+ s of 6.0[0-9] s"));
}

TEST(Damage, AFileCutBeforeItsIndexSaysSo) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  const std::string bytes = read_bytes(scratch / "a.mp4");
  write_bytes(scratch / "a.mp4", bytes.substr(0, bytes.size() / 2));
  EXPECT_EQ(error_of(scratch / "a.mp4"),
            scratch / "a.mp4: Invalid data found when processing input (moov atom not found)");
}

TEST(Damage, ACorruptPacketIsCountedAndPassedOver) {
  const Scratch scratch;
  for (const char* name : {"a.mp4", "a.mkv", "a.h264", "a.avi", "a.mpg"}) {
    Clip clip;
    clip.frames = 150;
    clip.b_frames = 2;
    if (std::string(name) == "a.avi") clip.codec = "mpeg4";
    if (std::string(name) == "a.mpg") clip.codec = "mpeg2video";
    write_clip(scratch / name, clip);
    ReadOptions options;
    const ReadResult whole = read_all(scratch / name, options);
    std::string bytes = read_bytes(scratch / name);
    for (std::size_t i = bytes.size() / 2; i < bytes.size() / 2 + 900; ++i)
      bytes[i] = static_cast<char>(i * 37 + 11);
    write_bytes(scratch / name, bytes);
    for (const int threads : {1, 2}) {
      options.threads = threads;
      testing::internal::CaptureStderr();
      const ReadResult result = read_all(scratch / name, options);
      EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "FFmpeg's own log";
      EXPECT_GE(result.stats.damaged_packets, 1u) << name;
      EXPECT_LT(result.stats.damaged_packets, 60u) << name;
      EXPECT_NE(result.stats.last_damage, "") << name;
      EXPECT_EQ(result.samples.size(), whole.samples.size()) << name;
      EXPECT_NEAR(result.samples.back().seconds, whole.samples.back().seconds, 0.3) << name;
    }
  }
}

TEST(Damage, NothingDecodableIsAnError) {
  const Scratch scratch;
  Clip clip;
  clip.muxer_options = {{"movflags", "faststart"}};
  write_clip(scratch / "a.mp4", clip);
  std::string bytes = read_bytes(scratch / "a.mp4");
  const std::size_t data = bytes.find("mdat");
  ASSERT_NE(data, std::string::npos);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(data) + 4, bytes.end(), '\x55');
  write_bytes(scratch / "a.mp4", bytes);
  for (const int threads : {1, 2}) {
    ReadOptions options;
    options.threads = threads;
    EXPECT_THAT(error_of(scratch / "a.mp4", options),
                AllOf(one_line_about(scratch / "a.mp4"), HasSubstr("no frame could be decoded")));
  }
}

// Whatever bytes are broken: it ends, it does not crash, time goes on, and an error names the file.
TEST(Damage, AnyBrokenBytesAreSurvived) {
  const Scratch scratch;
  std::uint64_t state = 7;
  const auto random = [&](std::size_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(state >> 33) % limit;
  };
  for (const char* name : {"a.mp4", "a.mkv", "a.ts", "a.h264", "a.avi", "a.flv"}) {
    Clip clip;
    clip.frames = 40;
    clip.b_frames = 2;
    clip.size = {96, 96};
    if (std::string(name) == "a.avi") clip.codec = "mpeg4";
    write_clip(scratch / name, clip);
    const std::string sound = read_bytes(scratch / name);
    for (int round = 0; round < 25; ++round) {
      std::string bytes = sound;
      const std::size_t hits = 1 + random(40);
      for (std::size_t i = 0; i < hits; ++i) bytes[random(bytes.size())] = static_cast<char>(random(256));
      if (round % 5 == 0) bytes.resize(random(bytes.size()));
      const std::string path = scratch / ("broken-" + std::string(name));
      write_bytes(path, bytes);
      ReadOptions options;
      options.fps = 10;
      options.threads = 1 + round % 3;
      try {
        const ReadResult result = read_all(path, options);
        double last = 0;
        for (const SampledFrame& sample : result.samples) {
          EXPECT_GE(sample.seconds, last);
          last = sample.seconds;
        }
        EXPECT_EQ(result.stats.damaged_packets == 0, result.stats.last_damage.empty());
      } catch (const Error& error) {
        EXPECT_THAT(std::string(error.what()), one_line_about(path));
      }
    }
  }
}

}  // namespace
}  // namespace vigil::media
