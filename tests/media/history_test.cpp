// Clips and stills out of a stream's last packets, against the source as FFmpeg alone reads it.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/clip.h"
#include "tests/media/kept.h"

namespace vigil::media {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

struct SourcePacket {
  std::string data;
  double pts = 0;
  double dts = 0;
  bool key = false;
};

struct Source {
  std::vector<SourcePacket> packets;
  Size size;
  double duration = 0;
  std::string codec;
  std::string container;
};

// All packets of a file by FFmpeg's demuxer alone.
Source packets_of(const std::string& path) {
  AVFormatContext* raw = nullptr;
  if (avformat_open_input(&raw, path.c_str(), nullptr, nullptr) < 0) throw std::runtime_error(path);
  const InputContext input(raw);
  if (avformat_find_stream_info(raw, nullptr) < 0 || raw->nb_streams != 1) throw std::runtime_error(path);
  const AVStream& stream = *raw->streams[0];
  Source source;
  source.size = {stream.codecpar->width, stream.codecpar->height};
  source.duration = static_cast<double>(raw->duration) / AV_TIME_BASE;
  source.codec = avcodec_get_name(stream.codecpar->codec_id);
  source.container = raw->iformat->name;
  const double base = av_q2d(stream.time_base);
  const Packet packet = make_packet();
  for (; av_read_frame(raw, packet.get()) >= 0; av_packet_unref(packet.get())) {
    source.packets.push_back(
        {std::string(reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size)),
         static_cast<double>(packet->pts) * base, static_cast<double>(packet->dts) * base,
         (packet->flags & AV_PKT_FLAG_KEY) != 0});
  }
  return source;
}

// The coded pictures of an H.264 or H.265 packet, without what frames them: start codes, or lengths.
std::string pictures_of(const std::string& packet, bool start_codes, bool h265) {
  std::string pictures;
  const auto add = [&](std::string unit) {
    while (!unit.empty() && unit.back() == '\0') unit.pop_back();
    if (unit.empty()) return;
    const auto first = static_cast<unsigned char>(unit[0]);
    const unsigned type = h265 ? (first >> 1U) & 63U : first & 31U;
    if (h265 ? type < 32 : type >= 1 && type <= 5) pictures += unit;
  };
  if (!start_codes) {
    for (std::size_t at = 0; at + 4 <= packet.size();) {
      std::size_t size = 0;
      for (std::size_t i = 0; i < 4; ++i) size = size << 8U | static_cast<unsigned char>(packet[at + i]);
      add(packet.substr(at + 4, size));
      at += 4 + size;
    }
    return pictures;
  }
  const std::string code("\0\0\1", 3);
  for (std::size_t at = packet.find(code); at != std::string::npos;) {
    const std::size_t next = packet.find(code, at + 3);
    add(packet.substr(at + 3, next == std::string::npos ? next : next - at - 3));
    at = next;
  }
  return pictures;
}

// Where the clip's packets begin within the source's; -1 if they are not a run of them, byte for byte.
int run_of(const Source& clip, const Source& source) {
  for (std::size_t at = 0; at + clip.packets.size() <= source.packets.size(); ++at) {
    if (std::equal(clip.packets.begin(), clip.packets.end(), source.packets.begin() + static_cast<int>(at),
                   [](const SourcePacket& a, const SourcePacket& b) { return a.data == b.data; })) {
      return static_cast<int>(at);
    }
  }
  return -1;
}

struct Case {
  std::string name;
  std::string codec = "libx264";
  std::string container;
  int b_frames = 0;
};

class Clips : public testing::TestWithParam<Case> {};

TEST_P(Clips, AreTheSourcesOwnPacketsFromAKeyFrameOn) {
  const Case& param = GetParam();
  const Scratch scratch;
  const std::string path = scratch / ("source." + param.container);
  Clip clip;
  clip.codec = param.codec;
  clip.frames = 250;
  clip.gop = 25;
  clip.b_frames = param.b_frames;
  if (param.codec == "libx265")
    clip.options = {{"preset", "ultrafast"}, {"x265-params", "log-level=none:scenecut=0:open-gop=0"}};
  if (param.codec == "mjpeg") clip.format = AV_PIX_FMT_YUVJ420P;
  write_clip(path, clip);
  const History kept = history();
  watch(path, kept, 100);

  const Cut cut = kept->cut({103.3, 106.6, 105});
  // Each JPEG is a key frame.
  const double begin = param.codec == "mjpeg" ? 103.28 : 103;
  EXPECT_NEAR(cut.from(), begin, 0.001) << "the key frame before";
  EXPECT_GE(cut.to(), 106.6);
  EXPECT_LT(cut.to(), 106.85);
  const std::string file = scratch / ("clip" + cut.extension());
  cut.write_clip(file);

  Source whole = packets_of(path);
  Source made = packets_of(file);
  if (param.container == "ts") {
    // MP4 frames the same pictures in another way.
    const bool h265 = param.codec == "libx265";
    for (SourcePacket& packet : whole.packets) packet.data = pictures_of(packet.data, true, h265);
    for (SourcePacket& packet : made.packets) packet.data = pictures_of(packet.data, false, h265);
    ASSERT_FALSE(made.packets.empty() || made.packets.front().data.empty());
  }
  EXPECT_EQ(made.codec, whole.codec);
  EXPECT_EQ(made.size, whole.size);
  ASSERT_THAT(made.packets, SizeIs(testing::AllOf(testing::Ge(83U), testing::Le(97U))));
  const int at = run_of(made, whole);
  ASSERT_GE(at, 0) << "not the source's packets";
  EXPECT_EQ(at, std::lround((begin - 100) * 25));
  EXPECT_TRUE(made.packets.front().key);
  EXPECT_NEAR(made.packets.front().pts, 0, cut.extension() == ".mp4" ? 0.001 : 0.15);
  for (std::size_t i = 1; i < made.packets.size(); ++i) {
    const SourcePacket& packet = made.packets[i];
    const SourcePacket& original = whole.packets[static_cast<std::size_t>(at) + i];
    EXPECT_GT(packet.dts, made.packets[i - 1].dts);
    EXPECT_GE(packet.pts, packet.dts);
    EXPECT_NEAR(packet.pts - made.packets.front().pts,
                original.pts - whole.packets[static_cast<std::size_t>(at)].pts, 0.0011)
        << i;
  }
  EXPECT_NEAR(made.duration, cut.to() - cut.from(), 0.1);
  // Its frames are those of the source.
  std::vector<char> types;
  for (const OracleFrame& frame : oracle_decode(path)) types.push_back(frame.type);
  const std::vector<OracleFrame> frames = oracle_decode(file);
  ASSERT_EQ(frames.size(), made.packets.size());
  for (std::size_t i = 0; i + 3 < frames.size(); ++i)
    EXPECT_EQ(frames[i].type, types[static_cast<std::size_t>(at) + i]) << i;
}

INSTANTIATE_TEST_SUITE_P(
    Sources, Clips,
    testing::Values(Case{"h264_mp4", "libx264", "mp4"}, Case{"h264_b_frames_mp4", "libx264", "mp4", 3},
                    Case{"h264_b_frames_mkv", "libx264", "mkv", 2}, Case{"h264_ts", "libx264", "ts"},
                    Case{"h264_b_frames_ts", "libx264", "ts", 3}, Case{"h265_mp4", "libx265", "mp4"},
                    Case{"h265_b_frames_mp4", "libx265", "mp4", 3}, Case{"h265_ts", "libx265", "ts", 2},
                    Case{"mpeg4_mp4", "mpeg4", "mp4"}, Case{"mjpeg_mkv", "mjpeg", "mkv"}),
    [](const auto& each) { return each.param.name; });

TEST(History, AClipGoesOnWhereTheSourcesClockWasSet) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 100;
  clip.gop = 25;
  clip.b_frames = 2;
  write_clip(scratch / "a.ts", clip);
  // The second half begins at 0 again; the third an hour later.
  clip.muxer_options = {{"output_ts_offset", "3600000000"}};
  write_clip(scratch / "b.ts", clip);
  const std::string half = read_bytes(scratch / "a.ts");
  const std::string path = scratch / "jumps.ts";
  write_bytes(path, half + half + read_bytes(scratch / "b.ts"));
  const History kept = history();
  watch(path, kept);
  const Cut cut = kept->cut({2.5, 10.5, 6});
  EXPECT_NEAR(cut.from(), 2, 0.1);
  cut.write_clip(scratch / "clip.mp4");
  const Source made = packets_of(scratch / "clip.mp4");
  EXPECT_NEAR(made.duration, 8.5, 0.3) << "2 s to 10.5 s, over both jumps";
  EXPECT_NEAR(static_cast<double>(made.packets.size()), 8.5 * 25, 6);
  for (std::size_t i = 1; i < made.packets.size(); ++i) {
    EXPECT_GT(made.packets[i].dts, made.packets[i - 1].dts);
    EXPECT_LT(made.packets[i].dts, made.packets[i - 1].dts + 0.2);
  }
  EXPECT_EQ(oracle_decode(scratch / "clip.mp4").size(), made.packets.size());
}

TEST(History, AClipSaysWhatItWasWrittenWith) {
  const Scratch scratch;
  const std::string note = "{\"from\": \"10:00\", \"name\": \"\\u00e4\"} \xc3\xa4 = ;#\\ 'x'";
  const auto cut_of = [&](const char* const codec) {
    Clip clip;
    clip.codec = codec;
    const std::string file = scratch / (std::string(codec) + ".mkv");
    write_clip(file, clip);
    const History kept = history();
    watch(file, kept);
    return kept->cut({0, 2, 1});
  };
  const Cut cut = cut_of("libx264");
  const Cut other = cut_of("ffv1");
  ASSERT_EQ(cut.extension(), ".mp4");
  ASSERT_EQ(other.extension(), ".mkv");
  for (const Cut& each : {cut, other}) {
    const std::string file = scratch / ("clip" + each.extension());
    each.write_clip(file, note);
    EXPECT_EQ(note_of(file), note) << file;
    each.write_clip(file);
    EXPECT_EQ(note_of(file), "") << file;
  }
  cut.write_clip(scratch / "noted.mp4", note);
  cut.write_clip(scratch / "bare.mp4");
  const auto noted = packets_of(scratch / "noted.mp4").packets;
  const auto bare = packets_of(scratch / "bare.mp4").packets;
  ASSERT_EQ(noted.size(), bare.size());
  for (std::size_t i = 0; i < noted.size(); ++i) EXPECT_EQ(noted[i].data, bare[i].data);

  write_bytes(scratch / "noise.mp4", std::string(4000, 'x'));
  write_bytes(scratch / "empty.mkv", "");
  for (const char* const name : {"noise.mp4", "empty.mkv", "none.mp4"})
    EXPECT_THAT(reason_of_failure([&] { note_of(scratch / name); }), HasSubstr(name));
}

TEST(History, TimesFollowTheReadersOwn) {
  // A camera's time may leap when the camera falls behind the clock.
  const Scratch scratch;
  Clip clip;
  clip.frames = 200;
  clip.gop = 10;
  write_clip(scratch / "a.mp4", clip);
  const History kept = history();
  double offset = 0;
  ReadOptions options;
  options.fps = 5;
  options.history = kept;
  const auto reader = VideoReader::open(scratch / "a.mp4", options);
  while (const auto sample = reader->next()) {
    if (sample->seconds >= 4) offset = 20;
    kept->anchor(sample->timestamp, offset + sample->seconds);
  }
  EXPECT_NEAR(kept->newest().value(), 20 + 7.96, 0.05);
  EXPECT_NEAR(kept->cut({25.1, 26.5, 26}).from(), 24.8, 0.001);
  EXPECT_NEAR(kept->cut({2.1, 3, 2.5}).from(), 2.0, 0.001);
  const Cut across = kept->cut({3.5, 25, 24.5});
  EXPECT_NEAR(across.from(), 3.2, 0.001);
  across.write_clip(scratch / "clip.mp4");
  EXPECT_NEAR(packets_of(scratch / "clip.mp4").duration, 1.8, 0.1) << "what came, without the gap";
}

TEST(History, NothingIsCutAcrossAReconnection) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 100;
  write_clip(scratch / "a.mp4", clip);
  clip.codec = "libx265";
  clip.options = {{"preset", "ultrafast"}, {"x265-params", "log-level=none"}};
  write_clip(scratch / "b.mp4", clip);
  const History kept = history();
  watch(scratch / "a.mp4", kept);
  watch(scratch / "b.mp4", kept, 5);
  const Cut after = kept->cut({3, 7, 6});
  EXPECT_EQ(after.codec(), "hevc");
  EXPECT_NEAR(after.from(), 5, 0.001);
  after.write_clip(scratch / "after.mp4");
  EXPECT_EQ(run_of(packets_of(scratch / "after.mp4"), packets_of(scratch / "b.mp4")), 0);
  const Cut before = kept->cut({3, 7, 3.9});
  EXPECT_EQ(before.codec(), "h264");
  EXPECT_NEAR(before.to(), 4, 0.001);
  before.write_clip(scratch / "before.mp4");
  EXPECT_GT(run_of(packets_of(scratch / "before.mp4"), packets_of(scratch / "a.mp4")), 0);
}

TEST(History, NothingIsCutAcrossAChangeOfSize) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 100;
  clip.gop = 25;
  write_clip(scratch / "a.ts", clip);
  clip.size = {320, 240};
  write_clip(scratch / "b.ts", clip);
  write_bytes(scratch / "both.ts", read_bytes(scratch / "a.ts") + read_bytes(scratch / "b.ts"));
  const History kept = history();
  watch(scratch / "both.ts", kept);
  const auto sizes = [&](const Span& span) {
    kept->cut(span).write_clip(scratch / "clip.mp4");
    const Source made = packets_of(scratch / "clip.mp4");
    std::vector<int> widths = {made.size.width};
    for (const OracleFrame& frame : oracle_decode(scratch / "clip.mp4")) widths.push_back(frame.size.width);
    EXPECT_GE(widths.size(), 20U);
    return widths;
  };
  EXPECT_THAT(sizes({2, 6, 3}), testing::Each(192));
  EXPECT_THAT(sizes({2, 6, 5}), testing::Each(320));
}

TEST(History, FramesThatReferToWhatIsNotThereAreLeftOut) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "libx265";
  clip.frames = 150;
  // No multiple of the 4 frames that refer to each other.
  clip.gop = 27;
  clip.b_frames = 3;
  clip.options = {{"preset", "ultrafast"}, {"x265-params", "log-level=none:scenecut=0:open-gop=1:b-adapt=0"}};
  write_clip(scratch / "a.mp4", clip);
  const History kept = history();
  watch(scratch / "a.mp4", kept);
  kept->cut({2.5, 4.5, 3}).write_clip(scratch / "clip.mp4");
  const Source whole = packets_of(scratch / "a.mp4");
  const auto key = std::find_if(whole.packets.rbegin(), whole.packets.rend(),
                                [](const SourcePacket& packet) { return packet.key && packet.pts <= 2.5; });
  ASSERT_GT(key, whole.packets.rbegin());
  ASSERT_LT(std::prev(key)->pts, key->pts) << "the source has no such frames";
  const Source made = packets_of(scratch / "clip.mp4");
  EXPECT_EQ(made.packets.front().data, key->data);
  for (const SourcePacket& packet : made.packets) EXPECT_GE(packet.pts, made.packets.front().pts);
  EXPECT_EQ(oracle_decode(scratch / "clip.mp4").size(), made.packets.size()) << "every one can be decoded";
}

TEST(History, HoldsBackToTheLastKeyFrameHoweverLongAgo) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 500;
  clip.gop = 1000;
  write_clip(scratch / "a.mp4", clip);
  const History kept = history(2);
  watch(scratch / "a.mp4", kept);
  const Cut cut = kept->cut({15, 18, 17});
  EXPECT_EQ(cut.from(), 0);
  EXPECT_NEAR(cut.to(), 18, 0.05);
}

TEST(History, DropsWhatIsOldAGroupAtATime) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 500;
  clip.gop = 25;
  write_clip(scratch / "a.mp4", clip);
  const History kept = history(3);
  watch(scratch / "a.mp4", kept);
  EXPECT_NEAR(kept->cut({0, 20, 19}).from(), 16, 0.001)
      << "3 s, and what is needed to begin with a key frame";
  EXPECT_THAT(reason_of_failure([&] {
                kept->cut({10, 13, 12});
              }),
              HasSubstr("no packet is kept of that time"));
  const Source whole = packets_of(scratch / "a.mp4");
  std::size_t bytes = 0;
  for (std::size_t i = 400; i < 500; ++i) bytes += whole.packets[i].data.size();
  EXPECT_EQ(kept->bytes(), bytes);
}

TEST(History, NeverHoldsMoreBytesThanItMayAndSaysWhatThatCost) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 500;
  clip.gop = 200;
  write_clip(scratch / "a.mp4", clip);
  const Source whole = packets_of(scratch / "a.mp4");
  std::size_t group = 0;
  for (std::size_t i = 0; i < 200; ++i) group += whole.packets[i].data.size();
  const std::size_t limit = group / 2;
  const History kept = history(3600, limit);
  std::size_t most = 0;
  watch(scratch / "a.mp4", kept, 0, [&] {
    most = std::max(most, kept->bytes());
    EXPECT_LE(kept->bytes(), limit);
  });
  EXPECT_GT(most, limit / 2);
  EXPECT_THAT(reason_of_failure([&] {
                kept->cut({1, 3, 2});
              }),
              HasSubstr("no key frame is kept of that time"));
  // With room for two groups of 8 s, the last one, of 4 s from 16 s on, is kept whole.
  const History roomy = history(3600, group * 2);
  watch(scratch / "a.mp4", roomy, 0, [] {});
  EXPECT_GT(roomy->bytes(), group / 2);
  EXPECT_NO_THROW(roomy->cut({17, 19, 18}));
}

TEST(History, WithoutATimeNothingIsCut) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  const History kept = history();
  EXPECT_THAT(reason_of_failure([&] { kept->cut({0, 1, 0.5}); }), HasSubstr("no packet is kept"));
  ReadOptions options;
  options.history = kept;
  const auto reader = VideoReader::open(scratch / "a.mp4", options);
  while (reader->next()) {
  }
  EXPECT_EQ(kept->newest(), std::nullopt);
  EXPECT_THAT(reason_of_failure([&] { kept->cut({0, 1, 0.5}); }), HasSubstr("no packet is kept"));
  kept->anchor(std::nullopt, 2);
  EXPECT_NEAR(kept->newest().value(), 2, 0.1) << "a frame without a timestamp came lately";
  kept->clear();
  EXPECT_EQ(kept->bytes(), 0U);
}

TEST(History, ACutOutlivesWhatItWasCutFrom) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  History kept = history();
  watch(scratch / "a.mp4", kept);
  const Cut cut = kept->cut({0, 2, 1});
  kept.reset();
  cut.write_clip(scratch / "clip.mp4");
  EXPECT_EQ(run_of(packets_of(scratch / "clip.mp4"), packets_of(scratch / "a.mp4")), 0);
}

TEST(History, IsReadWhileItIsWritten) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 250;
  write_clip(scratch / "a.mp4", clip);
  const History kept = history(2);
  std::size_t cuts = 0;
  std::atomic<bool> done{false};
  std::jthread reader([&] {
    for (bool last = false; !last;) {
      last = done.load();
      if (const auto newest = kept->newest()) {
        try {
          cuts += kept->cut({*newest - 1, *newest, *newest - 0.5}).bytes() > 0 ? 1U : 0U;
        } catch (const Error&) {
          // What was there has gone meanwhile.
        }
      }
      std::this_thread::yield();
    }
  });
  watch(scratch / "a.mp4", kept);
  done = true;
  reader.join();
  EXPECT_GT(cuts, 0U);
  const Cut last = kept->cut({8, 10, 9.5});
  EXPECT_LE(last.from(), 8.005);
  EXPECT_NEAR(last.to(), 10.0, 0.04);
}

}  // namespace
}  // namespace vigil::media
