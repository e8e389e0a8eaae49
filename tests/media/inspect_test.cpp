// Reports and contact sheets.
#include "media/inspect.h"

#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "media/motion_grid.h"
#include "media/png.h"
#include "tests/media/clip.h"

namespace vigil::media {
namespace {

using testing::HasSubstr;

FrameMotion frame(double seconds, FrameType type, bool key = false) {
  FrameMotion motion;
  motion.seconds = seconds;
  motion.type = type;
  motion.intra = type == FrameType::intra;
  motion.key = key;
  motion.width = 64;
  motion.height = 32;
  return motion;
}

MotionVector vector(int x, int y, int size, int dx, int dy) {
  MotionVector v;
  v.x = static_cast<std::int16_t>(x);
  v.y = static_cast<std::int16_t>(y);
  v.width = static_cast<std::uint8_t>(size);
  v.height = static_cast<std::uint8_t>(size);
  v.reference = -1;
  v.dx = dx;
  v.dy = dy;
  v.scale = 4;
  return v;
}

TEST(MotionGrid, LaysVectorsOverCells) {
  MotionGrid grid({60, 32});
  EXPECT_EQ(grid.columns(), 8);
  EXPECT_EQ(grid.rows(), 4);
  FrameMotion motion = frame(0, FrameType::predicted);
  // 3-4-5 pixels; one in part outside of the picture; one of exactly the quarter pixel that is no motion.
  motion.vectors = {vector(16, 0, 16, 12, -16), vector(-8, 24, 16, 4, 0), vector(32, 16, 8, 1, 0),
                    vector(500, 500, 16, 9, 9)};
  grid.add(motion);
  EXPECT_EQ(grid.at(2, 0).longest, 5.0F);
  EXPECT_EQ(grid.at(3, 1).longest, 5.0F);
  EXPECT_EQ(grid.at(3, 1).moved_x, -3.0F) << "content moves against its vector";
  EXPECT_EQ(grid.at(3, 1).moved_y, 4.0F);
  EXPECT_EQ(grid.at(1, 0).longest, 0.0F);
  EXPECT_EQ(grid.at(4, 2).longest, 0.25F);
  EXPECT_EQ(grid.at(0, 3).longest, 1.0F);
  EXPECT_DOUBLE_EQ(grid.moving_share(), 5.0 / 32);
}

TEST(Inspector, TellsGroupsOfPictures) {
  Inspector inspector;
  const std::string types = "IPPBPIPPIPBBP";
  for (std::size_t i = 0; i < types.size(); ++i) {
    const FrameType type = types[i] == 'I'   ? FrameType::intra
                           : types[i] == 'P' ? FrameType::predicted
                                             : FrameType::bidirectional;
    // The second I frame is no key frame.
    inspector.add(frame(0.1 * static_cast<double>(i) + (i > 6 ? 0.5 : 0), type, types[i] == 'I' && i != 5));
  }
  inspector.add(frame(2.0, FrameType::intra, true));
  const InspectReport report = inspector.report();
  EXPECT_EQ(report.first_gop, "IPPBPIPP");
  EXPECT_EQ(report.keys.count, 3u);
  EXPECT_EQ(report.keys.shortest, 5u);
  EXPECT_EQ(report.keys.median, 6.5);
  EXPECT_EQ(report.keys.longest, 8u);
  EXPECT_THAT(report.frames_by_type, testing::ElementsAre(0, 4, 7, 3));
  EXPECT_NEAR(report.seconds, 2.0, 1e-9);
  EXPECT_NEAR(report.measured_fps, 13 / 2.0, 1e-9);
  EXPECT_NEAR(report.shortest_interval, 0.1, 1e-9);
  EXPECT_NEAR(report.longest_interval, 0.6, 1e-9);
}

TEST(Inspector, WeighsVectorsByTheirArea) {
  Inspector inspector;
  FrameMotion p = frame(0, FrameType::predicted);
  p.vectors = {vector(0, 0, 16, 0, 0), vector(16, 0, 8, 32, 0)};
  inspector.add(p);
  FrameMotion b = frame(0.1, FrameType::bidirectional);
  b.vectors = {vector(0, 0, 16, 8, 0)};
  inspector.add(b);
  inspector.add(frame(0.2, FrameType::intra));
  const InspectReport report = inspector.report();
  EXPECT_EQ(report.predicted.frames, 1u);
  // One of 32 cells of 8x8 moves by 8 pixels; 256 pixels do not move.
  EXPECT_DOUBLE_EQ(report.predicted.moving_share, 1.0 / 32);
  EXPECT_DOUBLE_EQ(report.predicted.mean_pixels, 64 * 8.0 / (64 + 256));
  EXPECT_DOUBLE_EQ(report.predicted.percentile95_pixels, 8.0);
  EXPECT_DOUBLE_EQ(report.bidirectional.moving_share, 4.0 / 32);
  EXPECT_DOUBLE_EQ(report.moving.moving_share, 2.5 / 32);
  EXPECT_DOUBLE_EQ(report.moving.mean_pixels, (64 * 8.0 + 256 * 2.0) / (64 + 256 + 256));
}

TEST(Inspect, AgreesWithAPlainDecode) {
  const Scratch scratch;
  const std::string path = scratch / "a.mp4";
  Clip clip;
  clip.frames = 61;
  clip.gop = 15;
  clip.b_frames = 2;
  write_clip(path, clip);
  const std::vector<OracleFrame> oracle = oracle_decode(path);
  std::string types;
  for (const OracleFrame& one : oracle) types += one.type;

  const InspectReport report = inspect(path, {}, nullptr);
  const auto count = [&](char type) {
    return static_cast<std::uint64_t>(std::count(types.begin(), types.end(), type));
  };
  EXPECT_THAT(report.frames_by_type, testing::ElementsAre(0, count('I'), count('P'), count('B')));
  EXPECT_EQ(report.stats.decoded_frames, 61u);
  EXPECT_EQ(report.keys.count, 5u);
  EXPECT_EQ(report.keys.median, 15);
  EXPECT_EQ(report.first_gop, types.substr(0, 15));
  EXPECT_NEAR(report.measured_fps, 25, 1e-6);
  EXPECT_GT(report.moving.moving_share, 0.01);
  EXPECT_LT(report.moving.moving_share, 0.7);

  const std::string text = to_text(report);
  for (const char* part :
       {"h264 (High)", "192x128", "61 in 2.40 s", "5, every 15 / 15 / 15", "damage       none"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  const nlohmann::json json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json["codec"], "h264");
  EXPECT_EQ(json["frames"], 61);
  EXPECT_EQ(json["frame_types"]["B"], count('B'));
  EXPECT_EQ(json["gop"]["distance"]["median"], 15);
  EXPECT_EQ(json["motion"]["available"], true);
  EXPECT_EQ(json["damage"]["damaged_packets"], 0);
}

TEST(Inspect, SaysWhenMotionIsNotKnownAndWhenDamaged) {
  const Scratch scratch;
  Clip clip;
  clip.codec = "libvpx-vp9";
  clip.frames = 10;
  write_clip(scratch / "a.webm", clip);
  EXPECT_THAT(to_text(inspect(scratch / "a.webm", {}, nullptr)), HasSubstr("vp9 exports no motion vectors"));

  write_clip(scratch / "a.ts", {});
  const std::string bytes = read_bytes(scratch / "a.ts");
  write_bytes(scratch / "a.ts", bytes.substr(0, bytes.size() / 2 + 50));
  const InspectReport report = inspect(scratch / "a.ts", {}, nullptr);
  EXPECT_THAT(to_text(report), testing::Not(HasSubstr("damage       none")));
  EXPECT_GE(nlohmann::json::parse(to_json(report))["damage"]["damaged_packets"], 1);
}

SampledFrame tile(const ContactSheet& sheet, double seconds, std::uint8_t grey,
                  std::vector<MotionVector> vectors) {
  SampledFrame sample;
  sample.source_size = {64, 32};
  sample.seconds = seconds;
  sample.type = FrameType::predicted;
  auto image = std::make_shared<Image>();
  image->size = sheet.tile_size(sample.source_size);
  image->rgb.assign(
      static_cast<std::size_t>(image->size.width) * static_cast<std::size_t>(image->size.height) * 3, grey);
  sample.image = image;
  auto field = std::make_shared<MotionField>();
  field->available = true;
  field->width = 64;
  field->height = 32;
  field->frames.push_back(frame(seconds, FrameType::predicted));
  field->frames.back().vectors = std::move(vectors);
  sample.motion = field;
  return sample;
}

std::array<int, 3> pixel(const Image& image, int x, int y) {
  const std::size_t at = (static_cast<std::size_t>(y) * static_cast<std::size_t>(image.size.width) +
                          static_cast<std::size_t>(x)) *
                         3;
  return {image.rgb[at], image.rgb[at + 1], image.rgb[at + 2]};
}

TEST(ContactSheet, ColoursWhatMovedAndNothingElse) {
  ContactSheet sheet(4, 2, 256);
  EXPECT_EQ(sheet.tile_size({64, 32}), (Size{256, 128}));
  sheet.add(tile(sheet, 0, 100, {}));
  // 32 pixels fast in the lower right corner: red.
  sheet.add(tile(sheet, 0.5, 100, {vector(48, 16, 16, 128, 0)}));
  const Image drawn = sheet.draw();
  const int top = drawn.size.height - 128 - 6;
  EXPECT_EQ(pixel(drawn, 6 + 200, top + 100), (std::array<int, 3>{100, 100, 100}));
  EXPECT_EQ(pixel(drawn, 12 + 256 + 100, top + 100), (std::array<int, 3>{100, 100, 100}));
  const std::array<int, 3> moving = pixel(drawn, 12 + 256 + 250, top + 70);
  EXPECT_GT(moving[0], moving[1] + 40);
  EXPECT_GT(moving[0], moving[2] + 40);
}

TEST(ContactSheet, ThinsOutEvenly) {
  ContactSheet sheet(4, 2, 64);
  for (int i = 0; i < 100; ++i) {
    sheet.add(tile(sheet, i, static_cast<std::uint8_t>(2 * i), {}));
    EXPECT_LE(sheet.tiles(), 4u);
    EXPECT_GE(sheet.tiles(), i < 2 ? 1u : 2u);
  }
  // Of samples 0 to 99 every 32nd is left.
  const Image drawn = sheet.draw();
  EXPECT_EQ(sheet.tiles(), 4u);
  EXPECT_EQ(pixel(drawn, 6 + 60, drawn.size.height - 6 - 2)[0], 128);
  EXPECT_EQ(pixel(drawn, 12 + 64 + 60, drawn.size.height - 6 - 2)[0], 192);
}

TEST(ContactSheet, IsAPngThatFfmpegReads) {
  const Scratch scratch;
  const std::string path = scratch / "a.mp4";
  write_clip(path, {});
  ContactSheet sheet(8, 3, 96);
  inspect(path, {}, &sheet);
  EXPECT_EQ(sheet.tiles(), 8u);
  const Image drawn = sheet.draw();
  write_png(scratch / "sheet.png", drawn);
  ReadOptions every;
  every.fps = 1;
  const ReadResult back = read_all(scratch / "sheet.png", every);
  ASSERT_EQ(back.samples.size(), 1u);
  EXPECT_EQ(back.info.codec, "png");
  EXPECT_TRUE(back.samples[0].image->rgb == drawn.rgb) << "PNG loses nothing";
  try {
    write_png(scratch / "nowhere/sheet.png", drawn);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("nowhere/sheet.png: cannot write: No such file"));
  }
}

}  // namespace
}  // namespace vigil::media
