// What moved is told, however it is coded: against the pixels, over clips of several encoders and kinds.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "media/group_motion.h"
#include "tests/media/clip.h"

namespace vigil::media {
namespace {

struct Coding {
  const char* name;
  const char* file;
  Clip clip;
  /// To which frames are scaled.
  Size size{192, 128};
};

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
          {"sub-blocks", "s.mp4", with({{"x264-params", "scenecut=0:partitions=all:me=umh:subme=9:8x8dct=1"}}, 2)},
          {"one reference of many", "r.mp4", with({{"refs", "4"}}, 2)},
          {"two slices", "two.mp4", with({{"slices", "2"}})},
          {"interlaced", "i.mp4", with({{"flags", "+ilme+ildct"}})},
          {"interlaced B", "ib.mp4", with({{"flags", "+ilme+ildct"}}, 2)},
          {"MPEG-2 interlaced", "i.ts", with({{"flags", "+ilme+ildct"}}, 0, "mpeg2video")},
          {"MPEG-4 of four vectors", "q.avi", with({{"flags", "+mv4+qpel"}}, 0, "mpeg4")},
          {"cropped", "c.mp4", with({}, 0, "libx264", {186, 122})},
          {"scaled", "small.mp4", with({}, 0, "libx264", {320, 208}), {112, 84}},
          {"intra refresh", "ir.mp4", with({{"x264-params", "scenecut=0:intra-refresh=1"}})}};
}

TEST(MotionRecallTest, Probe) {
  const Scratch scratch;
  for (const Coding& coding : codings()) {
    const std::string path = scratch / coding.file;
    write_clip(path, coding.clip);
    ReadOptions options;
    options.fps = 1e9;
    options.size = [&](Size) { return coding.size; };
    const ReadResult result = read_all(path, options);
    const int rows = coding.size.height / 14, columns = coding.size.width / 14;
    std::vector<bool> moved(static_cast<std::size_t>(rows * columns), true);
    std::shared_ptr<const Image> since;
    int changed = 0, missed = 0, still = 0, spared = 0, frames = 0;
    for (const SampledFrame& sample : result.samples) {
      for (const FrameMotion& frame : sample.motion->frames) {
        const std::vector<float> motion = group_motion(frame, rows, columns);
        if (motion.empty()) {
          moved.assign(moved.size(), !frame.intra);
          since = sample.image;
          continue;
        }
        ++frames;
        for (std::size_t i = 0; i < motion.size(); ++i)
          if (motion[i] > 0.25F) moved[i] = true;
      }
      if (!since) since = sample.image;
      for (int row = 0; row < rows; ++row)
        for (int column = 0; column < columns; ++column) {
          int sum = 0;
          for (int y = 14 * row; y < 14 * row + 14; ++y)
            for (int x = 3 * 14 * column; x < 3 * 14 * (column + 1); ++x) {
              const auto at = static_cast<std::size_t>(3 * y * coding.size.width + x);
              sum += std::abs(sample.image->rgb[at] - since->rgb[at]);
            }
          const double mean = sum / (3.0 * 14 * 14);
          const bool is_told = moved[static_cast<std::size_t>(row * columns + column)];
          changed += mean > 10;
          missed += mean > 10 && !is_told;
          still += mean < 2;
          spared += mean < 2 && !is_told;
        }
    }
    std::printf("%-24s samples %zu inter %d changed %d missed %d still %d spared %d\n", coding.name,
                result.samples.size(), frames, changed, missed, still, spared);
  }
}

}  // namespace
}  // namespace vigil::media
