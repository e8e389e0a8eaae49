// Stills of what was seen, and files that appear whole or not at all.
#include <cmath>
#include <csignal>
#include <filesystem>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "media/jpeg.h"
#include "tests/media/clip.h"
#include "tests/media/kept.h"

namespace vigil::media {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(Still, IsTheFrameThatIsShownAtTheMoment) {
  const Scratch scratch;
  for (const int b_frames : {0, 3}) {
    Clip clip;
    clip.frames = 100;
    clip.gop = 50;
    clip.b_frames = b_frames;
    write_clip(scratch / "a.mp4", clip);
    std::vector<Image> pictures;
    oracle_decode(scratch / "a.mp4", [&](const AVFrame& frame) {
      pictures.push_back(oracle_rgb(frame, {frame.width, frame.height}));
    });
    const History kept = history();
    watch(scratch / "a.mp4", kept, 50);
    const Cut cut = kept->cut({50.5, 53.9, 53});
    for (const auto& [moment, frame] :
         {std::pair(53.0, 75U), {53.03, 75U}, {51.02, 25U}, {52.0, 50U}, {51.96, 49U}}) {
      const Still still = cut.still(moment);
      EXPECT_NEAR(still.seconds, 50 + frame / 25.0, 0.001);
      EXPECT_LT(mean_difference(still.image, pictures[frame]), 2.5) << moment;
      EXPECT_GT(mean_difference(still.image, pictures[frame - 1]), 2.5) << moment;
    }
  }
}

TEST(Still, AsAJpegIsNearlyTheSamePicture) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  const History kept = history();
  watch(scratch / "a.mp4", kept);
  const Still still = kept->cut({0, 2, 1}).still(1);
  write_jpeg(scratch / "a.jpg", still.image);
  std::vector<Image> pictures;
  oracle_decode(scratch / "a.jpg", [&](const AVFrame& frame) {
    pictures.push_back(oracle_rgb(frame, {frame.width, frame.height}));
  });
  ASSERT_THAT(pictures, SizeIs(1));
  EXPECT_LT(mean_difference(pictures[0], still.image), 8) << "half of the chroma each way is left out";
  for (std::size_t channel = 0; channel < 3; ++channel) {
    double sum = 0;
    for (std::size_t i = channel; i < still.image.rgb.size(); i += 3)
      sum += int{pictures[0].rgb[i]} - int{still.image.rgb[i]};
    EXPECT_LT(std::abs(sum) / static_cast<double>(still.image.rgb.size() / 3), 1) << "a colour as a whole";
  }
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  return names;
}

TEST(NewFile, LeavesNothingBehindWhenTheDiskIsFull) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 250;
  write_clip(scratch / "a.mp4", clip);
  const History kept = history();
  watch(scratch / "a.mp4", kept);
  const Cut cut = kept->cut({0, 10, 5});
  ASSERT_GT(cut.bytes(), 64U << 10);
  const std::string folder = scratch / "clips";
  std::filesystem::create_directory(folder);
  // A file may not be larger: to whoever writes it, that is a full disk.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{32 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string clip_reason = reason_of_failure([&] { cut.write_clip(folder + "/a.mp4"); });
  const std::string still_reason = reason_of_failure([&] {
    Image noise{{400, 400}, std::vector<std::uint8_t>(3 * 400 * 400)};
    std::minstd_rand random;
    for (std::uint8_t& each : noise.rgb) each = static_cast<std::uint8_t>(random() >> 8);
    write_jpeg(folder + "/a.jpg", noise);
  });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  EXPECT_THAT(clip_reason, HasSubstr("clips/a.mp4: cannot write: File too large"));
  EXPECT_THAT(still_reason, HasSubstr("a.jpg: cannot write: File too large"));
  EXPECT_THAT(files_in(folder), IsEmpty());
  cut.write_clip(folder + "/a.mp4");
  EXPECT_THAT(files_in(folder), testing::ElementsAre("a.mp4"));
}

TEST(NewFile, AFolderThatIsNoneIsNamed) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  const History kept = history();
  watch(scratch / "a.mp4", kept);
  const Cut cut = kept->cut({0, 2, 1});
  EXPECT_THAT(reason_of_failure([&] { cut.write_clip(scratch / "a.mp4/clip.mp4"); }),
              HasSubstr("Not a directory"));
  EXPECT_THAT(reason_of_failure([&] { cut.write_clip(scratch / "none/clip.mp4"); }),
              HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace vigil::media
