#include "engine/model/vision/preprocess.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/model/verify/golden.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using testing::error_of;
using testing::golden;
using ::testing::HasSubstr;

VisionConfig vision_like(const PreprocessSettings& settings) {
  VisionConfig vision;
  vision.patch_size = settings.patch_size;
  vision.temporal_patch_size = settings.temporal_patch_size;
  vision.spatial_merge_size = settings.merge_size;
  return vision;
}

Preprocessor with(const PreprocessSettings& settings) {
  return {settings, vision_like(settings)};
}

TEST(Preprocessor, FrameSizeIsThatOfSmartResize) {
  const Json rows = read_json_file(golden("smart_resize.json"));
  ASSERT_GT(rows.size(), 400U);
  int refused = 0;
  for (const Json& row : rows) {
    SCOPED_TRACE(row.dump());
    PreprocessSettings settings;
    settings.patch_size = row[2].get<int>() / 2;
    settings.min_pixels = row[3].get<std::int64_t>();
    settings.max_pixels = row[4].get<std::int64_t>();
    const PictureSize source{row[1].get<int>(), row[0].get<int>()};
    if (row[5].is_null() || row[5] == 0 || row[6] == 0) {
      // Where transformers comes to a side of zero it fails later.
      EXPECT_THROW(with(settings).frame_size(source), std::invalid_argument);
      ++refused;
    } else {
      EXPECT_EQ(with(settings).frame_size(source), (PictureSize{row[6].get<int>(), row[5].get<int>()}));
    }
  }
  EXPECT_GT(refused, 1);
}

/// The golden files hold transformers' own processing of an image and of videos of odd sizes and counts.
TEST(Preprocessor, PixelValuesAreThoseOfTransformers) {
  kernels::Stream stream = kernels::Stream::cpu(2);
  int compared = 0;
  for (const char* model : {"tiny", "half"}) {
    for (const GoldenCase& item :
         read_golden(golden(std::string("models/") + model + ".safetensors")).cases) {
      if (item.kind == GoldenCase::Kind::text) continue;
      SCOPED_TRACE(std::string(model) + "/" + item.name);
      const testing::ScratchFolder folder;
      // What tools/synthetic_model.py writes for these two.
      folder.write(
          "preprocessor_config.json",
          std::string(model) == "tiny"
              ? R"({"min_pixels": 3136, "max_pixels": 12544, "patch_size": 14, "merge_size": 2, "resample": 3})"
              : R"({"min_pixels": 5184, "max_pixels": 31104, "patch_size": 12, "merge_size": 3, "resample": 3})");
      const PreprocessConfig config = read_preprocess_config(folder.path());
      const PreprocessSettings& settings = item.kind == GoldenCase::Kind::image ? config.image : config.video;
      std::vector<PictureView> frames;
      for (std::int64_t i = 0; i < item.frames; ++i) frames.push_back(item.frame(i));
      const PixelValues actual = with(settings).process(stream, frames);
      EXPECT_EQ(actual.grid_time, item.grid[0]);
      EXPECT_EQ(actual.grid_height, item.grid[1]);
      EXPECT_EQ(actual.grid_width, item.grid[2]);
      ASSERT_EQ(actual.values.size(), item.pixel_values.values.size());
      EXPECT_TRUE(actual.values == item.pixel_values.values);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 6);
}

std::vector<std::uint8_t> noise(int width, int height, std::uint32_t seed) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  for (std::uint8_t& level : pixels) {
    seed = seed * 1664525U + 1013904223U;
    level = static_cast<std::uint8_t>(seed >> 24U);
  }
  return pixels;
}

TEST(Preprocessor, CutsFramesOfTheRightSizeWithoutResizing) {
  const Preprocessor preprocessor = with({});
  kernels::Stream stream = kernels::Stream::cpu(1);
  const PictureSize size{112, 84};
  ASSERT_EQ(preprocessor.frame_size(size), size);
  EXPECT_EQ(preprocessor.tokens(size), 12);
  const auto first = noise(size.width, size.height, 1);
  const auto second = noise(size.width, size.height, 2);
  const std::vector<PictureView> frames = {{first.data(), size.width, size.height},
                                           {second.data(), size.width, size.height}};
  const std::int64_t rows = preprocessor.patch_rows(size);
  const std::int64_t columns = preprocessor.patch_values();
  std::vector<float> cut(static_cast<std::size_t>(rows * columns));
  preprocessor.cut(stream, frames, kernels::dense(cut.data(), kernels::DType::f32, rows, columns));
  EXPECT_EQ(cut, preprocessor.process(stream, frames).values);

  std::vector<kernels::bf16> half(cut.size());
  preprocessor.cut(stream, frames, kernels::dense(half.data(), kernels::DType::bf16, rows, columns));
  for (std::size_t i = 0; i < cut.size(); ++i) ASSERT_EQ(half[i].bits, kernels::to_bf16(cut[i]).bits);

  // One frame stands for both of its patch.
  preprocessor.cut(stream, std::span(frames).first(1),
                   kernels::dense(cut.data(), kernels::DType::f32, rows, columns));
  const std::vector<PictureView> twice = {frames[0], frames[0]};
  EXPECT_EQ(cut, preprocessor.process(stream, twice).values);
}

TEST(Preprocessor, RefusesFramesThatDoNotFit) {
  const Preprocessor preprocessor = with({});
  kernels::Stream stream = kernels::Stream::cpu(1);
  const auto pixels = noise(112, 112, 3);
  std::vector<float> out(48 * 1176);
  const kernels::Matrix rows = kernels::dense(out.data(), kernels::DType::f32, 48, 1176);
  const auto cut = [&](const std::vector<PictureView>& frames) { preprocessor.cut(stream, frames, rows); };
  EXPECT_NO_THROW(cut({{pixels.data(), 112, 84}}));
  EXPECT_THROW(cut({}), std::invalid_argument);
  EXPECT_THROW(cut({{pixels.data(), 112, 84}, {pixels.data(), 84, 112}}), std::invalid_argument);
  EXPECT_THROW(cut(std::vector<PictureView>(3, {pixels.data(), 112, 84})), std::invalid_argument);
  EXPECT_THROW(cut({{pixels.data(), 112, 70}}), std::invalid_argument);   // half a square of patches
  EXPECT_THROW(cut({{pixels.data(), 112, 112}}), std::invalid_argument);  // another number of rows
  EXPECT_THROW(preprocessor.process(stream, {}), std::invalid_argument);
  EXPECT_THROW(preprocessor.process(
                   stream, std::vector<PictureView>{{pixels.data(), 112, 84}, {pixels.data(), 84, 84}}),
               std::invalid_argument);
  EXPECT_THROW(preprocessor.frame_size({0, 5}), std::invalid_argument);
  EXPECT_THROW(preprocessor.frame_size({1, 1000}), std::invalid_argument);
  PreprocessSettings fixed;
  fixed.do_resize = false;
  EXPECT_EQ(with(fixed).frame_size({56, 28}), (PictureSize{56, 28}));
  EXPECT_THROW(with(fixed).frame_size({56, 30}), std::invalid_argument);
}

TEST(Preprocessor, MustFitTheVisionTower) {
  VisionConfig vision;
  vision.patch_size = 16;
  EXPECT_THAT(error_of([&] { Preprocessor(PreprocessSettings{}, vision); }),
              HasSubstr("patch_size 14, the vision tower 16"));
}

TEST(PreprocessConfig, ReadsThePublishedFileForBoth) {
  const testing::ScratchFolder folder;
  folder.write("preprocessor_config.json",
               R"({"min_pixels": 3136, "max_pixels": 12845056, "patch_size": 14, "temporal_patch_size": 2,
      "merge_size": 2, "image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711],
      "image_processor_type": "Qwen2VLImageProcessor", "processor_class": "Qwen2_5_VLProcessor"})");
  const PreprocessConfig config = read_preprocess_config(folder.path());
  for (const PreprocessSettings* settings : {&config.image, &config.video}) {
    EXPECT_EQ(settings->min_pixels, 3136);
    EXPECT_EQ(settings->max_pixels, 12845056);
    EXPECT_EQ(settings->mean[1], 0.4578275);
  }
  EXPECT_EQ(config.image.resize_like, kernels::ResizeLike::pillow);
  EXPECT_EQ(config.video.resize_like, kernels::ResizeLike::torch);
}

TEST(PreprocessConfig, HasTheOrderOfTransformers) {
  const testing::ScratchFolder folder;
  EXPECT_THAT(error_of([&] { read_preprocess_config(folder.path()); }),
              HasSubstr("neither processor_config.json nor preprocessor_config.json"));
  folder.write("preprocessor_config.json", R"({"size": {"shortest_edge": 1000, "longest_edge": 2000}})");
  EXPECT_EQ(read_preprocess_config(folder.path()).video.max_pixels, 2000);
  folder.write("video_preprocessor_config.json", R"({"min_pixels": 2500, "max_pixels": 3000})");
  PreprocessConfig config = read_preprocess_config(folder.path());
  EXPECT_EQ(config.image.max_pixels, 2000);
  EXPECT_EQ(config.video.max_pixels, 3000);
  EXPECT_EQ(config.video.min_pixels, 2500);
  folder.write("video_preprocessor_config.json", R"({"max_pixels": 300000})");
  EXPECT_EQ(read_preprocess_config(folder.path()).video.min_pixels, 128 * 28 * 28);  // the default of videos
  folder.write("video_preprocessor_config.json", R"({"min_pixels": 2500, "max_pixels": 3000})");
  folder.write("processor_config.json",
               R"({"image_processor": {"size": {"shortest_edge": 10, "longest_edge": 4000}}})");
  config = read_preprocess_config(folder.path());
  EXPECT_EQ(config.image.max_pixels, 4000);
  EXPECT_EQ(config.video.max_pixels, 3000);
  folder.write("processor_config.json",
               R"({"video_processor": {"size": {"shortest_edge": 10, "longest_edge": 5000}}})");
  EXPECT_EQ(read_preprocess_config(folder.path()).video.max_pixels, 5000);
}

TEST(PreprocessConfig, NamesTheFault) {
  const testing::ScratchFolder folder;
  const auto error = [&](const char* text) {
    folder.write("preprocessor_config.json", text);
    return error_of([&] { read_preprocess_config(folder.path()); });
  };
  EXPECT_THAT(error(R"({"patch_size": 0})"),
              HasSubstr("preprocessor_config.json: patch_size: 0 is not between"));
  EXPECT_THAT(error(R"({"image_mean": [1, 2]})"), HasSubstr("image_mean: three numbers"));
  EXPECT_THAT(error(R"({"image_std": [1, 0, 1]})"),
              HasSubstr("preprocessor_config.json: image_std: 0 is not between 0.0001 and 10000.0"));
  EXPECT_THAT(error(R"({"image_std": [1e-300, 1, 1]})"), HasSubstr("image_std: 1e-300 is not between"));
  EXPECT_THAT(error(R"({"image_std": 1e39})"), HasSubstr("image_std: 1e+39 is not between"));
  EXPECT_THAT(error(R"({"image_mean": [1e308, 0, 0]})"), HasSubstr("image_mean: 1e+308 is not between"));
  EXPECT_THAT(error(R"({"image_mean": [0, 0, -2000]})"), HasSubstr("image_mean: -2000 is not between"));
  EXPECT_THAT(error(R"({"resample": 2})"), HasSubstr("resample: only 3"));
  EXPECT_THAT(error(R"({"size": 5})"), HasSubstr("size: an object"));
}

TEST(PreprocessConfig, RefusesBoundsThatNoFrameCanKeep) {
  const testing::ScratchFolder folder;
  const auto error = [&](const char* text) {
    folder.write("preprocessor_config.json", text);
    return error_of([&] { read_preprocess_config(folder.path()); });
  };
  EXPECT_THAT(error(R"({"min_pixels": 1000000000000, "max_pixels": 1000000000000})"),
              HasSubstr("preprocessor_config.json: min_pixels: 1000000000000 is not between 1 and 33554432"))
      << "every frame would be enlarged to it";
  EXPECT_THAT(error(R"({"size": {"min_pixels": 1000000000000}})"),
              HasSubstr("size.min_pixels: 1000000000000 is not between"));
  for (const char* text : {R"({"min_pixels": 33554432, "max_pixels": 1000000000000})",
                           R"({"min_pixels": 50176, "max_pixels": 50176})"}) {
    folder.write("preprocessor_config.json", text);
    EXPECT_NO_THROW(read_preprocess_config(folder.path())) << text;
  }
  EXPECT_THAT(
      error(R"({"min_pixels": 50177, "max_pixels": 50176})"),
      HasSubstr("preprocessor_config.json: min_pixels: 50177 is above the most pixels of a frame, 50176"));
  EXPECT_THAT(error(R"({"size": {"shortest_edge": 3000, "longest_edge": 2000}})"),
              HasSubstr("size.shortest_edge: 3000 is above"));
  EXPECT_THAT(error(R"({"max_pixels": 50000})"), HasSubstr("min_pixels: 100352 is above"))
      << "the default of videos";
}

}  // namespace
}  // namespace vigil::model
