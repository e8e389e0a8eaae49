// A camera of the demo model whose windows are remembered as pages, and a desk that asks these again.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/page_maker.h"
#include "engine/memory/recall_desk.h"
#include "engine/run/stream_token_mover.h"
#include "tests/engine/stream/demo_desk.h"
#include "tests/kernels/on_device.h"

namespace vigil::memory::testing {

using kv::Form;
using stream::testing::demo_model;
using stream::testing::ModelDesk;

inline constexpr std::int64_t kPatches = 8;

/// Of the device under test; without one, all is skipped.
inline kernels::Stream stream_here() {
  return kernels::cuda_devices() > 0 ? kernels::test_stream() : kernels::Stream::cpu(1);
}

struct RecallDeskTest : ::testing::Test {
  kernels::DType type =
      kernels::tests_on_gpu() || kernels::cpu_has_bf16() ? kernels::DType::bf16 : kernels::DType::f32;
  std::vector<kernels::Stream> streams{stream_here()};
  ModelDesk at{std::make_shared<run::CachedModel>(
                   demo_model(),
                   run::CachedModelOptions{
                       .memory = {stream_here()}, .compute = type, .kv_tokens = 1024, .page_tokens = 64}),
               streams};
  run::StreamTokenMover mover{*at.model, streams};
  run::TokenTransfer transfer{streams.front()};
  kernels::HostMemory memory{streams.front(), std::uint64_t{1} << 28U};
  std::shared_ptr<PageMaker> maker =
      std::make_shared<PageMaker>(mover, memory, PageMaker::Options{.tokens = 40});
  RecallDesk recalls{at.desk, mover, transfer, demo_model()->config};
  std::vector<stream::CompiledQuestionPtr> questions;
  std::vector<FreshPage> pages;
  std::vector<stream::Answer> answers;
  std::uint64_t tickets = 0;
  /// Tokens before a window that were seen by clusters, at most; and what failed.
  std::int64_t most_before = 0;
  std::vector<RecallDesk::News::Failed> failures;

  void SetUp() override {
    VIGIL_SKIP_WITHOUT_DEVICE();
    at.desk.leave_to(maker);
    for (const stream::Question& rule : stream::testing::rules())
      questions.push_back(at.questions.compile(rule));
  }
  void TearDown() override { maker->forget_all(); }

  /// A camera sees eight patches from so many seconds on, is asked twice, and ends: its pages, and what it
  /// said the second time, when all keys were there.
  void watch(double begin = 0, const std::string& camera = "gate", std::int64_t count = kPatches) {
    maker->remember(camera,
                    {{"city", camera}, {Form::bf16, Form::fp8, Form::int4, Form::embeddings, Form::sketch}});
    at.desk.open(camera, stream::make_refresh("none"));
    const auto patches =
        stream::testing::noise_window(static_cast<int>(count), 5, 112, 84, kernels::DType::f32, begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto seen = transfer.to_device(patches[static_cast<std::size_t>(i)]);
      std::const_pointer_cast<model::VisualTokens>(seen)->standing_out = standing_out(i, seen->kept);
      at.desk.append(camera, seen,
                     base::Clock::WallTime(std::chrono::hours(480'000) + std::chrono::seconds(i + 1)));
    }
    for (int time = 0; time < 2; ++time) {
      stream::Asking asking;
      asking.patches = {0, count};
      for (const auto& question : questions) asking.questions.push_back({question, {}});
      const stream::WindowId id = at.desk.ask(camera, std::move(asking));
      stream::DeskNews news = at.work();
      ASSERT_EQ(news.answered.size(), 1U);
      answers = news.answered[0].answers;
      for (std::size_t i = 0; i < questions.size(); ++i) at.desk.explain(id, i);
      news = at.work();
      for (const auto& told : news.told) answers[told.question] = told.answer;
      at.desk.done(id);
    }
    at.desk.close(camera);
    pages = maker->take_news().pages;
    ASSERT_GE(pages.size(), 2U);
  }
  /// Of patch i: every third patch none, otherwise every other or every third token.
  static base::GridMask standing_out(std::int64_t i, const base::GridMask& kept) {
    base::GridMask mask = base::GridMask::none(kept.height(), kept.width());
    const std::int64_t every = i % 3 == 0 ? kept.cells() : i % 3 + 1;
    for (std::int64_t cell = every - 1; i % 3 != 0 && cell < kept.cells(); cell += every) mask.add(cell);
    return mask;
  }
  static RecalledPage recalled(const FreshPage& page, Form form) {
    for (const run::MovedTokens& tokens : page.forms)
      if (tokens.form == form)
        return {form == Form::sketch ? page.sketch.value() : page.info,
                form,
                {{{tokens.bytes.get(), tokens.size}, 0, 0, tokens.bytes}},
                0,
                page.info.patches.size()};
    return {};
  }
  Recalling all(Form form) const {
    Recalling recalling;
    for (const FreshPage& page : pages) recalling.pages.push_back(recalled(page, form));
    recalling.questions = questions;
    return recalling;
  }
  /// What is said of the past; nothing if it failed.
  std::vector<stream::Answer> ask(const Recalling& recalling) { return ask(recalling, recalls, at.desk); }
  std::vector<stream::Answer> ask(const Recalling& recalling, RecallDesk& of, stream::StreamDesk& desk) {
    const std::uint64_t ticket = ++tickets;
    const auto refusal = of.ask(ticket, recalling);
    EXPECT_FALSE(refusal) << refusal->reason;
    if (refusal) return {};
    while (of.open() > 0) {
      if (of.due()) {
        of.work({});
        most_before = std::max(most_before, desk.window_memory().tokens);
      } else if (desk.due()) {
        desk.work({at.clock.now()});
      } else {
        break;
      }
      const stream::DeskNews news = desk.take_news();
      for (const auto& each : news.forgotten) EXPECT_TRUE(of.forgotten(each));
      for (const auto& each : news.shortened) EXPECT_TRUE(of.shortened(each));
      for (const auto& each : news.answered) EXPECT_TRUE(of.answered(each));
      for (const auto& each : news.failed) EXPECT_TRUE(of.failed(each));
      for (const auto& each : news.told) EXPECT_TRUE(of.told(each));
      // Of answers that were whole with their first token.
      const stream::DeskNews more = desk.take_news();
      for (const auto& each : more.told) EXPECT_TRUE(of.told(each));
    }
    RecallDesk::News news = of.take_news();
    EXPECT_EQ(of.open(), 0U);
    for (auto& each : news.failed) failures.push_back(std::move(each));
    if (news.answered.empty()) return {};
    EXPECT_EQ(news.answered[0].first, ticket);
    return std::move(news.answered[0].second);
  }
};

}  // namespace vigil::memory::testing
