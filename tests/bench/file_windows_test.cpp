#include "bench/file_windows.h"

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "tests/actors/fakes.h"
#include "tests/actors/scripted_language.h"

namespace vigil::bench {
namespace {

using actors::testing::camera;
using actors::testing::Event;
using actors::testing::FakeEncoder;
using actors::testing::FakeSources;
using actors::testing::ManualClock;
using actors::testing::ScriptedLanguage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct FileWindowsTest : ::testing::Test {
  FileWindows windows(const config::CameraSettings& settings) {
    return FileWindows({.encoder = encoder,
                        .desk = language.desk,
                        .questions = language.questions,
                        .open = sources.factory(),
                        .shape = {},
                        .clock = clock},
                       settings);
  }
  static std::vector<FileWindow> all(FileWindows& of) {
    std::vector<FileWindow> result;
    while (auto window = of.next()) result.push_back(std::move(*window));
    return result;
  }
  static std::string reason(FileWindows& of) {
    try {
      all(of);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  }

  ManualClock clock;
  FakeEncoder encoder;
  ScriptedLanguage language;
  FakeSources sources;
};

// Values say how likely "Yes" is, in hundredths; the last token of a window counts.
TEST_F(FileWindowsTest, AnswersEveryRuleOfEveryWindowInOrder) {
  sources.add("/clips/gate.mp4",
              actors::testing::frames({10, 10, 20, 20, 30, 30, 40, 40, 50, 50, 60, 60, 70}));
  auto settings = camera();
  settings->rules.push_back(settings->rules[0]);
  settings->rules[1].name = "explained";
  settings->rules[1].prompt = "What happens?";
  settings->rules[1].explain = true;
  settings->stream.pruning.refresh = config::Refresh::none;
  settings->stream.loop = true;
  FileWindows asked = windows(*settings);
  const std::vector<FileWindow> seen = all(asked);
  std::vector<double> ends;
  std::vector<int> percent;
  for (const FileWindow& each : seen) {
    ends.push_back(each.window->end);
    ASSERT_EQ(each.window->answers.size(), 2U);
    percent.push_back(static_cast<int>(each.window->answers[0].probability_yes * 100 + 0.5F));
  }
  EXPECT_THAT(ends, ElementsAre(2, 4, 6, 7)) << "once, with what is left at the end";
  EXPECT_THAT(percent, ElementsAre(20, 40, 60, 70));
  EXPECT_EQ(seen[0].tokens, (stream::WindowTokens{2, 0, 0}));
  EXPECT_EQ(seen[1].tokens, (stream::WindowTokens{4, 2, 0}));
  EXPECT_EQ(seen[2].tokens, (stream::WindowTokens{4, 2, 0}));
  EXPECT_FALSE(asked.next()) << "nothing after the last";
  EXPECT_EQ(language.book.free_pages(), language.book.pages());
  const auto line = nlohmann::json::parse(to_json(seen[1]));
  EXPECT_EQ(line["end"], 4);
  EXPECT_EQ(line["tokens"],
            (nlohmann::json{{"visual", 4}, {"new", 2}, {"reused", 2}, {"refreshed", 0}, {"probed", 0}}));
  EXPECT_EQ(line["probability_yes"].size(), 2U);
  EXPECT_NEAR(line["probability_yes"]["What happens?"].get<double>(), 0.4, 1e-5);
}

TEST_F(FileWindowsTest, CountsWhatWasDamaged) {
  auto script = actors::testing::frames({10, 10, 20, 20});
  script[1].damaged = 3;
  script[3].damaged = 2;
  sources.add("/clips/gate.mp4", script);
  FileWindows asked = windows(*camera());
  EXPECT_EQ(asked.damaged_packets(), 0U);
  EXPECT_EQ(all(asked).size(), 1U);
  EXPECT_EQ(asked.damaged_packets(), 5U);
}

TEST_F(FileWindowsTest, SaysWhyThereIsNoAnswer) {
  FileWindows missing = windows(*camera());
  EXPECT_THAT(reason(missing), HasSubstr("/clips/gate.mp4: Connection refused"));
  sources.add("/clips/gate.mp4", actors::testing::frames({10, 10, 255, 255}));
  FileWindows bad = windows(*camera("second"));
  EXPECT_EQ(reason(bad), "a frame of 4 by 2 pixels");
  sources.add("/clips/gate.mp4", actors::testing::frames({10, 10, 254, 254}));
  FileWindows full = windows(*camera("third"));
  EXPECT_EQ(reason(full), "a window without room");
}

// The model itself, over a picture in which one group changes.
TEST_F(FileWindowsTest, CountsWhatIsEncodedAndWhatIsComputed) {
  engine::Engine engine = engine::make_engine(std::string(VIGIL_SOURCE_DIR) + "/models/demo");
  const auto ask = [&](config::Pruning policy, config::Refresh refresh, std::int64_t kv_budget = 0) {
    std::deque<Event> script;
    for (int i = 0; i < 16; ++i)
      script.push_back({i / 2.0, static_cast<std::uint8_t>(i < 12 ? 50 : 90), "", {56, 84}});
    sources.add("/clips/gate.mp4", script);
    auto settings = camera();
    settings->stream.pruning = {
        .policy = policy, .refresh = refresh, .kv_budget = {static_cast<std::uint64_t>(kv_budget)}};
    FileWindows asked({.encoder = *engine.encoder,
                       .desk = *engine.language.desk,
                       .questions = *engine.language.questions,
                       .open = sources.factory(),
                       .shape = {},
                       .clock = clock},
                      *settings);
    return all(asked);
  };
  const auto whole = ask(config::Pruning::none, config::Refresh::all);
  const auto pruned = ask(config::Pruning::reference, config::Refresh::all);
  const auto reused = ask(config::Pruning::none, config::Refresh::none);
  const auto oldest = ask(config::Pruning::none, config::Refresh::first_k);
  const auto looked_at = ask(config::Pruning::none, config::Refresh::topk);
  ASSERT_EQ(whole.size(), 4U);
  ASSERT_EQ(pruned.size(), 4U);
  std::int64_t encoded = 0;
  double flops_whole = 0, flops_pruned = 0, flops_reused = 0, flops_oldest = 0, flops_looked_at = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(whole[i].tokens.visual, i == 0 ? 12 : 24);
    encoded += pruned[i].encoded;
    flops_whole += whole[i].flops;
    flops_pruned += pruned[i].flops;
    flops_reused += reused[i].flops;
    flops_oldest += oldest[i].flops;
    flops_looked_at += looked_at[i].flops;
    EXPECT_EQ(looked_at[i].tokens.refreshed, oldest[i].tokens.refreshed);
    EXPECT_EQ(looked_at[i].tokens.probed, looked_at[i].tokens.kept);
    EXPECT_EQ(oldest[i].tokens.probed, 0);
  }
  // The first patch, one in each window, and what changed at 6 s.
  EXPECT_GE(encoded, 18);
  EXPECT_LE(encoded, 30);
  EXPECT_LT(flops_pruned, 0.8 * flops_whole);
  EXPECT_LT(flops_reused, 0.9 * flops_whole);
  EXPECT_LT(flops_reused, flops_oldest);
  EXPECT_LT(flops_oldest, flops_looked_at) << "looking is work, too";
  EXPECT_LT(flops_looked_at, flops_whole);
  // A budget is in bytes of the model's keys and values: one page has room for a window, a byte less has for
  // no more than the one patch that every window shows.
  const std::int64_t page = engine.language.model->page_bytes();
  for (const auto& [bytes, tokens] :
       {std::pair(page, std::int64_t{24}), std::pair(page - 1, std::int64_t{6})})
    EXPECT_EQ(ask(config::Pruning::none, config::Refresh::all, bytes).back().tokens.visual, tokens);
}

}  // namespace
}  // namespace vigil::bench
