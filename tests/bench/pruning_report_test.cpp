// What policies keep of videos.
#include "bench/pruning_report.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/media/clip.h"

namespace vigil::bench {
namespace {

/// A millisecond passes between two looks.
class CountingClock final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::milliseconds(++looks_)); }
  WallTime wall() const override { return {}; }

 private:
  mutable int looks_ = 0;
};

class PruningReportTest : public ::testing::Test {
 protected:
  /// A square of 32 pixels that moves over a scene of 192 x 128, 10 s of it, seen at 224 x 140.
  void SetUp() override {
    media::Clip clip;
    clip.frames = 250;
    // With an I-frame between any two samples all of them are whole for codecsight.
    clip.gop = 300;
    media::write_clip(video_, clip);
  }

  PruningReport report(PruningReportOptions options, media::ContactSheet* sheet = nullptr,
                       media::Size size = {224, 140}) {
    media::ReadOptions read;
    read.size = [size](media::Size) { return size; };
    const auto reader = media::VideoReader::open(video_, read);
    return report_pruning(*reader, options, CountingClock(), sheet);
  }

  media::Scratch scratch_;
  std::string video_ = scratch_ / "clip.mp4";
};

TEST_F(PruningReportTest, NoneKeepsEveryGroupOfEveryPatch) {
  const PruningReport all = report({.policy = "none"});
  ASSERT_EQ(all.patches.size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ(all.patches[i].groups.encoded, base::GridMask::all(5, 8));
    EXPECT_NEAR(all.patches[i].seconds, static_cast<double>(i), 0.04);
  }
  EXPECT_EQ(all.kept_share(), 1);
  EXPECT_EQ(all.decision_ms, 0.5) << "a millisecond for two frames";
}

TEST_F(PruningReportTest, PoliciesOfPixelsKeepWhatMoves) {
  for (const char* policy : {"changes", "reference", "dtd"}) {
    const PruningReport some = report({.policy = policy});
    ASSERT_EQ(some.patches.size(), 10U);
    EXPECT_TRUE(some.patches.front().groups.encoded.has_all()) << policy;
    std::int64_t kept = 0;
    for (std::size_t i = 1; i < 10; ++i) kept += some.patches[i].groups.encoded.count();
    EXPECT_GT(kept, 0) << policy;
    EXPECT_LT(kept, 9 * 40 * 3 / 4) << policy << ": the scene stands still but for a square on its way";
  }
}

TEST_F(PruningReportTest, CodecSightKeepsWhatHasMovedUntilTheNextIFrame) {
  const PruningReport some = report({.policy = "codecsight"});
  ASSERT_EQ(some.patches.size(), 10U);
  EXPECT_TRUE(some.patches[0].groups.encoded.has_all()) << "it begins with the I-frame";
  EXPECT_GT(some.patches[1].groups.encoded.count(), 0);
  EXPECT_LT(some.patches[1].groups.encoded.count(), 40);
  for (std::size_t i = 2; i < 10; ++i) {
    base::GridMask both = some.patches[i - 1].groups.encoded;
    both.add(some.patches[i].groups.encoded);
    EXPECT_EQ(both, some.patches[i].groups.encoded) << "patch " << i << " has forgotten something";
  }
}

TEST_F(PruningReportTest, EndsWhereItIsTold) {
  EXPECT_EQ(report({.policy = "none", .seconds = 4.6}).patches.size(), 5U) << "at 4.5 s a patch of one frame";
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(report({.policy = "none", .stop = stop.get_token()}).patches, testing::IsEmpty());
  EXPECT_EQ(report({.policy = "none", .frames_per_patch = 1}).patches.size(), 20U);
  EXPECT_THROW(report({.policy = "none", .frames_per_patch = 0}), std::invalid_argument);
  EXPECT_THROW(report({.policy = "motion"}), std::invalid_argument);
  EXPECT_THROW(report({.policy = "none"}, nullptr, {224, 150}), std::invalid_argument) << "no whole groups";
}

TEST_F(PruningReportTest, JsonListsTheGroups) {
  const PruningReport some = report({.policy = "reference"});
  const nlohmann::json json = nlohmann::json::parse(to_json(some));
  EXPECT_EQ(json["pruning"], "reference");
  EXPECT_EQ(json["frames_per_patch"], 2);
  EXPECT_DOUBLE_EQ(json["kept_share"], some.kept_share());
  ASSERT_EQ(json["patches"].size(), some.patches.size());
  for (std::size_t i = 0; i < some.patches.size(); ++i) {
    EXPECT_EQ(json["patches"][i]["kept"], some.patches[i].groups.in_stream().list());
    EXPECT_EQ(json["patches"][i]["rows"], 5);
    EXPECT_EQ(json["patches"][i]["columns"], 8);
  }
  EXPECT_THAT(to_text(some), testing::HasSubstr("10 of 5 x 8 groups, 2 frames each; 1 whole"));
}

TEST_F(PruningReportTest, TheSheetIsDarkWhereNothingIsEncodedOrKept) {
  media::ContactSheet sheet(24, 4, 224);
  const PruningReport some = report({.policy = "reference"}, &sheet);
  ASSERT_EQ(sheet.tiles(), 10U);
  media::ContactSheet bright(24, 4, 224);
  report({.policy = "none"}, &bright);
  const media::Image dark_image = sheet.draw(), image = bright.draw();
  ASSERT_EQ(dark_image.size, image.size);
  // The centres of the second tile's groups: the sheet has gaps of 6 pixels.
  for (int y = 1; y < 5; ++y)
    for (int x = 0; x < 8; ++x) {
      const auto at =
          static_cast<std::size_t>(3 * ((6 + 28 * y + 14) * image.size.width + 6 + 230 + 28 * x + 14));
      EXPECT_EQ(dark_image.rgb[at] == image.rgb[at] && dark_image.rgb[at + 1] == image.rgb[at + 1],
                some.patches[1].groups.encoded.has(y, x))
          << y << ", " << x;
    }
}

TEST(PruningSheetTest, WhatIsKeptAloneIsDimAndTheRestDark) {
  media::SampledFrame frame;
  auto image = std::make_shared<media::Image>();
  image->size = {84, 28};
  image->rgb.assign(std::size_t{3} * 84 * 28, 200);
  frame.image = std::move(image);
  frame.source_size = {84, 28};
  frame.motion = std::make_shared<media::MotionField>();
  base::GridMask encoded = base::GridMask::none(1, 3), kept = encoded;
  encoded.add(0);
  kept.add(0);
  kept.add(1);
  media::ContactSheet sheet(1, 1, 84);
  sheet.add(frame, encoded, kept);
  const media::Image drawn = sheet.draw();
  const auto level = [&](int group) {
    return int{drawn.rgb[static_cast<std::size_t>(3 * ((6 + 24) * drawn.size.width + 6 + 28 * group + 14))]};
  };
  EXPECT_EQ(level(0), 200);
  EXPECT_LT(level(1), 150);
  EXPECT_LT(level(2), level(1) - 40);
}

}  // namespace
}  // namespace vigil::bench
