// A model that several devices share answers as it does on one.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "engine/run/parallel_encoder.h"
#include "engine/run/pass_runner.h"
#include "engine/run/rank_team.h"
#include "engine/run/vision_encoder.h"
#include "tests/engine/demo_model.h"
#include "tests/engine/made_up_model.h"
#include "tests/engine/stream/demo_desk.h"
#include "tests/kernels/on_device.h"

namespace vigil::stream {
namespace {

using testing::demo_model;
using testing::made_up_model;
using testing::Picture;

/// A stream of its own for each, on the CPU or on as many GPUs.
std::vector<kernels::Stream> streams(int ranks) {
  std::vector<kernels::Stream> streams;
  for (int rank = 0; rank < ranks; ++rank)
    streams.push_back(kernels::tests_on_gpu() ? kernels::Stream::cuda(rank) : kernels::Stream::cpu(1));
  return streams;
}

/// Parts of the shared model.
int parts() {
  return kernels::tests_on_gpu() ? 2 : 3;
}

class SharedModelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::tests_on_gpu() && kernels::cuda_devices() < parts())
      GTEST_SKIP() << "skipped, needs " << parts() << " GPUs";
  }
};

std::shared_ptr<run::CachedModel> cached(int ranks, std::int64_t kv_tokens = 2048, int page_tokens = 16) {
  return std::make_shared<run::CachedModel>(made_up_model(),
                                            run::CachedModelOptions{.memory = streams(ranks),
                                                                    .compute = kernels::DType::f32,
                                                                    .kv_tokens = kv_tokens,
                                                                    .page_tokens = page_tokens});
}

struct Shared : testing::ModelDesk {
  run::ParallelEncoder encoder;

  explicit Shared(int ranks, std::int64_t rows = 13, const run::CachedModel* other = nullptr)
      : Shared(cached(ranks), rows, other) {}
  Shared(const std::shared_ptr<run::CachedModel>& of, std::int64_t rows, const run::CachedModel* other)
      : ModelDesk(of, streams(of->ranks()), {.rows = rows}, other),
        encoder(of->folder, kernels::DType::f32, streams(of->ranks())) {}
};

Question asks(const std::string& text, model::Sampling sampling = {}) {
  return {.text = text, .max_tokens = 9, .sampling = std::move(sampling), .on_text = {}};
}

ClipRequest request_of(Shared& on) {
  std::vector<Picture> pictures;
  for (std::uint32_t i = 0; i < 6; ++i) pictures.emplace_back(112, 84, i);
  std::vector<run::PatchFrames> patches;
  for (std::size_t i = 0; i < 6; i += 2)
    patches.push_back({{pictures[i].view(), pictures[i + 1].view()}, static_cast<double>(i), 1.0});
  // The likeliest token, those that take all logits, and one that takes a few.
  model::Sampling drawn, penalized, of_few;
  drawn.temperature = of_few.temperature = 1;
  drawn.seed = of_few.seed = 3;
  of_few.top_k = 20;
  penalized.repetition_penalty = 1.5F;
  return {on.encoder.encode(patches),
          {asks("Is there a person?"), asks("How many cars are there, and where?", drawn),
           asks("What is to be seen?", penalized), asks("How many are there?", of_few)}};
}

std::vector<Answer> answer(Shared& on) {
  const ClipRequest request = request_of(on);
  return on.answer(std::span(&request, 1))[0];
}

/// A pass of tokens alone.
run::Pass pass_of(std::span<const std::int32_t> tokens, std::vector<model::Position> positions,
                  std::vector<kernels::AttentionSegment> segments, std::vector<std::int32_t> outputs) {
  run::Pass pass;
  pass.rows = {{tokens, {}}};
  pass.positions = std::move(positions);
  pass.segments = std::move(segments);
  pass.outputs = std::move(outputs);
  return pass;
}

TEST_F(SharedModelTest, AnswersAsOnOneDevice) {
  Shared one(1, 1024);
  const std::vector<Answer> wanted = answer(one);
  ASSERT_EQ(wanted[0].tokens.size(), 9U);
  Shared shared(parts());
  EXPECT_EQ(shared.model->ranks(), parts());
  EXPECT_EQ(shared.model->parts[1]->pages.layout().kv_heads, 6 / parts());
  for (int again = 0; again < 2; ++again) {
    const std::vector<Answer> found = answer(shared);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(found[i].tokens, wanted[i].tokens) << i;
      EXPECT_EQ(found[i].text, wanted[i].text);
      EXPECT_NEAR(found[i].probability_yes, wanted[i].probability_yes, 1e-5);
    }
    EXPECT_EQ(shared.model->book.free_pages(), shared.model->book.pages());
  }
}

TEST_F(SharedModelTest, PrefillAndGenerationRunBesideEachOther) {
  Shared shared(parts());
  Shared beside(shared.model, 13, shared.model.get());
  std::vector<Picture> pictures{{56, 56, 1}, {56, 56, 2}};
  const run::PatchFrames patch{{pictures[0].view(), pictures[1].view()}, 0, 1};
  ClipRequest request{shared.encoder.encode(std::span(&patch, 1)), {asks("Is there a person?")}};
  request.questions[0].max_tokens = 60;
  const auto asked = shared.clips.ask(std::span(&request, 1))[0];
  auto loan = shared.desk.lend(asked.window, 0);
  ASSERT_TRUE(loan);
  std::thread generating([&] {
    beside.desk.adopt(std::move(*loan));
    const DeskNews news = beside.work();
    ASSERT_EQ(news.told.size(), 1U);
    EXPECT_EQ(news.told[0].answer.tokens.size(), 60U);
  });
  for (int i = 0; i < 5; ++i) {
    const auto again = shared.clips.ask(std::span(&request, 1))[0];
    EXPECT_EQ(again.answers[0].prompt_tokens, asked.answers[0].prompt_tokens);
    EXPECT_EQ(again.answers[0].tokens, asked.answers[0].tokens);
    shared.desk.done(again.window);
  }
  generating.join();
}

TEST_F(SharedModelTest, TheLogitsOfAllPartsComeTogether) {
  // One token after nothing: whole and parts, row by row.
  const auto run = [](int ranks) {
    run::CachedModel model(made_up_model(),
                           {.memory = streams(ranks), .compute = kernels::DType::f32, .kv_tokens = 128});
    run::PassRunner passes(model, streams(ranks));
    kv::View a(model.book), b(model.book);
    a.append(3);
    b.append(2);
    const std::vector<std::int32_t> tokens{5, 6, 7, 8, 2050}, own{0, 1, 2, 0, 1}, outputs{2, 4};
    const std::vector<model::Position> positions{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}, {0, 0, 0}, {1, 1, 1}};
    const std::vector<kernels::AttentionSegment> segments{{a.slots(), std::span(own).first(3), 0},
                                                          {b.slots(), std::span(own).subspan(3), 3}};
    passes.run(pass_of(tokens, positions, segments, outputs));
    std::vector<float> logits;
    std::vector<std::int32_t> likeliest;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto row = passes.logits(i);
      logits.insert(logits.end(), row.begin(), row.end());
      likeliest.push_back(passes.likeliest(i));
      EXPECT_EQ(std::max_element(row.begin(), row.end()) - row.begin(), likeliest.back());
    }
    EXPECT_EQ(logits.size(), 2 * 2053U);
    return logits;
  };
  const std::vector<float> one = run(1), shared = run(parts());
  for (std::size_t i = 0; i < one.size(); ++i) ASSERT_NEAR(shared[i], one[i], 1e-5) << i;
}

TEST_F(SharedModelTest, APassThatFailsIsFollowedByOneThatDoesNot) {
  run::CachedModel model(made_up_model(),
                         {.memory = streams(parts()), .compute = kernels::DType::f32, .kv_tokens = 64});
  run::PassRunner passes(model, streams(parts()));
  kv::View view(model.book);
  view.append(2);
  const model::Position position{};
  const std::int32_t own = 0;
  const kernels::AttentionSegment segment{view.slots(), std::span(&own, 1), 0};
  const auto step = [&](std::int32_t token) {
    passes.run(pass_of(std::span(&token, 1), {position}, {segment}, {own}));
    return passes.likeliest(0);
  };
  const std::int32_t wanted = step(9);
  EXPECT_THROW(step(9999), std::invalid_argument);
  EXPECT_EQ(step(9), wanted);
}

// What a step draws from may take no memory that is new: a GPU would give up what it recorded of that stream.
TEST_F(SharedModelTest, StepsStayRecordedWhileAnswersDrawAmongTheLikeliestFew) {
  for (const int ranks : {1, parts()}) {
    run::CachedModel model(made_up_model(),
                           {.memory = streams(ranks), .compute = kernels::DType::f32, .kv_tokens = 64});
    run::PassRunner passes(model, streams(ranks));
    kv::View view(model.book);
    std::int32_t token = 9;
    for (std::int32_t at = 0; at < 6; ++at) {
      view.append(1);
      const model::Position position{at, at, at};
      const kernels::AttentionSegment segment{view.slots(), std::span(&at, 1), 0};
      passes.run(pass_of(std::span(&token, 1), {position}, {segment}, {0}));
      const auto few = passes.likeliest(0, 20);
      ASSERT_EQ(few.size(), 20U);
      EXPECT_EQ(few.front().id, passes.likeliest(0));
      token = few.back().id;
    }
    EXPECT_EQ(passes.recorded_steps(), kernels::tests_on_gpu() ? 1U : 0U);
  }
}

TEST_F(SharedModelTest, AnswersGoOnElsewhereWithThePagesOfTheirWindows) {
  for (const int ranks : {1, parts()}) {
    Shared together(ranks);
    const std::vector<Answer> wanted = answer(together);
    // Prefill and generation on devices of their own, each in as many parts.
    Shared asking(ranks);
    Shared going(ranks, 13, asking.model.get());
    const ClipRequest request = request_of(asking);
    for (int again = 0; again < 2; ++again) {
      const auto asked = asking.clips.ask(std::span(&request, 1))[0];
      const std::int64_t free = asking.free_pages();
      // Each joins those that have gone on.
      std::vector<std::uint64_t> taken{going.model->book.events().taken};
      DeskNews news;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        auto loan = asking.desk.lend(asked.window, i);
        ASSERT_TRUE(loan);
        EXPECT_FALSE(asking.desk.lend(asked.window, i)) << "once";
        going.desk.adopt(std::move(*loan));
        taken.push_back(going.model->book.events().taken);
        going.desk.work({});
      }
      EXPECT_LT(taken[2] - taken[1], taken[1] - taken[0]) << "what they share is there already";
      EXPECT_LT(going.free_pages(), going.model->book.pages());
      news = going.work();
      ASSERT_EQ(news.told.size(), wanted.size());
      for (const DeskNews::Told& told : news.told)
        EXPECT_EQ(told.answer.tokens, wanted[told.question].tokens) << told.question;
      EXPECT_EQ(going.free_pages(), going.model->book.pages());
      EXPECT_GE(asking.free_pages(), free) << "nothing was added here";
      EXPECT_LT(asking.free_pages(), asking.model->book.pages()) << "until the window goes";
      asking.desk.done(asked.window);
      EXPECT_EQ(asking.free_pages(), asking.model->book.pages());
    }
  }
}

TEST_F(SharedModelTest, AModelThatDoesNotFitTakesNothingOver) {
  const auto one = cached(1);
  const auto takes_over = [&](const std::shared_ptr<run::CachedModel>& model) {
    const run::PassRunner passes(*model, streams(model->ranks()), one.get());
  };
  takes_over(cached(1));
  takes_over(cached(1, 4096));
  for (const auto& other : {cached(1, 2048, 32), cached(1, 1024), cached(parts())}) {
    try {
      takes_over(other);
      FAIL();
    } catch (const std::invalid_argument& error) {
      EXPECT_STREQ(error.what(), "windows cannot be continued by a model of another shape or in other parts");
    }
  }
  engine::EngineOptions options{
      .device = {}, .decode_device = run::Device{kernels::DeviceKind::cpu, {0, 1}}, .compute = {}};
  EXPECT_THROW(engine::make_engine(demo_model(), options), std::invalid_argument);
}

TEST_F(SharedModelTest, HeadsThatCannotBeSharedOutAreRefusedInOneLine) {
  const engine::EngineOptions two{
      .device = {kernels::DeviceKind::cpu, {0, 1}}, .decode_device = {}, .compute = {}, .threads = 1};
  EXPECT_EQ(model::testing::error_of([&] { engine::make_engine(demo_model(), two); }),
            "a model of 1 key and value heads cannot be shared by 2 devices: their number has to divide that "
            "of the "
            "heads");
}

TEST(ParallelEncoderTest, SharesFramesOutAndKeepsTheirOrder) {
  std::vector<Picture> pictures;
  for (std::uint32_t i = 0; i < 8; ++i) pictures.emplace_back(i < 6 ? 56 : 112, 84, i);
  std::vector<run::PatchFrames> patches;
  for (std::size_t i = 0; i < 8; i += 2)
    patches.push_back({{pictures[i].view(), pictures[i + 1].view()}, static_cast<double>(i), 1.0});
  const auto folder = made_up_model();
  run::TowerEncoder one(folder, kernels::DType::f32, kernels::Stream::cpu(1));
  const auto wanted = one.encode(patches);
  for (const int towers : {1, 2, 3, 7}) {
    run::ParallelEncoder encoder(folder, kernels::DType::f32, streams(towers));
    EXPECT_TRUE(encoder.encode({}).empty());
    const auto found = encoder.encode(patches);
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_EQ(found[i]->seconds, wanted[i]->seconds);
      ASSERT_EQ(found[i]->count(), wanted[i]->count());
      for (std::size_t j = 0; j < static_cast<std::size_t>(wanted[i]->count()) * 240; ++j)
        ASSERT_NEAR(found[i]->embeddings.as<float>()[j], wanted[i]->embeddings.as<float>()[j], 1e-4);
    }
  }
}

// What is remembered of a camera lies with one tower, to which all of its patches go.
TEST(ParallelEncoderTest, CamerasThatAreRememberedStayWithTheirTowers) {
  const Picture a(112, 84, 1), b(112, 84, 2), c(112, 84, 3);
  const base::GridMask all = base::GridMask::all(3, 4);
  base::GridMask some = base::GridMask::none(3, 4);
  for (const std::int64_t group : {1, 5, 6}) some.add(group);
  const auto of = [&](const std::string& camera, const Picture& picture, const base::GridMask& groups) {
    run::PatchFrames patch{{picture.view(), picture.view()}, 0, 1, groups};
    patch.kept = all;
    patch.camera = camera;
    return patch;
  };
  const run::PatchFrames nobodys{{c.view(), c.view()}, 0, 1};
  const std::vector<std::vector<run::PatchFrames>> calls{
      {of("x", a, all), of("y", b, all), of("z", c, all)},
      {of("z", a, some), nobodys, of("y", c, some), nobodys, of("x", b, some)},
      {of("y", a, some), of("x", c, some)},
      {nobodys, of("x", a, some), of("x", b, some), of("y", b, some)}};
  const auto folder = made_up_model();
  for (const int towers : {1, 2, 3}) {
    run::TowerEncoder one(folder, kernels::DType::f32, kernels::Stream::cpu(1));
    run::ParallelEncoder several(folder, kernels::DType::f32, streams(towers));
    for (const std::vector<run::PatchFrames>& patches : calls) {
      const auto wanted = one.encode(patches), found = several.encode(patches);
      ASSERT_EQ(found.size(), wanted.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        EXPECT_EQ(found[i]->encoded, wanted[i]->encoded) << towers << ", " << i;
        ASSERT_EQ(found[i]->count(), wanted[i]->count());
        for (std::size_t j = 0; j < static_cast<std::size_t>(wanted[i]->count()) * 240; ++j)
          ASSERT_NEAR(found[i]->embeddings.as<float>()[j], wanted[i]->embeddings.as<float>()[j], 1e-4);
      }
    }
    several.forget("x");
    const std::vector<run::PatchFrames> next{of("x", a, some), of("y", a, some)};
    const auto found = several.encode(next);
    EXPECT_EQ(found[0]->encoded, 12) << "it was forgotten";
    EXPECT_EQ(found[1]->encoded, 3);
  }
}

TEST(ParallelEncoderTest, WhatOneTowerRefusesIsRefused) {
  run::ParallelEncoder encoder(made_up_model(), kernels::DType::f32, streams(2));
  const std::vector<run::PatchFrames> patches(2);
  EXPECT_THROW(encoder.encode(patches), std::invalid_argument);
}

TEST(RankTeamTest, EveryRankTakesPartEveryTime) {
  run::RankTeam team(3);
  std::vector<int> rounds(3);
  for (int i = 0; i < 1000; ++i) team.run([&](int rank) { ++rounds[static_cast<std::size_t>(rank)]; }, [] {});
  EXPECT_EQ(rounds, (std::vector<int>{1000, 1000, 1000}));
}

TEST(RankTeamTest, TheFirstFailureIsToldAndTheOthersAreLetGo) {
  run::RankTeam team(2);
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> let_go = false;
    const auto body = [&](int rank) {
      if (rank == i % 2) throw std::out_of_range("first");
      while (!let_go) std::this_thread::yield();
      throw std::runtime_error("second");
    };
    EXPECT_THROW(team.run(body, [&] { let_go = true; }), std::out_of_range);
  }
}

}  // namespace
}  // namespace vigil::stream
