// Windows that are computed whole beside what pruning leaves.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/stream/window_desk.h"
#include "tests/actors/patches.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A window of 4 s ends every 2 s. What is likely of one is a hundredth of its last patch's value.
struct AuditTest : ::testing::Test {
  AuditTest() { desk.grant(1000); }

  static WatchPtr gate_of(config::PruningSettings pruning, std::uint64_t version = 1) {
    auto settings = camera("gate", config::Pace::realtime);
    settings->stream.pruning = pruning;
    return watched(*settings, version);
  }
  /// A patch of a second, of which the model sees this value; of an audited window, and then that one.
  WindowDesk::Taken patch(float pruned, std::optional<double> audit = {}, std::optional<float> whole = {}) {
    auto visual = visual_patch(gate, second_, pruned);
    visual->audit = audit;
    if (whole) visual->whole = visual_patch(gate, second_, *whole)->tokens;
    ++second_;
    return desk.push(*visual);
  }
  void run() {
    while (desk.due()) desk.work({clock.now()});
    take();
    // What an audit closed is told at last.
    take();
  }
  void take() {
    WindowDesk::News more = desk.take_news();
    for (auto& each : more.answered) answered.push_back(each.window);
    for (auto& each : more.failures) failures.push_back(each.reason);
    for (auto& each : more.audited) audited.push_back(each);
    remarks.insert(remarks.end(), more.remarks.begin(), more.remarks.end());
    audits += more.audits;
    given_up += more.audits_given_up;
    for (const auto& [camera, steps] : more.less) less = steps;
    overtaken += more.overtaken;
  }
  /// A window of 4 s, audited.
  void window(float pruned, float whole) {
    const double ends = second_ + 4;
    for (int i = 0; i < 4; ++i) patch(pruned, ends, whole);
    run();
  }
  bool is_empty() const { return language.book.free_pages() == language.book.pages(); }

  ManualClock clock;
  ScriptedLanguage language;
  WindowDesk desk{language.desk, language.questions, {}};
  WatchPtr gate = gate_of({.policy = config::Pruning::scene, .refresh = config::Refresh::all});
  double second_ = 0;
  std::vector<WindowAnswersPtr> answered;
  std::vector<std::string> failures;
  std::vector<WindowDesk::News::Audited> audited;
  std::vector<WindowDesk::News::Remark> remarks;
  std::size_t audits = 0, given_up = 0, overtaken = 0;
  std::optional<int> less;
};

TEST_F(AuditTest, BothAnswersAreComparedAndTheCamerasOwnAloneAreTold) {
  desk.join(gate);
  window(30, 70);
  ASSERT_EQ(audits, 1U);
  ASSERT_EQ(audited.size(), 1U);
  EXPECT_EQ(audited[0].camera, "gate");
  EXPECT_EQ(audited[0].rule, "person");
  EXPECT_FALSE(audited[0].agrees) << "0.3 does not count and 0.7 does";
  EXPECT_NEAR(audited[0].difference, 0.4, 1e-5);
  ASSERT_EQ(answered.size(), 1U) << "the window that ends at 4 overtook the one that ends at 2";
  for (const auto& window : answered) EXPECT_NEAR(window->answers[0].probability_yes, 0.3, 1e-5);
  EXPECT_NEAR(language.desk.usage(), 0, 1e-9) << "but for what is computed ahead";
  EXPECT_FALSE(language.desk.is_open("gate#audit"));
  window(60, 70);
  ASSERT_EQ(audited.size(), 2U);
  EXPECT_TRUE(audited[1].agrees) << "both count";
  EXPECT_EQ(given_up, 0U);
  EXPECT_THAT(failures, IsEmpty());
}

TEST_F(AuditTest, OfThePatchesTheCameraMarkedTheWindowsOwnAreAsked) {
  desk.join(gate);
  for (int i = 0; i < 3; ++i) patch(30);
  const double ends = 8;
  patch(30, ends, 99);  // it begins before the window
  for (int i = 0; i < 4; ++i) patch(30, ends, 70);
  run();
  ASSERT_EQ(audited.size(), 1U);
  EXPECT_NEAR(audited[0].difference, 0.4, 1e-5);
}

TEST_F(AuditTest, WithoutAllOfItsWholePatchesNothingIsCompared) {
  desk.join(gate);
  patch(30, 4, 70);
  patch(30, 4);  // the tower had no time
  patch(30, 4, 70);
  patch(30, 4, 70);
  run();
  EXPECT_EQ(given_up, 1U);
  EXPECT_FALSE(language.desk.is_open("gate#audit"));
  // The first one never came.
  second_ = 4;
  patch(30);
  for (int i = 0; i < 3; ++i) patch(30, 8, 70);
  run();
  EXPECT_EQ(given_up, 2U);
  EXPECT_THAT(audited, IsEmpty());
  EXPECT_EQ(answered.size(), 2U) << "its own windows are as ever";
  EXPECT_NEAR(language.desk.usage(), 0, 1e-9) << "but for what is computed ahead";
}

TEST_F(AuditTest, ItComesAfterAllOtherWork) {
  desk.join(gate);
  const WatchPtr live = watched(*camera("live", config::Pace::realtime));
  desk.join(live);
  for (int i = 0; i < 4; ++i) patch(30, 4, 70);
  for (int i = 0; i < 4; ++i) desk.push(*visual_patch(live, i, 20));
  std::vector<std::string> order;
  while (desk.due()) {
    desk.work({clock.now()});
    WindowDesk::News news = desk.take_news();
    for (const auto& each : news.answered) order.push_back(each.window->watch->name);
    for (const auto& each : news.audited) order.push_back("audit of " + each.camera);
  }
  ASSERT_FALSE(order.empty());
  EXPECT_EQ(order.back(), "audit of gate");
}

TEST_F(AuditTest, WhereThereIsNoRoomItIsGivenUp) {
  ScriptedLanguage small(ScriptedLanguage().pages_of(4, gate->rules) + 1);
  WindowDesk tight{small.desk, small.questions, {}};
  tight.grant(1000);
  gate = gate_of({.policy = config::Pruning::scene, .refresh = config::Refresh::none});
  tight.join(gate);
  std::size_t over = 0;
  for (int i = 0; i < 8; ++i) {
    auto visual = visual_patch(gate, i, 30);
    if (i >= 4) {
      visual->audit = 8;
      visual->whole = visual_patch(gate, i, 70)->tokens;
    }
    tight.push(*visual);
    while (tight.due()) tight.work({clock.now()});
    over += tight.take_news().audits_given_up;
  }
  EXPECT_EQ(over, 1U);
  EXPECT_EQ(tight.unanswered(), 0U);
}

TEST_F(AuditTest, WhatIsNotAnsweredInAWindowsTimeIsGivenUp) {
  desk.grant(0);
  WindowDesk held{language.desk, language.questions, {}};  // which nobody grants anything
  held.join(gate);
  std::size_t over = 0;
  for (int i = 0; i < 12; ++i) {
    auto visual = visual_patch(gate, i, 30);
    if (i < 4) {
      visual->audit = 4;
      visual->whole = visual_patch(gate, i, 70)->tokens;
    }
    held.push(*visual);
    over += held.take_news().audits_given_up;
    EXPECT_EQ(language.desk.is_open("gate#audit"), over == 0) << i;
  }
  EXPECT_EQ(over, 1U);
}

TEST_F(AuditTest, ACameraThatEndsTakesItsAuditAlong) {
  desk.join(gate);
  patch(30, 4, 70);
  patch(30, 4, 70);
  desk.end("gate");
  run();
  EXPECT_FALSE(language.desk.is_open("gate#audit"));
  EXPECT_EQ(given_up, 1U);
  EXPECT_TRUE(is_empty());
  desk.join(gate);
  second_ = 0;
  window(30, 70);
  EXPECT_EQ(audits, 1U) << "and may begin again";
}

TEST_F(AuditTest, ACameraWhoseAnswersDifferTooOftenPrunesLessAndSaysSo) {
  gate = gate_of({.policy = config::Pruning::scene, .refresh = config::Refresh::none});
  desk.join(gate);
  for (int i = 0; i < 2; ++i) window(30, 70);
  EXPECT_THAT(remarks, IsEmpty());
  window(30, 70);
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_EQ(remarks[0].line,
            "audits: answers differ too often from those of a whole computation: pruned by {policy: none, "
            "refresh: none} from now on, not by {policy: scene, refresh: none}");
  EXPECT_TRUE(remarks[0].is_warning);
  EXPECT_EQ(less, 1);
  EXPECT_EQ(patch(30).advice.less, 1) << "the camera hears of it with every patch";
  second_ = 14;
  for (int i = 0; i < 3; ++i) window(30, 70);
  EXPECT_EQ(less, 2);
  EXPECT_THAT(remarks.back().line, HasSubstr("{policy: none, refresh: all} from now on"));
  for (int i = 0; i < 60; ++i) window(70, 70);
  EXPECT_EQ(less, 0) << "and back, when all agree";
  EXPECT_FALSE(remarks.back().is_warning);
  EXPECT_THAT(remarks.back().line, HasSubstr("agree with those of a whole computation again"));
}

// The first patch of the next window closes it, and is marked for it.
TEST_F(AuditTest, AWindowThatALaterPatchClosesIsComparedToo) {
  desk.join(gate);
  for (const double seconds : {0.0, 0.7, 1.7, 2.7, 3.8}) {
    second_ = seconds;
    patch(30, 4, 70);
  }
  run();
  EXPECT_EQ(audits, 1U);
  EXPECT_EQ(given_up, 0U);
}

// Of patches of 2 s every second window's end is passed over.
TEST_F(AuditTest, WhereAWindowEndsLaterThanItsCameraThoughtThatOneIsCompared) {
  desk.join(gate);
  const auto wide = [&](double seconds, std::optional<double> audit) {
    auto visual = visual_patch(gate, seconds, 30, 3);
    visual->audit = audit;
    if (audit) visual->whole = visual_patch(gate, seconds, 70, 3)->tokens;
    desk.push(*visual);
  };
  wide(0, 4.0);
  wide(3, 4.0);
  run();
  EXPECT_EQ(audits, 1U) << "the one that ends at 6";
  EXPECT_EQ(given_up, 0U);
}

TEST_F(AuditTest, ManyRulesThatDifferAtOnceAreOneStep) {
  auto settings = camera("gate", config::Pace::realtime);
  settings->stream.pruning = {.policy = config::Pruning::scene, .refresh = config::Refresh::none};
  for (const char* name : {"b", "c", "d", "e", "f", "g"}) {
    settings->rules.push_back(settings->rules.front());
    settings->rules.back().name = name;
  }
  gate = watched(*settings);
  desk.join(gate);
  window(30, 70);
  EXPECT_EQ(audited.size(), 7U);
  EXPECT_EQ(less, 1);
}

TEST_F(AuditTest, OtherSettingsBeginAnew) {
  desk.join(gate);
  for (int i = 0; i < 3; ++i) window(30, 70);
  EXPECT_EQ(less, 1);
  gate = gate_of({.policy = config::Pruning::changes, .refresh = config::Refresh::all}, 2);
  desk.know(gate);
  EXPECT_EQ(patch(30).advice.less, 0);
  take();
  EXPECT_EQ(less, 0) << "and whoever was told of a step hears so";
  second_ = 14;
  for (int i = 0; i < 3; ++i) window(30, 70);
  EXPECT_EQ(less, 1);
  desk.join(gate);
  take();
  EXPECT_EQ(less, 0) << "a stream that begins, too";
}

}  // namespace
}  // namespace vigil::actors
