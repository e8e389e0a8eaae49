// Target and drafter at once: two engines of one process, each on streams, and if there are two GPUs, on a
// GPU of its own.
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/clips.h"
#include "tests/engine/demo_model.h"
#include "tests/engine/stream/demo_desk.h"
#include "tests/kernels/on_device.h"

namespace vigil::stream {
namespace {

class TwoModelsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::tests_on_gpu() && kernels::cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  }

  static engine::Engine engine(const std::string& folder, int gpu) {
    engine::EngineOptions options{.device = {}, .compute = kernels::DType::f32, .threads = 1};
    if (kernels::tests_on_gpu()) options.device = {kernels::DeviceKind::cuda, {gpu}};
    return engine::make_engine(std::filesystem::path(VIGIL_SOURCE_DIR) / "models" / folder, options);
  }

  /// From frames to the words of an explaining answer.
  static std::vector<std::int32_t> explain(engine::Engine& engine) {
    std::vector<testing::Picture> pictures;
    for (std::uint32_t i = 0; i < 8; ++i) pictures.emplace_back(112, 84, i);
    std::vector<run::PatchFrames> patches;
    for (std::size_t i = 0; i < pictures.size(); i += 2)
      patches.push_back({{pictures[i].view(), pictures[i + 1].view()}, static_cast<double>(i) / 2, 1.0});
    const ClipRequest request{
        engine.encoder->encode(patches),
        {{.text = "What is the person doing?", .max_tokens = 24, .sampling = {}, .on_text = {}}}};
    const testing::StillClock clock;
    Clips clips(*engine.language.desk, *engine.language.questions, clock);
    return clips.answer(std::span(&request, 1)).front().front().tokens;
  }
};

TEST_F(TwoModelsTest, EachAnswersAsItDoesAlone) {
  engine::Engine target = engine("demo", 0);
  engine::Engine drafter =
      engine("demo-draft", kernels::tests_on_gpu() && kernels::cuda_devices() > 1 ? 1 : 0);
  const std::vector<std::int32_t> of_target = explain(target);
  const std::vector<std::int32_t> of_drafter = explain(drafter);
  ASSERT_FALSE(of_target.empty());
  ASSERT_FALSE(of_drafter.empty());
  constexpr int kTimes = 4;
  std::vector<std::vector<std::int32_t>> drafted;
  std::thread beside([&] {
    for (int i = 0; i < kTimes; ++i) drafted.push_back(explain(drafter));
  });
  for (int i = 0; i < kTimes; ++i) EXPECT_EQ(explain(target), of_target) << i;
  beside.join();
  for (const auto& tokens : drafted) EXPECT_EQ(tokens, of_drafter);
}

}  // namespace
}  // namespace vigil::stream
