// What windows remember of what lies before them: from a camera's settings to the desk, and what is said of
// it.
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/stream/forgotten_memories.h"
#include "actors/stream/window_desk.h"
#include "tests/actors/patches.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct WindowMemoryTest : ::testing::Test {
  WindowMemoryTest() { desk.grant(1000); }

  static WatchPtr gate_of(base::Duration memory, std::uint64_t version,
                          const config::PruningSettings& pruning = {.policy = config::Pruning::scene,
                                                                    .refresh = config::Refresh::none}) {
    auto settings = camera("gate", config::Pace::realtime);
    settings->stream.window.memory = memory;
    settings->stream.pruning = pruning;
    return watched(*settings, version);
  }
  /// The next patch, by these settings.
  void push(const WatchPtr& gate) {
    desk.know(gate);
    EXPECT_FALSE(desk.push(*visual_patch(gate, second_++)).refused);
  }
  WindowDesk::News run() {
    while (desk.due()) desk.work({clock.now()});
    return desk.take_news();
  }
  /// What the desk was told last.
  base::Duration told() const { return language.desk.memory("gate"); }

  ManualClock clock;
  ScriptedLanguage language;
  WindowDesk desk{language.desk, language.questions, {}};
  double second_ = 0;
};

TEST_F(WindowMemoryTest, ACameraThatJoinsSaysHowMuch) {
  desk.join(gate_of(10min, 1));
  EXPECT_EQ(told(), 10min);
  desk.join(watched(*camera("yard", config::Pace::realtime)));
  EXPECT_EQ(language.desk.memory("yard"), 0s) << "nothing was said";
  EXPECT_EQ(told(), 10min) << "another camera's";
}

TEST_F(WindowMemoryTest, AChangeOfItComesWithTheFirstPatchThatIsOfIt) {
  desk.join(gate_of(0s, 1));
  push(gate_of(0s, 1));
  desk.know(gate_of(10min, 2));
  EXPECT_EQ(told(), 0s);
  push(gate_of(10min, 2));
  EXPECT_EQ(told(), 10min);
  EXPECT_EQ(language.desk.stream("gate").patches().last, 2) << "the stream goes on";
  push(gate_of(2min, 3));
  EXPECT_EQ(told(), 2min);
  push(gate_of(0s, 4));
  EXPECT_EQ(told(), 0s);
}

TEST_F(WindowMemoryTest, AnotherChangeLeavesItAsItIs) {
  desk.join(gate_of(10min, 1));
  // So that being told again would show.
  language.desk.set_memory("gate", 7min);
  config::PruningSettings pruning{.policy = config::Pruning::scene, .refresh = config::Refresh::none};
  pruning.kv_budget = {800};
  push(gate_of(10min, 2, pruning));
  pruning.kept = 0.5;
  push(gate_of(10min, 3, pruning));
  pruning.refresh = config::Refresh::topk;
  push(gate_of(10min, 4, pruning));
  EXPECT_EQ(told(), 7min);
  desk.resume(gate_of(10min, 5, pruning));
  EXPECT_EQ(told(), 7min) << "its stream goes on";
}

TEST_F(WindowMemoryTest, AStreamThatBeginsAnewIsToldAgain) {
  desk.join(gate_of(10min, 1));
  language.desk.set_memory("gate", 7min);
  desk.join(gate_of(10min, 1));
  EXPECT_EQ(told(), 10min) << "it was opened again";
  desk.end("gate");
  run();
  EXPECT_THROW(told(), std::invalid_argument) << "it has ended";
  desk.resume(gate_of(5min, 2));
  EXPECT_EQ(told(), 5min);
}

TEST_F(WindowMemoryTest, AStreamOfAnotherTimeIsToldAgain) {
  const auto owned = [](std::uint64_t fence) { return gate_of(10min, version_of(fence, 1)); };
  desk.join(owned(1));
  second_ = 600;
  push(owned(1));
  language.desk.set_memory("gate", 7min);
  second_ = 10;
  push(owned(2));
  EXPECT_EQ(language.desk.stream("gate").patches().last, 1) << "it began anew";
  EXPECT_EQ(told(), 10min);
}

// The whole computation of an audit knows the window alone.
TEST_F(WindowMemoryTest, AnAuditThatIsUnderWayWhenItBeginsOrEndsIsGivenUp) {
  for (const bool begins : {true, false}) {
    const WatchPtr before = gate_of(begins ? 0min : 10min, begins ? 1 : 3);
    const WatchPtr after = gate_of(begins ? 10min : 0min, begins ? 2 : 4);
    second_ = 0;
    desk.join(before);
    run();
    const auto audited = [&](const WatchPtr& gate) {
      auto patch = visual_patch(gate, second_, 30);
      patch->audit = 4;
      patch->whole = visual_patch(gate, second_++, 70)->tokens;
      desk.push(*patch);
    };
    for (int i = 0; i < 4; ++i) audited(before);
    EXPECT_TRUE(language.desk.is_open("gate#audit")) << "both are asked";
    push(after);
    EXPECT_FALSE(language.desk.is_open("gate#audit"));
    const WindowDesk::News news = run();
    EXPECT_EQ(news.audits_given_up, 1U);
    EXPECT_THAT(news.audited, IsEmpty());
  }
}

TEST_F(WindowMemoryTest, WhatAuditsSaidBeforeHoldsNoMoreWhenItBegins) {
  const WatchPtr before = gate_of(0s, 1);
  desk.join(before);
  std::map<std::string, int> less;
  const auto hear = [&] {
    for (const auto& [camera, steps] : run().less) less[camera] = steps;
  };
  // Each window is answered otherwise by the whole computation, until it reuses nothing.
  for (int window = 0; window < 40 && less["gate"] < 2; ++window) {
    const double ends = second_ + 4;
    for (int i = 0; i < 4; ++i) {
      auto patch = visual_patch(before, second_, 30);
      patch->audit = ends;
      patch->whole = visual_patch(before, second_++, 70)->tokens;
      desk.push(*patch);
    }
    hear();
    hear();
  }
  ASSERT_EQ(less["gate"], 2);
  push(gate_of(10min, 2));
  hear();
  EXPECT_EQ(less["gate"], 0) << "no audit would ever take the steps back, and keys have to be kept";
  EXPECT_EQ(told(), 10min);
}

/// Counts patches, of a byte each.
class CountedPast final : public run::SequencePast {
 public:
  explicit CountedPast(const past::PastOptions& options)
      : of_block_(options.block_patches), room_(options.host_bytes) {}
  void append(std::span<const std::int32_t>, std::span<const std::int32_t>) override {
    if (blocks_.empty() || blocks_.back() == of_block_) blocks_.push_back(0);
    ++blocks_.back();
  }
  void lay() override {
    while (tokens() > room_) forget_block();
  }
  void forget_block() override { blocks_.erase(blocks_.begin()); }
  void resize(std::int64_t host_bytes) override {
    room_ = host_bytes;
    lay();
  }
  std::int64_t tokens() const override {
    return std::accumulate(blocks_.begin(), blocks_.end(), std::int64_t{0});
  }
  std::vector<int> patches() const override { return blocks_; }
  std::int64_t host_bytes() const override { return tokens(); }
  std::int64_t device_bytes() const override { return 0; }

 private:
  int of_block_;
  std::int64_t room_;
  std::vector<int> blocks_;
};

TEST(ShortMemories, AreWarnedOfOnceByTheCamera) {
  ScriptedLanguage language(1000, {}, 40);
  language.passes.past = [](const past::PastOptions& options) {
    return std::make_unique<CountedPast>(options);
  };
  ManualClock clock;
  WindowDesk desk(language.desk, language.questions, {});
  desk.grant(1000);
  std::vector<std::string> warned;
  std::map<std::string, double> second;
  const auto watch = [&](const std::string& name) {
    auto settings = camera(name, config::Pace::realtime);
    settings->stream.window.memory = 10min;
    settings->stream.pruning = {.policy = config::Pruning::scene, .refresh = config::Refresh::none};
    return watched(*settings);
  };
  const auto push = [&](const WatchPtr& gate, int patches) {
    for (int i = 0; i < patches; ++i) {
      EXPECT_FALSE(desk.push(*visual_patch(gate, second[gate->name]++)).refused);
      while (language.desk.due()) language.desk.work({clock.now()});
      for (const auto& remark : desk.take_news().remarks)
        if (remark.is_warning) warned.push_back(remark.watch->name + ": " + remark.line);
    }
  };
  const WatchPtr gate = watch("gate"), yard = watch("yard");
  desk.join(gate);
  push(gate, 40);
  EXPECT_THAT(warned, IsEmpty());
  push(gate, 60);
  EXPECT_EQ(language.desk.window_memory().room, 40);
  ASSERT_THAT(warned, SizeIs(1));
  EXPECT_THAT(warned[0],
              AllOf(HasSubstr("gate: its windows remember 3"),
                    HasSubstr("s instead of 10m: of this machine's memory it may take 40B, and ")));
  desk.join(yard);
  push(yard, 60);
  ASSERT_THAT(warned, SizeIs(2));
  EXPECT_THAT(warned[1], HasSubstr("yard: its windows remember 1"));
  EXPECT_EQ(language.desk.window_memory().room, 40);
  EXPECT_LE(language.desk.window_memory().host_bytes, 40);
}

TEST(ForgottenMemories, AreToldOnceAMinuteOfEachCamera) {
  ForgottenMemories forgotten;
  ManualClock clock;
  const auto hear = [&](const std::string& camera, const std::string& reason = "no room for 9 bytes") {
    return forgotten.hear(camera, reason, clock.now()).value_or("");
  };
  const std::string line = "what its windows remembered is gone, and is gathered anew: no room for 9 bytes";
  EXPECT_EQ(hear("gate"), line);
  EXPECT_EQ(hear("gate"), "");
  EXPECT_EQ(hear("yard"), line) << "another camera";
  clock.advance(59s);
  EXPECT_EQ(hear("gate", "another reason"), "");
  clock.advance(1s);
  EXPECT_EQ(hear("gate"), line + " (and 2 times since this was last said)");
  EXPECT_EQ(hear("gate"), "");
  clock.advance(60s);
  EXPECT_EQ(hear("gate"), line + " (and 1 time since this was last said)");
  clock.advance(60s);
  EXPECT_EQ(hear("gate"), line);
}

TEST(ForgottenMemories, OnesThatAreShorterAreToldWithWhatTheyHave) {
  ForgottenMemories forgotten;
  ManualClock clock;
  const auto hear = [&](const std::string& camera, std::int64_t room) {
    return forgotten.shortened({camera, 83'900ms, 10min, room, std::int64_t{3} << 30}, clock.now())
        .value_or("");
  };
  const std::string before = "its windows remember 83s instead of 10m: of this machine's memory it may take ";
  const std::string after =
      ", and 3GiB if nothing were pruned; raise engine.window_memory, or shorten window.memory";
  EXPECT_EQ(hear("gate", (std::int64_t{90} << 20) + 77), before + "90MiB" + after);
  EXPECT_EQ(hear("gate", 5000), "");
  EXPECT_THAT(forgotten.shortened({"mill", 999ms, 10min, 1, 7}, clock.now()).value_or(""),
              HasSubstr("its windows remember less than 1s instead of 10m: "));
  EXPECT_EQ(hear("yard", 5001), before + "5001B" + after) << "another camera";
  EXPECT_TRUE(forgotten.hear("gate", "full", clock.now())) << "that is another thing";
  clock.advance(60s);
  EXPECT_EQ(hear("gate", 0), before + "0B" + after + " (and 1 time since this was last said)");
  forgotten.forget("gate");
  EXPECT_EQ(hear("gate", 0), before + "0B" + after);
}

TEST(ForgottenMemories, ACameraThatEndedStartsFromNothing) {
  ForgottenMemories forgotten;
  ManualClock clock;
  EXPECT_TRUE(forgotten.hear("gate", "full", clock.now()));
  EXPECT_FALSE(forgotten.hear("gate", "full", clock.now()));
  forgotten.forget("gate");
  forgotten.forget("nobody");
  EXPECT_EQ(forgotten.hear("gate", "full", clock.now()),
            "what its windows remembered is gone, and is gathered anew: full");
}

}  // namespace
}  // namespace vigil::actors
