// A desk over a real model, and what is asked there.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "engine/run/cached_model.h"
#include "engine/run/pass_runner.h"
#include "engine/stream/clips.h"
#include "engine/stream/stream_desk.h"
#include "tests/engine/demo_model.h"

namespace vigil::stream::testing {

/// Time stands still.
class StillClock final : public base::Clock {
 public:
  TimePoint now() const override { return {}; }
  WallTime wall() const override { return {}; }
};

/// A desk on streams of its own, and whole clips at it. Several may share a model.
struct ModelDesk {
  std::shared_ptr<run::CachedModel> model;
  run::PassRunner passes;
  QuestionCompiler questions;
  StreamDesk desk;
  StillClock clock;
  Clips clips{desk, questions, clock};

  /// `other`: whose windows go on here; null: none.
  ModelDesk(std::shared_ptr<run::CachedModel> of, const std::vector<kernels::Stream>& streams,
            PassLimits limits = {}, const run::CachedModel* other = nullptr,
            std::int64_t memory_bytes = StreamDesk::Options().memory_bytes)
      : model(std::move(of)),
        passes(*model, streams, other),
        questions(*model->folder, model->prompts),
        desk(*model->folder, model->prompts, model->book, passes,
             {.limits = limits, .memory = {}, .memory_bytes = memory_bytes}) {}

  auto answer(std::span<const ClipRequest> requests) { return clips.answer(requests); }
  std::int64_t free_pages() const { return model->book.free_pages(); }
  /// Works until there is nothing to do: what has come of it since the last call.
  DeskNews work() {
    while (desk.due()) desk.work({clock.now()});
    return desk.take_news();
  }
};

/// One over the demo model, with a cache of its own.
struct DemoDesk : ModelDesk {
  explicit DemoDesk(std::int64_t kv_tokens = 2048, PassLimits limits = {}, int page_tokens = 64,
                    std::shared_ptr<const model::ModelFolder> folder = demo_model(),
                    std::int64_t memory_bytes = StreamDesk::Options().memory_bytes)
      : ModelDesk(std::make_shared<run::CachedModel>(
                      std::move(folder), run::CachedModelOptions{.memory = {kernels::Stream::cpu()},
                                                                 .compute = kernels::DType::f32,
                                                                 .kv_tokens = kv_tokens,
                                                                 .page_tokens = page_tokens}),
                  {kernels::Stream::cpu(2)}, limits, nullptr, memory_bytes) {}
};

inline Question question(const std::string& text, int max_tokens = 6) {
  return {.text = text, .max_tokens = max_tokens, .sampling = {}, .on_text = {}};
}

inline void expect_same(const Answer& a, const Answer& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.text, b.text);
  EXPECT_NEAR(a.probability_yes, b.probability_yes, 1e-4);
  EXPECT_EQ(a.prompt_tokens, b.prompt_tokens);
  EXPECT_EQ(a.finish, b.finish);
}

inline const std::vector<Question>& rules() {
  static const std::vector<Question> all{question("Is there a person in the room?"),
                                         question("Is there a car? Explain."),
                                         question("How many people are there?", 12)};
  return all;
}

}  // namespace vigil::stream::testing
