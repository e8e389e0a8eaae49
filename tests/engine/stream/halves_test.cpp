// The halves of a model in engines of their own: they answer together as one engine does, and neither has
// what is the other's.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/run/token_transfer.h"
#include "engine/stream/clips.h"
#include "tests/engine/demo_model.h"
#include "tests/engine/model/support.h"
#include "tests/engine/stream/demo_desk.h"
#include "tests/kernels/on_device.h"

namespace vigil::stream {
namespace {

namespace fs = std::filesystem;

class HalvesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::tests_on_gpu() && kernels::cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  }

  static engine::EngineOptions options(engine::Halves halves) {
    engine::EngineOptions made{.device = {}, .halves = halves, .compute = kernels::DType::f32, .threads = 1};
    if (kernels::tests_on_gpu()) made.device = {kernels::DeviceKind::cuda, {0}};
    return made;
  }
  static engine::Engine demo(engine::Halves halves) {
    return engine::make_engine(testing::demo_model(), options(halves));
  }

  static std::vector<model::VisualTokensPtr> encode(engine::Engine& engine) {
    std::vector<testing::Picture> pictures;
    for (std::uint32_t i = 0; i < 8; ++i) pictures.emplace_back(112, 84, i);
    std::vector<run::PatchFrames> patches;
    for (std::size_t i = 0; i < pictures.size(); i += 2)
      patches.push_back({{pictures[i].view(), pictures[i + 1].view()}, static_cast<double>(i) / 2, 1.0});
    return engine.encoder->encode(patches);
  }

  static Answer answer(engine::Engine& engine, const std::vector<model::VisualTokensPtr>& video) {
    const ClipRequest request{
        video, {{.text = "What is the person doing?", .max_tokens = 24, .sampling = {}, .on_text = {}}}};
    const testing::StillClock clock;
    Clips clips(*engine.language.desk, *engine.language.questions, clock);
    return clips.answer(std::span(&request, 1)).front().front();
  }

  /// As bytes of another process have them.
  static model::VisualTokensPtr by_wire(const model::VisualTokens& tokens) {
    model::VisualTokens like;
    like.dtype = tokens.dtype;
    like.width = tokens.width;
    like.kept = tokens.kept;
    like.seconds = tokens.seconds;
    like.duration = tokens.duration;
    like.intra = tokens.intra;
    like.encoded = tokens.encoded;
    return run::host_tokens(std::move(like), {tokens.embeddings.data(), tokens.bytes()});
  }
};

TEST_F(HalvesTest, AnswerTogetherAsOneEngineDoes) {
  engine::Engine whole = demo(engine::Halves::both);
  const Answer expected = answer(whole, encode(whole));
  engine::Engine tower = demo(engine::Halves::tower);
  engine::Engine language = demo(engine::Halves::language);
  EXPECT_EQ(tower.frames_per_patch, 2);
  EXPECT_EQ(language.frames_per_patch, 2);
  std::vector<model::VisualTokensPtr> video;
  for (const model::VisualTokensPtr& tokens : encode(tower))
    video.push_back(language.transfer->to_device(by_wire(*tower.transfer->to_host(tokens))));
  const Answer together = answer(language, video);
  EXPECT_EQ(together.tokens, expected.tokens);
  EXPECT_EQ(together.probability_yes, expected.probability_yes) << "to the last bit";
}

TEST_F(HalvesTest, ATowerAloneHasNoLanguageModelAndAsksForNoCache) {
  engine::EngineOptions no_cache = options(engine::Halves::tower);
  no_cache.kv_tokens = 0;
  engine::Engine tower = engine::make_engine(testing::demo_model(), no_cache);
  EXPECT_EQ(tower.language.model, nullptr);
  EXPECT_EQ(tower.language.desk, nullptr);
  EXPECT_FALSE(tower.parts_overlap);
  EXPECT_EQ(encode(tower).size(), 4U);
  no_cache.halves = engine::Halves::both;
  EXPECT_THROW(engine::make_engine(testing::demo_model(), no_cache), std::invalid_argument);
}

// What preprocesses pictures is read with the tower, and here it is not there.
TEST_F(HalvesTest, ALanguageModelAloneHasNoTower) {
  const model::testing::ScratchFolder scratch;
  for (const auto& file : fs::directory_iterator(fs::path(VIGIL_SOURCE_DIR) / "models" / "demo"))
    if (file.path().filename() != "preprocessor_config.json")
      fs::create_symlink(file.path(), scratch.path() / file.path().filename());
  engine::Engine language = engine::make_engine(scratch.path(), options(engine::Halves::language));
  EXPECT_EQ(language.encoder, nullptr);
  engine::Engine tower = demo(engine::Halves::tower);
  std::vector<model::VisualTokensPtr> video;
  for (const model::VisualTokensPtr& tokens : encode(tower))
    video.push_back(language.transfer->to_device(tower.transfer->to_host(tokens)));
  EXPECT_FALSE(answer(language, video).tokens.empty());
  EXPECT_THROW(engine::make_engine(scratch.path(), options(engine::Halves::tower)), model::ModelError);
}

}  // namespace
}  // namespace vigil::stream
