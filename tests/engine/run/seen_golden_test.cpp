// A camera that is remembered, beside transformers' tower whose blocks of full attention were given the keys
// and values that the rest of the picture had (tools/golden_seen.py).
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/files/safetensors.h"
#include "engine/run/tower_encoder.h"
#include "tests/engine/demo_model.h"
#include "tests/kernels/on_device.h"

namespace vigil::run {
namespace {

using stream::testing::Picture;

class SeenGoldenTest : public ::testing::Test {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }

  std::vector<std::int32_t> list(int step, const std::string& name) const {
    const model::TensorView& tensor = *golden_->find(std::to_string(step) + "/" + name);
    const auto* first = reinterpret_cast<const std::int32_t*>(tensor.data);
    return {first, first + tensor.elements()};
  }
  Picture picture(int step) const {
    const auto edge = [this](const char* name) { return std::stoi(golden_->metadata().find(name)->second); };
    return {edge("width"), edge("height"), static_cast<std::uint32_t>(list(step, "seed")[0])};
  }
  /// The squares of a step; `camera` empty: of nobody who is remembered.
  static PatchFrames patch(const Picture& picture, const std::vector<std::int32_t>& squares,
                           const std::string& camera) {
    PatchFrames patch{{picture.view(), picture.view()}, 0, 1};
    patch.encoded = base::GridMask::none(picture.height / 28, picture.width / 28);
    for (const std::int32_t square : squares) patch.encoded->add(square);
    if (camera.empty()) return patch;
    patch.kept = patch.encoded;
    patch.camera = camera;
    return patch;
  }
  /// |made - expected| / |expected|
  static double error_of(const kernels::Stream& stream, const model::VisualTokens& tokens,
                         const model::TensorView& expected) {
    if (tokens.embeddings.bytes() < expected.bytes() || tokens.count() != expected.shape[0]) return INFINITY;
    std::vector<float> made(static_cast<std::size_t>(expected.elements()));
    kernels::download(stream, made.data(), tokens.embeddings.data(), expected.bytes());
    const auto* values = reinterpret_cast<const float*>(expected.data);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      error += std::pow(double{made[i]} - values[i], 2);
      size += std::pow(double{values[i]}, 2);
    }
    return std::sqrt(error / size);
  }

  const std::shared_ptr<const model::SafetensorsFile> golden_ =
      model::SafetensorsFile::open(VIGIL_SOURCE_DIR "/tests/golden/seen.safetensors");
};

TEST_F(SeenGoldenTest, WhatIsComputedSeesTheRestAsTransformersBlocksDo) {
  const kernels::Stream stream = kernels::test_stream(2);
  TowerEncoder encoder(stream::testing::demo_model(), kernels::DType::f32, stream);
  for (int step = 0; golden_->find(std::to_string(step) + "/groups") != nullptr; ++step) {
    const Picture seen = picture(step);
    const std::vector<std::int32_t> squares = list(step, "groups");
    const PatchFrames remembered = patch(seen, squares, "gate");
    const auto tokens = encoder.encode(std::span(&remembered, 1)).front();
    ASSERT_EQ(tokens->kept.list(), squares);
    EXPECT_EQ(tokens->encoded, static_cast<std::int64_t>(squares.size()));
    ASSERT_EQ(tokens->kept.has_all(), step == 0);
    if (step == 0) continue;
    const model::TensorView& expected = *golden_->find(std::to_string(step) + "/embeddings");
    EXPECT_LT(error_of(stream, *tokens, expected), 2e-6) << "step " << step;
    const PatchFrames alone = patch(seen, squares, "");
    EXPECT_GT(error_of(stream, *encoder.encode(std::span(&alone, 1)).front(), expected), 0.05)
        << "without the rest of the picture, step " << step;
  }
  EXPECT_NE(golden_->find("4/embeddings"), nullptr) << "what was computed last is seen from step to step";
}

}  // namespace
}  // namespace vigil::run
