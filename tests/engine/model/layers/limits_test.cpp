#include "engine/model/layers/limits.h"

#include <string>

#include <gtest/gtest.h>

#include "engine/model/language/decoder.h"
#include "engine/model/language/shard.h"
#include "engine/model/model_folder.h"
#include "engine/model/vision/vision_tower.h"
#include "kernels/linear/linear.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using kernels::DeviceKind;
using testing::error_of;

/// Of a model that all devices compute.
TextConfig text_shape() {
  TextConfig text;
  text.hidden_size = 1024;
  text.intermediate_size = 2048;
  text.num_hidden_layers = 2;
  text.num_attention_heads = 8;
  text.num_key_value_heads = 2;
  text.head_dim = 128;
  text.vocab_size = 4096;
  text.mrope_section = {16, 24, 24};
  return text;
}

VisionConfig vision_shape() {
  VisionConfig vision;
  vision.depth = 2;
  vision.hidden_size = 1024;
  vision.intermediate_size = 2048;
  vision.num_heads = 8;
  vision.out_hidden_size = 1024;
  return vision;
}

constexpr DeviceKind kDevices[] = {DeviceKind::cpu, DeviceKind::cuda};

/// That a shape which `change` has changed is refused by a device, and so.
template <class Change>
void expect_refused(const Change& change, const std::string& line) {
  TextConfig text = text_shape();
  change(text);
  for (const DeviceKind device : kDevices)
    EXPECT_EQ(error_of([&] { check_limits(text, device, 1); }), "config.json: " + line);
}
template <class Change>
void expect_tower_refused(const Change& change, const std::string& line) {
  VisionConfig vision = vision_shape();
  change(vision);
  for (const DeviceKind device : kDevices)
    EXPECT_EQ(error_of([&] { check_limits(vision, device); }), "config.json: " + line);
}

TEST(LimitsTest, ShapesThatAllDevicesHave) {
  for (const DeviceKind device : kDevices) {
    EXPECT_NO_THROW(check_limits(vision_shape(), device));
    for (const int ranks : {1, 2, 8}) EXPECT_NO_THROW(check_limits(text_shape(), device, ranks));
    // As odd as it may be.
    TextConfig text = text_shape();
    text.hidden_size = 3 * 46;
    text.num_attention_heads = text.num_key_value_heads = 3;
    text.head_dim = 46;
    text.intermediate_size = 331;
    text.vocab_size = 1009;
    text.mrope_section = {0, 23, 0};
    EXPECT_NO_THROW(check_limits(text, device, 3));
    VisionConfig vision = vision_shape();
    vision.num_heads = 5;
    vision.hidden_size = 5 * 12;
    vision.intermediate_size = 1;
    vision.window_size = 28;
    EXPECT_NO_THROW(check_limits(vision, device));
  }
}

TEST(LimitsTest, HeadsOfTheDecoder) {
  TextConfig text = text_shape();
  text.head_dim = 256;
  text.mrope_section = {32, 48, 48};
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cuda, 1));
  text.head_dim = 258;
  text.mrope_section = {33, 48, 48};
  EXPECT_EQ(
      error_of([&] { check_limits(text, DeviceKind::cuda, 1); }),
      "config.json: the head width (hidden_size / num_attention_heads) 258 is not supported on a GPU, at "
      "most 256 is");
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cpu, 1));
}

TEST(LimitsTest, SizesOfTheDecoder) {
  expect_refused([](TextConfig& text) { text.hidden_size = 0; },
                 "hidden_size 0 is not supported, at least 1 is");
  expect_refused([](TextConfig& text) { text.intermediate_size = 0; },
                 "intermediate_size 0 is not supported, at least 1 is");
  expect_refused([](TextConfig& text) { text.num_hidden_layers = 0; },
                 "num_hidden_layers 0 is not supported, at least 1 is");
  expect_refused([](TextConfig& text) { text.vocab_size = 0; },
                 "vocab_size 0 is not supported, at least 1 is");
  expect_refused([](TextConfig& text) { text.num_attention_heads = 0; },
                 "num_attention_heads 0 is not supported, at least 1 is");
  expect_refused([](TextConfig& text) { text.num_key_value_heads = 0; },
                 "num_key_value_heads 0 is not supported, at least 1 is");
  expect_refused([](TextConfig& text) { text.num_key_value_heads = 3; },
                 "num_attention_heads 8 is not supported, multiples of num_key_value_heads 3 are");
  expect_refused(
      [](TextConfig& text) { text.head_dim = 127; },
      "the head width (hidden_size / num_attention_heads) 127 is not supported, multiples of 2 are");
  expect_refused([](TextConfig& text) { text.head_dim = 0; },
                 "the head width (hidden_size / num_attention_heads) 0 is not supported, at least 2 is");
}

TEST(LimitsTest, RotarySections) {
  expect_refused(
      [](TextConfig& text) {
        text.mrope_section = {16, 24, 23};
      },
      "mrope_section, which adds up to 63, is not supported, 64 is, half of the head width");
  expect_refused(
      [](TextConfig& text) {
        text.mrope_section = {-1, 41, 24};
      },
      "a number in mrope_section, -1 is not supported, at least 0 is");
}

TEST(LimitsTest, RowsThatDevicesAddUp) {
  TextConfig text = text_shape();
  text.hidden_size = 16384;
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cuda, 8));
  text.hidden_size = 16512;
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cuda, 1));
  for (const DeviceKind device : kDevices)
    EXPECT_EQ(
        error_of([&] { check_limits(text, device, 2); }),
        "config.json: hidden_size 16512 is not supported by devices that share a model, at most 16384 is");
}

// A device without a token would be asked for the largest of no logits.
TEST(LimitsTest, EachOfTheDevicesThatShareAModelHasTokens) {
  TextConfig text = text_shape();
  text.vocab_size = 57;
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cuda, 8));
  for (int rank = 0; rank < 8; ++rank)
    EXPECT_GT(share_of(text.vocab_size, {rank, 8}, kernels::linear_multiple(DeviceKind::cuda)).count, 0);
  text.vocab_size = 56;
  EXPECT_EQ(error_of([&] { check_limits(text, DeviceKind::cuda, 8); }),
            "config.json: vocab_size 56 is not supported by devices that share a model, at least 57 is");
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cpu, 8));
  text.vocab_size = 7;
  EXPECT_EQ(error_of([&] { check_limits(text, DeviceKind::cpu, 8); }),
            "config.json: vocab_size 7 is not supported by devices that share a model, at least 8 is");
}

TEST(LimitsTest, TheVisionTower) {
  VisionConfig vision = vision_shape();
  vision.num_heads = 4;
  vision.temporal_patch_size = 8;
  EXPECT_NO_THROW(check_limits(vision, DeviceKind::cuda));
  VisionConfig wide = vision, many = vision, slow = vision;
  wide.hidden_size = 1040;
  many.hidden_size = 4 * 65536;
  many.num_heads = 65536;
  slow.temporal_patch_size = 9;
  for (const VisionConfig& config : {wide, many, slow})
    EXPECT_NO_THROW(check_limits(config, DeviceKind::cpu));
  EXPECT_EQ(
      error_of([&] { check_limits(wide, DeviceKind::cuda); }),
      "config.json: the vision tower's head width (hidden_size / num_heads) 260 is not supported on a GPU, "
      "at most 256 is");
  EXPECT_EQ(error_of([&] { check_limits(many, DeviceKind::cuda); }),
            "config.json: the vision tower's num_heads 65536 is not supported on a GPU, at most 65535 is");
  EXPECT_EQ(error_of([&] { check_limits(slow, DeviceKind::cuda); }),
            "config.json: temporal_patch_size 9 is not supported on a GPU, at most 8 is");
}

TEST(LimitsTest, SizesOfTheVisionTower) {
  expect_tower_refused([](VisionConfig& vision) { vision.hidden_size = 0; },
                       "the vision tower's hidden_size 0 is not supported, at least 1 is");
  expect_tower_refused([](VisionConfig& vision) { vision.intermediate_size = 0; },
                       "the vision tower's intermediate_size 0 is not supported, at least 1 is");
  expect_tower_refused([](VisionConfig& vision) { vision.out_hidden_size = 0; },
                       "out_hidden_size 0 is not supported, at least 1 is");
  expect_tower_refused([](VisionConfig& vision) { vision.num_heads = 0; },
                       "the vision tower's num_heads 0 is not supported, at least 1 is");
  expect_tower_refused([](VisionConfig& vision) { vision.num_heads = 3; },
                       "the vision tower's hidden_size 1024 is not supported, multiples of num_heads 3 are");
  expect_tower_refused(
      [](VisionConfig& vision) { vision.hidden_size = 8 * 42; },
      "the vision tower's head width (hidden_size / num_heads) 42 is not supported, multiples of 4 are");
  expect_tower_refused([](VisionConfig& vision) { vision.in_channels = 1; },
                       "in_channels 1 is not supported, at least 3 is");
  expect_tower_refused([](VisionConfig& vision) { vision.in_channels = 4; },
                       "in_channels 4 is not supported, at most 3 is");
  expect_tower_refused([](VisionConfig& vision) { vision.patch_size = 0; },
                       "patch_size 0 is not supported, at least 1 is");
  expect_tower_refused([](VisionConfig& vision) { vision.temporal_patch_size = 0; },
                       "temporal_patch_size 0 is not supported, at least 1 is");
  expect_tower_refused([](VisionConfig& vision) { vision.spatial_merge_size = 0; },
                       "spatial_merge_size 0 is not supported, at least 1 is");
  expect_tower_refused([](VisionConfig& vision) { vision.window_size = 27; },
                       "window_size 27 is not supported, at least 28 is");
}

TEST(LimitsTest, ATowerIsRefusedBeforeItsSizesDivideEachOther) {
  const kernels::Stream stream = kernels::Stream::cpu(1);
  VisionConfig vision = vision_shape();
  vision.num_heads = 0;
  EXPECT_EQ(error_of([&] { const VisionTower tower(vision, Parameters(7, stream, kernels::DType::f32)); }),
            "config.json: the vision tower's num_heads 0 is not supported, at least 1 is");
}

TEST(LimitsTest, ADecoderIsRefusedBeforeItsWeightsAreLoaded) {
  const testing::ScratchFolder scratch;
  scratch.write("config.json", R"({
    "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl", "hidden_size": 16512,
    "intermediate_size": 129, "num_hidden_layers": 1, "num_attention_heads": 129, "num_key_value_heads": 129,
    "vocab_size": 2053, "image_token_id": 2046, "video_token_id": 2047, "vision_start_token_id": 2044,
    "vision_end_token_id": 2045, "vision_config": {"out_hidden_size": 16512}})");
  const auto folder =
      ModelFolder::made_up(scratch.path() / "config.json", std::string(VIGIL_SOURCE_DIR) + "/models/demo", 5);
  EXPECT_EQ(
      error_of([&] {
        const Decoder decoder(folder->config.text,
                              folder->parameters(kernels::Stream::cpu(1), kernels::DType::f32), {0, 129});
      }),
      "config.json: hidden_size 16512 is not supported by devices that share a model, at most 16384 is");
}

}  // namespace
}  // namespace vigil::model
