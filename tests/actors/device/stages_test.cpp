// A vision tower and a language model on two devices, joined by their visual tokens: they answer as one does.
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/device/executor_actor.h"
#include "tests/actors/patches.h"
#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Everything that comes out of executors, in order, as text.
struct Told {
  std::vector<std::string> answers, acks;
  std::map<std::string, std::uint32_t> granted;
  std::vector<std::string> ended;
};

std::string text_of(const WindowAnswers& window) {
  std::ostringstream text;
  text << window.watch->name << " v" << window.watch->version << " [" << window.start << ", " << window.end
       << ") " << window.frames << " frames, seen " << window.captured.wall.time_since_epoch().count() << ':';
  for (const stream::Answer& answer : window.answers) text << ' ' << answer.probability_yes;
  return text.str();
}

std::string text_of(const PatchAck& ack) {
  std::ostringstream text;
  text << ack.camera << '/' << ack.generation << '/' << ack.sequence << ' ' << static_cast<int>(ack.outcome)
       << ' ' << ack.reason << ' ' << ack.advice.share << ' ' << ack.advice.less << ' '
       << ack.advice.is_behind;
  return text.str();
}

/// Executors, and whom they tell.
class Stages {
 public:
  Stages() {
    answers_ = system_.spawn([this](alerts_actor::pointer self) -> alerts_actor::behavior_type {
      return {
          [this, self](join_atom) {
            streams_.push_back(caf::actor_cast<stream_actor>(self->current_sender()));
            self->send(streams_.back(), grant_atom_v, windows_);
          },
          [this](const WindowAnswersPtr& window) {
            told_.answers.push_back(text_of(*window));
            last_ = window;
          },
          [this](const Explanation& text) { explained_.push_back(text); },
          [](const EvidenceReport&) {},
          [](const WatchPtr&) {},
          [](forget_atom, const std::string&) {},
          [](const StatusChange&) {},
          [](const SeriesBooksPtr&) {},
          [](removed_atom, const std::string&) {},
          [](lost_atom, const std::string&, std::uint64_t) {},
          [](force_atom) {},
          [this](end_atom, const std::string& camera) { told_.ended.push_back(camera); },
          [](work_atom) {},
          [](tick_atom) {},
          [](stop_atom) {},
      };
    });
  }

  ~Stages() {
    for (const executor_actor& each : all_) caf::anon_send(each, stop_atom_v);
    settle();
  }

  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }
  void settle() {
    while (scheduler().try_run_once()) {
    }
    hear();
  }
  void pass(base::Duration span) {
    clock_.advance(span);
    scheduler().advance_time(span);
    settle();
  }

  executor_actor start(const EngineParts& engine, const tokens_actor& elsewhere = {}) {
    all_.push_back(system_.spawn(executor,
                                 ExecutorDeps{.engine = engine,
                                              .clock = clock_,
                                              .metrics = metrics_,
                                              .board = board_,
                                              .logger = logger_,
                                              .elsewhere = elsewhere},
                                 answers_actor(answers_), target_actor(), tower_actor()));
    settle();
    return all_.back();
  }
  executor_actor one() { return start(parts(encoder_, language_)); }
  EngineParts tower() {
    EngineParts half = parts(encoder_, language_);
    half.desk = nullptr;
    half.questions = nullptr;
    return half;
  }
  EngineParts language() {
    EngineParts half = parts(encoder_, language_);
    half.encoder = nullptr;
    return half;
  }
  /// Returns the one that takes patches.
  executor_actor two() {
    stream_ = start(language());
    return start(tower(), tokens_actor(stream_));
  }

  void join(const executor_actor& to, const WatchPtr& watch, std::uint32_t generation = 0) {
    self_->send(to, join_atom_v, watch, generation);
    settle();
  }
  FramePatchPtr patch(const WatchPtr& watch, int second, int value, std::uint32_t generation = 0) {
    auto made = frame_patch(watch, second, static_cast<std::uint8_t>(value), generation);
    made->sequence = static_cast<std::uint64_t>(second);
    made->captured = {clock_.now(), clock_.wall()};
    return made;
  }
  void show(const executor_actor& to, const WatchPtr& watch, int second, int value,
            std::uint32_t generation = 0) {
    self_->send(to, patch(watch, second, value, generation));
    settle();
  }

  /// What came for the router.
  void hear() {
    while (self_->has_next_message())
      self_->receive(
          [&](grant_atom, const std::string& camera, std::uint32_t more) { told_.granted[camera] += more; },
          [&](const PatchAck& ack) { told_.acks.push_back(text_of(ack)); });
  }

  ManualClock clock_;
  FakeEncoder encoder_;
  ScriptedLanguage language_;
  Metrics metrics_;
  StatusBoard board_{clock_};
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  TestConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  alerts_actor answers_;
  std::uint32_t windows_ = 1000;
  std::vector<stream_actor> streams_;
  std::vector<executor_actor> all_;
  executor_actor stream_;
  Told told_;
  WindowAnswersPtr last_;
  std::vector<Explanation> explained_;
};

class StagesTest : public ::testing::Test, public Stages {};

/// What one executor does, two do that are joined: each test runs both.
class AsOne : public Stages {
 public:
  explicit AsOne(bool apart) : apart_(apart) {}
  executor_actor both() { return apart_ ? two() : one(); }

  /// Three cameras: one that loses nothing, one that is live, one whose rules change; they end, and one comes
  /// back.
  const Told& day() {
    const executor_actor to = both();
    auto file = camera("file");
    file->rules[0].explain = true;
    auto live = camera("live", config::Pace::realtime);
    auto other = camera("other", config::Pace::realtime);
    const WatchPtr a = watched(*file), b = watched(*live), before = watched(*other, 1);
    other->rules.push_back(other->rules[0]);
    other->rules[1].name = "car";
    const WatchPtr after = watched(*other, 2);
    for (const WatchPtr& each : {a, b, before}) join(to, each);
    for (int second = 0; second < 20; ++second) {
      show(to, a, second, (second * 7) % 100);
      if (second != 9) show(to, b, second, (second * 13) % 100);
      if (second == 11) self_->send(to, after);
      show(to, second < 11 ? before : after, second, second % 3 == 0 ? 255 : 40 + second);
      pass(1s);
    }
    // One that comes twice is late.
    show(to, b, 19, 5);
    // The live one's actor failed, and the next goes on.
    join(to, b, 1);
    show(to, b, 23, 70, 1);
    for (const char* name : {"file", "live", "other"}) self_->send(to, end_atom_v, std::string(name));
    settle();
    join(to, b, 2);
    for (int second = 30; second < 36; ++second) show(to, b, second, 66, 2);
    self_->send(to, end_atom_v, std::string("live"));
    settle();
    pass(15s);
    return told_;
  }
  /// Acknowledged as taken.
  std::ptrdiff_t taken(const std::string& camera) const {
    return std::count_if(told_.acks.begin(), told_.acks.end(), [&](const std::string& ack) {
      return ack.starts_with(camera) && ack.compare(ack.find(' '), 3, " 0 ") == 0;
    });
  }

 private:
  const bool apart_;
};

TEST(Stages, AnswerGrantAndEndAsOneDeviceDoes) {
  AsOne one(false), two(true);
  const Told& as_one = one.day();
  const Told& as_two = two.day();
  EXPECT_THAT(as_one.answers, SizeIs(::testing::Gt(20)));
  EXPECT_THAT(as_one.ended, SizeIs(4));
  EXPECT_EQ(as_one.answers, as_two.answers);
  EXPECT_EQ(as_one.acks, as_two.acks);
  EXPECT_EQ(as_one.granted, as_two.granted);
  EXPECT_EQ(as_one.ended, as_two.ended);
  EXPECT_EQ(two.language_.book.free_pages(), two.language_.book.pages());
  EXPECT_EQ(one.encoder_.forgotten, two.encoder_.forgotten);
}

TEST(Stages, HoldBackACameraThatLosesNothingAndHaveOthersOvertaken) {
  std::ptrdiff_t held = 0;
  for (const bool apart : {false, true}) {
    AsOne all(apart);
    all.windows_ = 2;
    const executor_actor to = all.both();
    const WatchPtr file = watched(*camera("file")), live = watched(*camera("live", config::Pace::realtime));
    for (const WatchPtr& each : {file, live}) all.join(to, each);
    for (int second = 0; second < 30; ++second)
      for (const WatchPtr& each : {file, live}) all.show(to, each, second, 40);
    EXPECT_THAT(all.told_.answers, SizeIs(2));
    EXPECT_EQ(all.taken("live"), 30) << "the newest window is what waits";
    const std::ptrdiff_t of_file = all.taken("file");
    EXPECT_LT(of_file, 20) << "what windows and their strides hold";
    if (apart) {
      EXPECT_EQ(of_file, held);
    }
    held = of_file;
    // Whoever takes answers again has it go on.
    all.self_->send(apart ? all.stream_ : to, grant_atom_v, std::uint32_t{1000});
    all.settle();
    EXPECT_GT(all.taken("file"), of_file);
    EXPECT_THAT(all.told_.answers, SizeIs(::testing::Gt(4)));
  }
}

TEST_F(StagesTest, TextsAreExplainedWhereTheWindowIs) {
  const executor_actor to = two();
  auto settings = camera("gate");
  settings->rules[0].explain = true;
  settings->rules[0].max_tokens = 16;
  const WatchPtr gate = watched(*settings);
  join(to, gate);
  for (int second = 0; second < 2; ++second) show(to, gate, second, 90);
  ASSERT_NE(last_, nullptr);
  ASSERT_THAT(streams_, SizeIs(1)) << "a tower alone answers nothing";
  self_->send(streams_.front(), Explain{last_->id.value(), 0, 77});
  settle();
  EXPECT_THAT(explained_, ElementsAre(Explanation{77, "Yes, a 90.", ""}));
}

// --- What can fail between them
// ------------------------------------------------------------------------------

TEST_F(StagesTest, AStreamGoesOnWithTheTokensOfAnotherTower) {
  const executor_actor first = two();
  const WatchPtr gate = watched(*camera("gate", config::Pace::realtime));
  join(first, gate);
  for (int second = 0; second < 4; ++second) show(first, gate, second, 40);
  encoder_.on_encode = [] { throw run::DeviceLost("a memory module failed"); };
  show(first, gate, 4, 40);
  EXPECT_THAT(log_.str(), HasSubstr("executor: failed: a memory module failed"));
  encoder_.on_encode = nullptr;
  const executor_actor second_tower = start(tower(), tokens_actor(stream_));
  join(second_tower, gate, 0);
  for (int second = 5; second < 8; ++second) show(second_tower, gate, second, 60);
  ASSERT_NE(last_, nullptr);
  EXPECT_EQ(last_->end, 8);
  EXPECT_EQ(last_->frames, 6) << "with the one that is missing, and those of the first tower";
  // What is left of the first one is nobody's.
  self_->send(first, end_atom_v, std::string("gate"));
  settle();
  EXPECT_THAT(told_.ended, IsEmpty());
}

/// Somebody who takes tokens, by hand.
class TokensByHand : public StagesTest {
 protected:
  executor_actor alone() {
    taker_ = system_.spawn([this](tokens_actor::pointer self) -> tokens_actor::behavior_type {
      return {
          [this, self](tokens_atom, join_atom, const WatchPtr& watch, std::uint32_t session) {
            heard_.push_back("join " + watch->name + " v" + std::to_string(watch->version));
            sessions_.push_back(session);
            sender_ = caf::actor_cast<tokens_sender_actor>(self->current_sender());
          },
          [this](tokens_atom, const WatchPtr& watch) {
            heard_.push_back("know " + watch->name + " v" + std::to_string(watch->version));
          },
          [this](const VisualPatchPtr& patch) {
            heard_.push_back("patch " + patch->watch.camera + ' ' + std::to_string(patch->sequence));
            patches_.push_back(patch);
          },
          [this](tokens_atom, end_atom, const std::string& camera) { heard_.push_back("end " + camera); },
          [](tokens_atom, const std::string&, bool) {},
      };
    });
    return start(tower(), taker_);
  }
  template <class Message>
  void say(Message message) {
    caf::anon_send(caf::actor_cast<executor_actor>(sender_), std::move(message));
    settle();
  }

  tokens_actor taker_;
  tokens_sender_actor sender_;
  std::vector<std::string> heard_;
  std::vector<std::uint32_t> sessions_;
  std::vector<VisualPatchPtr> patches_;
  const WatchPtr gate_ = watched(*camera("gate"));
};

TEST_F(TokensByHand, NothingIsEncodedThatNobodyHasRoomForAndNothingAcknowledgedThatHasNotCome) {
  const executor_actor to = alone();
  join(to, gate_);
  for (int second = 0; second < 3; ++second) show(to, gate_, second, 40);
  EXPECT_EQ(encoder_.frames, 0U);
  say(TokensRoom{"gate", sessions_.at(0), 2});
  EXPECT_THAT(heard_, ElementsAre("join gate v1", "patch gate 0", "patch gate 1"));
  EXPECT_THAT(told_.acks, IsEmpty());
  say(TokensAck{"gate", 0, 1, TokensOutcome::taken, {.share = 0.5, .less = 1, .is_behind = true}});
  EXPECT_THAT(told_.acks, ElementsAre("gate/0/1 0  0.5 1 1"));
  say(TokensAck{"gate", 0, 1});
  say(TokensAck{"gate", 0, 7});
  say(TokensAck{"yard", 0, 0});
  EXPECT_THAT(told_.acks, SizeIs(1)) << "once, and of what was sent";
}

TEST_F(TokensByHand, WhatDoesNotComeToItsStreamIsDroppedAndCounted) {
  metrics_.camera_added(*gate_);
  const executor_actor to = alone();
  join(to, gate_);
  say(TokensRoom{"gate", sessions_.at(0), 9});
  for (int second = 0; second < 2; ++second) show(to, gate_, second, 40);
  say(TokensAck{"gate", 0, 0, TokensOutcome::lost});
  say(TokensAck{"gate", 0, 1, TokensOutcome::late});
  EXPECT_THAT(told_.acks, ElementsAre("gate/0/0 1 stream_lost 1 0 0", "gate/0/1 1 late 1 0 0"));
  EXPECT_THAT(metrics_.text(), HasSubstr("reason=\"stream_lost\""));
}

TEST_F(TokensByHand, RoomOfASessionBeforeIsNobodys) {
  const executor_actor to = alone();
  join(to, gate_);
  self_->send(to, end_atom_v, std::string("gate"));
  settle();
  join(to, gate_);
  ASSERT_THAT(sessions_, SizeIs(2));
  EXPECT_NE(sessions_[0], sessions_[1]);
  show(to, gate_, 5, 40);
  say(TokensRoom{"gate", sessions_[0], 9});
  EXPECT_THAT(patches_, IsEmpty());
  say(TokensRoom{"gate", sessions_[1], 9});
  EXPECT_THAT(heard_, ElementsAre("join gate v1", "end gate", "join gate v1", "patch gate 5"));
}

TEST_F(TokensByHand, AnEndComesBehindAllThatWasSent) {
  const executor_actor to = alone();
  join(to, gate_);
  for (int second = 0; second < 3; ++second) show(to, gate_, second, 40);
  self_->send(to, end_atom_v, std::string("gate"));
  settle();
  EXPECT_THAT(heard_, ElementsAre("join gate v1"));
  say(TokensRoom{"gate", sessions_.at(0), 9});
  EXPECT_THAT(heard_,
              ElementsAre("join gate v1", "patch gate 0", "patch gate 1", "patch gate 2", "end gate"));
}

TEST_F(TokensByHand, ADeviceThatHasBothHalvesSendsOnWhatItIsToldTo) {
  alone();
  const executor_actor both = start(parts(encoder_, language_), taker_);
  const WatchPtr here = watched(*camera("here"));
  self_->send(both, tokens_atom_v, std::string("gate"), true);
  for (const WatchPtr& each : {gate_, here}) join(both, each);
  say(TokensRoom{"gate", sessions_.at(0), 9});
  for (int second = 0; second < 4; ++second)
    for (const WatchPtr& each : {gate_, here}) show(both, each, second, 40);
  EXPECT_THAT(patches_, SizeIs(4));
  EXPECT_THAT(told_.answers, SizeIs(2));
  EXPECT_THAT(told_.answers, ::testing::Each(::testing::StartsWith("here")));
  // What changes meanwhile counts from its next join on.
  self_->send(both, tokens_atom_v, std::string("gate"), false);
  show(both, gate_, 4, 40);
  EXPECT_THAT(patches_, SizeIs(5));
  self_->send(both, end_atom_v, std::string("gate"));
  settle();
  join(both, gate_);
  for (int second = 10; second < 14; ++second) show(both, gate_, second, 40);
  EXPECT_THAT(patches_, SizeIs(5));
  EXPECT_THAT(told_.answers, Contains(::testing::StartsWith("gate")));
}

TEST_F(TokensByHand, TokensOfACameraThatDidNotJoinAreLost) {
  const executor_actor to = start(language());
  std::vector<TokensAck> acks;
  self_->send(to, VisualPatchPtr(visual_patch(gate_, 0)));
  while (scheduler().try_run_once()) {
  }
  self_->receive([&](const TokensAck& ack) { acks.push_back(ack); });
  EXPECT_THAT(acks, ElementsAre(TokensAck{"gate", 0, 0, TokensOutcome::lost}));
}

TEST_F(StagesTest, AnEngineWithoutALanguageModelNeedsSomebodyWhoHasOne) {
  start(tower());
  EXPECT_THAT(log_.str(), HasSubstr("nobody takes the visual tokens"));
  all_.clear();
}

}  // namespace
}  // namespace vigil::actors
