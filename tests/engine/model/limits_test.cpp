#include "engine/model/limits.h"

#include <string>

#include <gtest/gtest.h>

#include "engine/model/decoder.h"
#include "engine/model/model_folder.h"
#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using kernels::DeviceKind;
using testing::error_of;

TEST(LimitsTest, HeadsOfTheDecoder) {
  TextConfig text;
  text.hidden_size = 1024;
  text.head_dim = 256;
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cuda, 1));
  text.head_dim = 258;
  EXPECT_EQ(error_of([&] { check_limits(text, DeviceKind::cuda, 1); }),
            "config.json: the head width 258 is not supported on a GPU, at most 256 is");
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cpu, 1));
}

TEST(LimitsTest, RowsThatDevicesAddUp) {
  TextConfig text;
  text.head_dim = 128;
  text.hidden_size = 16384;
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cuda, 8));
  text.hidden_size = 16512;
  EXPECT_NO_THROW(check_limits(text, DeviceKind::cuda, 1));
  for (const DeviceKind device : {DeviceKind::cpu, DeviceKind::cuda})
    EXPECT_EQ(
        error_of([&] { check_limits(text, device, 2); }),
        "config.json: hidden_size 16512 is not supported by devices that share a model, at most 16384 is");
}

TEST(LimitsTest, TheVisionTower) {
  VisionConfig vision;
  vision.hidden_size = 1024;
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
  EXPECT_EQ(error_of([&] { check_limits(wide, DeviceKind::cuda); }),
            "config.json: the vision tower's head width 260 is not supported on a GPU, at most 256 is");
  EXPECT_EQ(error_of([&] { check_limits(many, DeviceKind::cuda); }),
            "config.json: the vision tower's num_heads 65536 is not supported on a GPU, at most 65535 is");
  EXPECT_EQ(error_of([&] { check_limits(slow, DeviceKind::cuda); }),
            "config.json: temporal_patch_size 9 is not supported on a GPU, at most 8 is");
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
