// What moved is told, however it is coded: against the pixels, over clips of several encoders and kinds.
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "media/group_motion.h"
#include "tests/media/clip.h"

extern "C" {
#include <libavcodec/bsf.h>
}

namespace vigil::media {
namespace {

struct Coding {
  const char* name;
  const char* file;
  Clip clip;
  /// To which frames are scaled.
  Size size{192, 128};
  /// Pixels that are not to be shown at the left, where FFmpeg cuts whole lines of a cache, and at the top.
  int cropped = 0;
};

void PrintTo(const Coding& one, std::ostream* out) {
  *out << one.name;
}

std::vector<Coding> codings() {
  const auto with = [](std::map<std::string, std::string> options, int b_frames = 0,
                       const char* codec = "libx264", Size size = {192, 128}) {
    Clip clip;
    clip.codec = codec;
    clip.size = size;
    clip.frames = 60;
    clip.gop = 20;
    clip.b_frames = b_frames;
    clip.options = std::move(options);
    return clip;
  };
  return {{"P", "p.mp4", with({})},
          {"B", "b.mp4", with({}, 3)},
          {"sub-blocks", "s.mp4",
           with({{"x264-params", "scenecut=0:partitions=all:me=umh:subme=9:8x8dct=1"}}, 2)},
          {"one reference of many", "r.mp4", with({{"refs", "4"}}, 2)},
          {"two slices", "two.mp4", with({{"slices", "2"}})},
          {"interlaced", "i.mp4", with({{"flags", "+ilme+ildct"}})},
          {"interlaced B", "ib.mp4", with({{"flags", "+ilme+ildct"}}, 2)},
          {"MPEG-2 interlaced", "i.ts", with({{"flags", "+ilme+ildct"}}, 0, "mpeg2video")},
          {"MPEG-4 of four vectors", "q.avi", with({{"flags", "+mv4+qpel"}}, 0, "mpeg4")},
          {"cropped", "c.mp4", with({}, 0, "libx264", {186, 122})},
          {"cropped at the left", "l.mp4", with({}, 0, "libx264", {320, 256}), {192, 128}, 72},
          {"scaled", "small.mp4", with({}, 0, "libx264", {320, 208}), {112, 84}},
          {"intra refresh", "ir.mp4", with({{"x264-params", "scenecut=0:intra-refresh=1"}})}};
}

/// The same clip, of which so many pixels at the left and at the top are not shown.
void crop(const std::string& from, const std::string& to, int pixels) {
  AVFormatContext* raw = nullptr;
  ASSERT_GE(avformat_open_input(&raw, from.c_str(), nullptr, nullptr), 0);
  const InputContext input(raw);
  ASSERT_GE(avformat_find_stream_info(raw, nullptr), 0);
  const std::string by = std::to_string(pixels);
  AVBSFContext* filter = nullptr;
  ASSERT_GE(av_bsf_list_parse_str(
                ("h264_mp4toannexb,h264_metadata=crop_left=" + by + ":crop_top=" + by).c_str(), &filter),
            0);
  ASSERT_GE(avcodec_parameters_copy(filter->par_in, raw->streams[0]->codecpar), 0);
  filter->time_base_in = raw->streams[0]->time_base;
  ASSERT_GE(av_bsf_init(filter), 0);
  std::string bytes;
  const Packet packet = make_packet();
  while (av_read_frame(raw, packet.get()) >= 0) {
    ASSERT_GE(av_bsf_send_packet(filter, packet.get()), 0);
    while (av_bsf_receive_packet(filter, packet.get()) >= 0) {
      bytes.append(reinterpret_cast<const char*>(packet->data), static_cast<std::size_t>(packet->size));
      av_packet_unref(packet.get());
    }
  }
  av_bsf_free(&filter);
  write_bytes(to, bytes);
}

class EveryCoding : public testing::TestWithParam<Coding> {};

/// Cells of 14 x 14 pixels along the edges of a picture.
struct Cells {
  explicit Cells(Size size) : rows(size.height / 14), columns(size.width / 14) {}
  int rows, columns;
};

/// Of each cell, from 0 to 255.
std::vector<double> differences(const Image& a, const Image& b, const Cells& cells) {
  std::vector<double> means;
  for (int row = 0; row < cells.rows; ++row)
    for (int column = 0; column < cells.columns; ++column) {
      int sum = 0;
      for (int y = 14 * row; y < 14 * row + 14; ++y)
        for (int x = 3 * 14 * column; x < 3 * 14 * (column + 1); ++x) {
          const auto at = static_cast<std::size_t>(3 * y * a.size.width + x);
          sum += std::abs(a.rgb[at] - b.rgb[at]);
        }
      means.push_back(sum / (3.0 * 14 * 14));
    }
  return means;
}

// Of the cells that differ from the last I-frame, nearly all have moved since, as the codec tells it, and of
// those that do not, most have not. What the square uncovers may be coded as a residual alone: no vector
// tells of that.
TEST_P(EveryCoding, WhatChangedSinceTheLastIFrameMoved) {
  const Scratch scratch;
  const Coding& coding = GetParam();
  std::string path = scratch / coding.file;
  write_clip(path, coding.clip);
  if (coding.cropped > 0) {
    const std::string whole = std::exchange(path, scratch / "cropped.h264");
    ASSERT_NO_FATAL_FAILURE(crop(whole, path, coding.cropped));
  }
  ReadOptions options;
  options.fps = 1e9;
  options.size = [&](Size) { return coding.size; };
  const Cells cells(coding.size);
  std::vector<bool> moved;
  std::shared_ptr<const Image> since;
  int changed = 0, told = 0, still = 0, spared = 0;
  for (const SampledFrame& sample : read_all(path, options).samples) {
    for (const FrameMotion& frame : sample.motion->frames) {
      const std::vector<float> motion = group_motion(frame, cells.rows, cells.columns);
      if (motion.empty()) {
        moved.assign(static_cast<std::size_t>(cells.rows * cells.columns), false);
        since = sample.image;
      }
      for (std::size_t i = 0; i < motion.size(); ++i)
        if (motion[i] > 0.25F) moved[i] = true;
    }
    ASSERT_NE(since, nullptr) << "it begins with an I-frame";
    const std::vector<double> by = differences(*sample.image, *since, cells);
    for (std::size_t i = 0; i < by.size(); ++i) {
      changed += by[i] > 10;
      told += by[i] > 10 && moved[i];
      still += by[i] < 2;
      spared += by[i] < 2 && !moved[i];
    }
  }
  ASSERT_GT(changed, 300);
  EXPECT_GE(told, 0.93 * changed);
  EXPECT_GE(spared, 0.5 * still) << "what a codec refreshes in turn counts as new";
}

INSTANTIATE_TEST_SUITE_P(MotionRecall, EveryCoding, testing::ValuesIn(codings()));

}  // namespace
}  // namespace vigil::media
