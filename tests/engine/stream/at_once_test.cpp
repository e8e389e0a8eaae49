// What computes at the same time in one process: target and drafter, two engines, each on streams, and if
// there are two GPUs, on a GPU of its own; and the parts of one engine.
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

class AtOnceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::tests_on_gpu() && kernels::cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  }

  static engine::Engine engine(const std::string& folder, int gpu) {
    engine::EngineOptions options{.device = {}, .compute = kernels::DType::f32, .threads = 1};
    if (kernels::tests_on_gpu()) options.device = {kernels::DeviceKind::cuda, {gpu}};
    return engine::make_engine(std::filesystem::path(VIGIL_SOURCE_DIR) / "models" / folder, options);
  }

  static std::vector<model::VisualTokensPtr> encode(engine::Engine& engine) {
    std::vector<testing::Picture> pictures;
    for (std::uint32_t i = 0; i < 8; ++i) pictures.emplace_back(112, 84, i);
    std::vector<run::PatchFrames> patches;
    for (std::size_t i = 0; i < pictures.size(); i += 2)
      patches.push_back({{pictures[i].view(), pictures[i + 1].view()}, static_cast<double>(i) / 2, 1.0});
    return engine.encoder->encode(patches);
  }

  /// The words of an explaining answer.
  static std::vector<std::int32_t> explain(engine::Engine& engine,
                                           const std::vector<model::VisualTokensPtr>& video) {
    const ClipRequest request{
        video, {{.text = "What is the person doing?", .max_tokens = 24, .sampling = {}, .on_text = {}}}};
    const testing::StillClock clock;
    Clips clips(*engine.language.desk, *engine.language.questions, clock);
    return clips.answer(std::span(&request, 1)).front().front().tokens;
  }

  static std::vector<std::int32_t> explain(engine::Engine& engine) { return explain(engine, encode(engine)); }

  static std::vector<std::vector<std::byte>> bytes(const std::vector<model::VisualTokensPtr>& video) {
    std::vector<std::vector<std::byte>> result;
    for (const model::VisualTokensPtr& each : video)
      result.emplace_back(each->embeddings.data(), each->embeddings.data() + each->embeddings.bytes());
    return result;
  }
};

TEST_F(AtOnceTest, EachModelAnswersAsItDoesAlone) {
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

TEST_F(AtOnceTest, TheTowerComputesBesideItsLanguageModelWhereThatIsWorthIt) {
  engine::Engine one = engine("demo", 0);
  ASSERT_EQ(one.parts_overlap, !kernels::tests_on_gpu());
  if (!one.parts_overlap) return;
  const std::vector<model::VisualTokensPtr> video = encode(one);
  const auto encoded = bytes(video);
  const std::vector<std::int32_t> told = explain(one, video);
  constexpr int kTimes = 4;
  std::vector<std::vector<std::vector<std::byte>>> beside;
  std::thread tower([&] {
    for (int i = 0; i < kTimes; ++i) beside.push_back(bytes(encode(one)));
  });
  for (int i = 0; i < kTimes; ++i) EXPECT_EQ(explain(one, video), told) << i;
  tower.join();
  for (const auto& each : beside) EXPECT_TRUE(each == encoded);
}

}  // namespace
}  // namespace vigil::stream
