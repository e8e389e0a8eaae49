#include "actors/stream/window_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/patches.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(WindowFit, TellsOnceWhatALongWindowNeeds) {
  const auto gate = camera();  // 4 s at 2 frames a second: 4 patches
  const std::int64_t needed = ScriptedLanguage().pages_of(4, gate->rules);
  ScriptedLanguage language(needed - 1);
  const auto question = language.questions.compile(
      {.text = gate->rules[0].prompt, .max_tokens = 1, .sampling = {}, .on_text = {}});
  WindowFit fit(language.desk, 2);
  const WatchPtr watched_gate = watch("gate");
  const std::string told =
      "a window of 4s needs " + std::to_string(8 * needed) + " tokens of KV cache, there is room for " +
      std::to_string(8 * (needed - 1)) +
      ": windows of full length will not be answered; raise engine.kv_tokens, or shorten the window";
  EXPECT_EQ(fit.check(*visual_patch(watched_gate, 0), watched_gate, {question}), told);
  EXPECT_EQ(fit.check(*visual_patch(watched_gate, 1), watched_gate, {question}), std::nullopt) << "told once";
  EXPECT_EQ(fit.check(*visual_patch(watch("yard"), 0), watch("yard"), {question}), told) << "each camera";
  fit.forget("gate");
  EXPECT_EQ(fit.check(*visual_patch(watched_gate, 0), watched_gate, {question}), told);

  ScriptedLanguage larger(needed);
  WindowFit enough(larger.desk, 2);
  EXPECT_EQ(enough.check(*visual_patch(watched_gate, 0), watched_gate, {question}), "");
  EXPECT_EQ(enough.check(*visual_patch(watched_gate, 1), watched_gate, {question}), std::nullopt);
}

// Whatever its length, a window is no larger than its budget, or than one patch.
TEST(WindowFit, AWindowThatABudgetShortensFits) {
  auto settings = camera();
  settings->stream.window.length = 400s;
  const WatchPtr longer = watched(*settings, 2);
  ScriptedLanguage language(ScriptedLanguage().pages_of(16, {}));
  language.desk.open("gate", stream::make_refresh("all"));
  for (const auto& [budget, width, fits] :
       {std::tuple(0, 1, false), std::tuple(16, 1, true), std::tuple(24, 1, false), std::tuple(8, 16, true),
        std::tuple(8, 24, false)}) {
    language.desk.set_budget("gate", static_cast<std::uint64_t>(budget));
    const auto said = WindowFit(language.desk, 2).check(*visual_patch(longer, 0, 1, 1, width), longer, {});
    EXPECT_EQ(said == "", fits) << budget << ' ' << width;
  }
}

TEST(WindowFit, LooksAgainWhenTheSettingsOrThePictureAreOthers) {
  ScriptedLanguage language(8);
  WindowFit fit(language.desk, 2);
  EXPECT_EQ(fit.check(*visual_patch(watch(), 0), watch(), {}), "");
  auto settings = camera();
  settings->stream.window.length = 400s;
  const WatchPtr longer = watched(*settings, 2);
  EXPECT_THAT(fit.check(*visual_patch(longer, 1), longer, {}), Optional(HasSubstr("a window of 400s needs")));
  const auto wider = visual_patch(longer, 2, 1, 1, 2);
  EXPECT_NE(fit.check(*wider, longer, {}), std::nullopt);
  EXPECT_EQ(fit.check(*wider, longer, {}), std::nullopt);
}

}  // namespace
}  // namespace vigil::actors
