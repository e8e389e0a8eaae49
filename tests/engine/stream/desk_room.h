// A desk over a simulated device, and what tests of it do with it.
#pragma once

#include <chrono>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/stream/stream_desk.h"
#include "tests/engine/demo_model.h"
#include "tests/engine/stream/simulated_passes.h"

namespace vigil::stream::testing {

using base::Clock;

/// Computes every second patch anew, each time.
class EverySecond final : public RefreshPolicy {
 public:
  bool keeps_keys() const override { return true; }
  void choose(std::span<const KeptPatch> kept, std::vector<kv::TokenRange>& to) const override {
    std::int64_t at = 0;
    for (const KeptPatch& patch : kept) {
      if (patch.number % 2 == 1) to.push_back({at, patch.tokens});
      at += patch.tokens;
    }
  }
};

/// A desk over a simulated device, of a byte a token, with a clock that the test sets.
struct Room {
  std::shared_ptr<const model::ModelFolder> folder;
  model::PromptBuilder prompts = folder->prompts();
  kv::Book book;
  SimulatedPasses passes{*folder, book};
  QuestionCompiler questions{*folder, prompts};
  StreamDesk desk;
  Clock::TimePoint now{};
  /// All that was told.
  DeskNews news;

  explicit Room(std::int64_t pages = 64, PassLimits limits = {}, int page_tokens = 8,
                std::shared_ptr<const model::ModelFolder> of = demo_model(),
                std::int64_t memory_bytes = StreamDesk::Options().memory_bytes)
      : folder(std::move(of)),
        book(pages, page_tokens),
        desk(*folder, prompts, book, passes,
             {.limits = limits,
              .epoch = 7,
              .page_bytes = page_tokens,
              .memory = {},
              .memory_bytes = memory_bytes}) {}

  CompiledQuestionPtr question(const std::string& text = "Is there a car?", int max_tokens = 6) {
    return questions.compile({.text = text, .max_tokens = max_tokens, .sampling = {}, .on_text = {}});
  }
  std::vector<std::int32_t> expected(const std::string& camera, const PatchRange& range,
                                     const CompiledQuestionPtr& question) {
    std::vector<model::VisualTokensPtr> patches;
    for (std::int64_t i = range.first; i < range.last; ++i) patches.push_back(kept.at({camera, i}));
    return expected_tokens(*folder, prompts, patches, *question);
  }
  std::map<std::pair<std::string, std::int64_t>, model::VisualTokensPtr> kept;

  std::int64_t append(const std::string& camera, float seed, int height = 1, int width = 2) {
    return append(camera, patch_of(seed, height, width));
  }
  std::int64_t append(const std::string& camera, const model::VisualTokensPtr& patch) {
    const std::int64_t number = desk.append(camera, patch);
    kept[{camera, number}] = patch;
    return number;
  }
  /// A question whose answer about this window is at least so long.
  CompiledQuestionPtr lasting(const std::string& camera, const PatchRange& range, std::size_t tokens = 4) {
    for (int i = 0;; ++i) {
      const auto asked = question("Describe it at length, please: " + std::to_string(100 + i), 24);
      if (expected(camera, range, asked).size() >= tokens) return asked;
    }
  }
  void open(const std::string& camera, int patches = 0, std::string_view policy = "all") {
    desk.open(camera, make_refresh(policy));
    for (int i = 0; i < patches; ++i) append(camera, static_cast<float>(i));
  }
  WindowId ask(const std::string& camera, PatchRange range, std::vector<CompiledQuestionPtr> questions_asked,
               int due = 0, bool overtakes = false) {
    Asking asking;
    asking.overtakes = overtakes;
    asking.patches = range;
    for (auto& each : questions_asked) asking.questions.push_back({std::move(each), {}});
    asking.due = now + std::chrono::seconds(due);
    asking.keep = std::chrono::seconds(60);
    return desk.ask(camera, std::move(asking));
  }
  void take_news() {
    DeskNews more = desk.take_news();
    const auto add = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
    };
    add(news.answered, more.answered);
    add(news.failed, more.failed);
    add(news.overtaken, more.overtaken);
    add(news.told, more.told);
    add(news.forgotten, more.forgotten);
    add(news.shortened, more.shortened);
    if (more.pressed) news.pressed = more.pressed;
  }
  /// Works until there is nothing to do.
  void run() {
    for (int i = 0; desk.due(); ++i) {
      ASSERT_LT(i, 10'000) << "works for ever";
      desk.work({now});
    }
    desk.expire(now);
    take_news();
  }
  /// Whether all pages are free.
  bool is_empty() const { return book.free_pages() == book.pages(); }
  const DeskNews::Answered* answered(const WindowId& id) const {
    for (const auto& each : news.answered)
      if (each.window == id) return &each;
    return nullptr;
  }
  const DeskNews::Told* told(const WindowId& id, std::size_t question) const {
    for (const auto& each : news.told)
      if (each.window == id && each.question == question) return &each;
    return nullptr;
  }
};

inline std::string reason_of(const std::exception_ptr& failure) {
  if (!failure) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace vigil::stream::testing
