// From answers to events: policy, CloudEvents, the desk between outbox and topics.
#include <regex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/alerts/alert_desk.h"
#include "actors/alerts/alert_policy.h"
#include "actors/alerts/event.h"
#include "actors/alerts/event_text.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr config::Clock::WallTime kStart{std::chrono::seconds(1785578400)};

class AlertPolicyTest : public ::testing::Test {
 protected:
  /// Windows end every 2 s; a score for each. Returns what was emitted, as "phase@seconds#episode.ordinal".
  std::vector<std::string> feed(const std::vector<double>& scores) {
    std::vector<std::string> result;
    for (const double score : scores) {
      seconds_ += 2;
      const auto emission =
          policy_->observe({score, seconds_, kStart + std::chrono::seconds(static_cast<int>(seconds_))});
      if (emission) {
        last_ = *emission;
        result.push_back(std::string(name_of(emission->phase)) + '@' +
                         std::to_string(static_cast<int>(seconds_)) + '#' +
                         std::to_string(emission->episode) + '.' + std::to_string(emission->ordinal));
      }
    }
    return result;
  }

  void configure(config::Confirmation confirm, config::Duration cooldown, double threshold = 0.5) {
    config::RuleSettings rule;
    rule.confirm = confirm;
    rule.cooldown = cooldown;
    rule.threshold = threshold;
    policy_.emplace(rule, config::WindowSettings{4s, 2s});
    seconds_ = 0;
  }

  std::optional<AlertPolicy> policy_;
  double seconds_ = 0;
  Emission last_;
};

TEST_F(AlertPolicyTest, TwoInARowBeginAnEpisodeAndTwoWithoutEndIt) {
  configure({2, 2}, 60s);
  EXPECT_THAT(feed({0.9, 0.1, 0.9, 0.1}), IsEmpty()) << "one window is not enough";
  EXPECT_THAT(feed({0.6, 0.8}), ElementsAre("new@12#0.0"));
  EXPECT_EQ(last_.confirmations, 2);
  EXPECT_DOUBLE_EQ(last_.score, 0.8);
  EXPECT_EQ(last_.start, kStart + 10s);
  EXPECT_EQ(last_.end, std::nullopt);
  EXPECT_THAT(feed({0.9, 0.1, 0.7, 0.2}), IsEmpty()) << "one window without does not end it";
  EXPECT_THAT(feed({0.2}), ElementsAre("end@22#0.1"));
  EXPECT_DOUBLE_EQ(last_.score, 0.9) << "the highest of the episode";
  EXPECT_EQ(last_.confirmations, 4);
  EXPECT_EQ(last_.start, kStart + 10s);
  EXPECT_EQ(last_.end, kStart + 18s) << "the last window that counted";
}

TEST_F(AlertPolicyTest, TheThresholdItselfCounts) {
  configure({1, 1}, 0s, 0.7);
  EXPECT_THAT(feed({0.69999}), IsEmpty());
  EXPECT_THAT(feed({0.7}), ElementsAre("new@4#0.0"));
}

TEST_F(AlertPolicyTest, NOfMWindowsInAnyOrder) {
  configure({2, 3}, 60s);
  EXPECT_THAT(feed({0.9, 0.1, 0.1, 0.9, 0.1}), IsEmpty());
  EXPECT_THAT(feed({0.9}), ElementsAre("new@12#0.0"));
  EXPECT_THAT(feed({0.1, 0.1}), IsEmpty());
  EXPECT_THAT(feed({0.1}), ElementsAre("end@18#0.1"));
}

TEST_F(AlertPolicyTest, AnUpdateForEachCooldownThatItGoesOn) {
  configure({2, 2}, 6s);
  EXPECT_THAT(feed({1, 1, 1, 1, 1, 1, 1, 1}), ElementsAre("new@4#0.0", "update@10#0.1", "update@16#0.2"));
}

TEST_F(AlertPolicyTest, TheCooldownStartsAtEmissionAndHoldsBackTheNextEpisode) {
  configure({1, 1}, 10s);
  EXPECT_THAT(feed({1, 0}), ElementsAre("new@2#0.0", "end@4#0.1"));
  EXPECT_THAT(feed({1, 0, 1}), IsEmpty()) << "at 6 s and 10 s it cools down";
  EXPECT_THAT(feed({1}), ElementsAre("new@12#1.0")) << "what was held back used nothing up";
  EXPECT_THAT(feed({0, 1, 0, 0}), ElementsAre("end@14#1.1"));
}

TEST_F(AlertPolicyTest, LostWindowsDoNotBreakARowButALongGapDoes) {
  configure({2, 2}, 60s);
  feed({0.9});
  seconds_ += 8;  // 10 s after the first: 2 * 2 windows of 2 s, and the length of one, 4 s, bridge 12 s
  EXPECT_THAT(feed({0.9}), ElementsAre("new@12#0.0"));
  configure({2, 2}, 60s);
  feed({0.9});
  seconds_ += 12;
  EXPECT_THAT(feed({0.9}), IsEmpty());
}

TEST_F(AlertPolicyTest, ClosingEndsAnEpisodeOnce) {
  configure({1, 1}, 0s);
  EXPECT_EQ(policy_->close(), std::nullopt);
  feed({1});
  const auto last = policy_->close();
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->phase, Phase::end);
  EXPECT_EQ(last->end, kStart + 2s);
  EXPECT_EQ(policy_->close(), std::nullopt);
}

WindowAnswersPtr window_of(const CameraPtr& owner, double end, std::vector<float> scores) {
  auto window = std::make_shared<WindowAnswers>();
  window->camera = owner;
  window->start = end - 4;
  window->end = end;
  window->end_wall = kStart + std::chrono::milliseconds(static_cast<int>(end * 1000));
  window->start_wall = window->end_wall - 4s;
  window->frames = 8;
  window->captured = {config::Clock::TimePoint(1h), window->end_wall};
  for (const float score : scores) {
    window::Answer answer;
    answer.probability_yes = score;
    answer.text = "Yes, a man.";
    window->answers.push_back(answer);
  }
  return window;
}

TEST(Event, IsACloudEventWithTheFieldsOfAnAlert) {
  auto owner = camera("gate-7");
  owner->labels = {{"tenant", "north"}, {"zone", "dock"}};
  Emission emission;
  emission.phase = Phase::end;
  emission.ordinal = 3;
  emission.score = 0.75;
  emission.confirmations = 5;
  emission.start = kStart + 480ms;
  emission.end = kStart + 10s;
  const WindowAnswersPtr window = window_of(owner, 12.5, {0.5F});
  const json event = json::parse(
      alert_event(*window, 0, emission, {}, {"demo-vl"}, 8812, config::Clock::TimePoint(1h + 1840ms)));
  EXPECT_EQ(event.at("specversion"), "1.0");
  EXPECT_EQ(event.at("source"), "/site/north/camera/gate-7");
  EXPECT_EQ(event.at("type"), "dev.vigil.alert.v1");
  EXPECT_EQ(event.at("subject"), "rule/person");
  EXPECT_EQ(event.at("time"), "2026-08-01T10:00:12.500Z");
  EXPECT_EQ(event.at("datacontenttype"), "application/json");
  const json& data = event.at("data");
  EXPECT_EQ(event.at("id"), data.at("episode").get<std::string>() + "-3");
  json expected = json::parse(R"({
    "phase": "end", "seq": 8812, "camera": "gate-7", "tenant": "north", "labels": {"tenant": "north", "zone": "dock"},
    "rule": "person", "rule_version": 1, "severity": "alert", "score": 0.75, "confirmations": 5,
    "start_time": 1785578400.48, "end_time": 1785578410.0, "title": "Is there a person in the room?", "description": null,
    "window": {"start": "2026-08-01T10:00:08.500Z", "end": "2026-08-01T10:00:12.500Z", "frames": 8},
    "evidence": null, "latency_ms": {"capture_to_alert": 1840}})");
  expected["episode"] = data.at("episode");
  expected["model"] = {{"id", "demo-vl"}, {"prompt_hash", data.at("model").at("prompt_hash")}};
  EXPECT_EQ(data, expected);
  EXPECT_TRUE(
      std::regex_match(data.at("model").at("prompt_hash").get<std::string>(), std::regex("[0-9a-f]{16}")));
}

TEST(Event, AnExplanationIsItsDescriptionWhateverItsBytes) {
  auto owner = camera("gate");
  owner->rules[0].explain = true;
  const json event = json::parse(
      alert_event(*window_of(owner, 4, {1}), 0, {}, "A man \xff", {"m"}, 1, config::Clock::TimePoint(1h)));
  EXPECT_EQ(event.at("data").at("description"), "A man \xEF\xBF\xBD");
}

TEST(Event, EpisodesHaveIdsThatSortByTimeAndDiffer) {
  const std::string id = episode_id("alert/north/gate/person/", kStart, 0);
  EXPECT_TRUE(std::regex_match(id, std::regex("[0-7][0-9A-HJKMNP-TV-Z]{25}"))) << id;
  EXPECT_EQ(id, episode_id("alert/north/gate/person/", kStart, 0));
  EXPECT_NE(id, episode_id("alert/north/gate/person/", kStart, 1));
  EXPECT_NE(id, episode_id("alert/north/gate/car/", kStart, 0));
  EXPECT_LT(id, episode_id("alert/north/gate/person/", kStart + 1ms, 0));
  // The time of a ULID is its first ten characters: 1785578400000 ms.
  std::uint64_t time = 0;
  for (const char c : id.substr(0, 10))
    time = time * 32 + std::string("0123456789ABCDEFGHJKMNPQRSTVWXYZ").find(c);
  EXPECT_EQ(time, 1785578400000U);
}

TEST(Event, TimesAreWrittenAsRfc3339) {
  EXPECT_EQ(rfc3339(kStart), "2026-08-01T10:00:00.000Z");
  EXPECT_EQ(rfc3339(kStart + 999ms), "2026-08-01T10:00:00.999Z");
  EXPECT_EQ(rfc3339(config::Clock::WallTime(std::chrono::seconds(951782399))), "2000-02-28T23:59:59.000Z");
  EXPECT_EQ(rfc3339(config::Clock::WallTime(std::chrono::seconds(951782400))), "2000-02-29T00:00:00.000Z");
}

TEST(EventText, IsALineForPeople) {
  auto owner = camera("gate-7");
  Emission emission;
  emission.score = 0.912;
  const std::string body =
      alert_event(*window_of(owner, 12, {1}), 0, emission, {}, {"m"}, 1, config::Clock::TimePoint(1h));
  EXPECT_EQ(
      event_text(body),
      "2026-08-01 10:00:12  gate-7          person        new     0.91  Is there a person in the room?");
  EXPECT_EQ(event_text(status_event(*owner, CameraState::down, "no route", 3, kStart)),
            "2026-08-01 10:00:00  gate-7          down  no route");
}

TEST(EventText, TakesWhateverComesOverTheWire) {
  for (const char* text :
       {"", "{", "[]", "3", "null", "{}", R"({"data": 3})", R"({"data": {}})", R"({"type": 7, "data": {}})",
        R"({"type": "com.example.other", "data": {"camera": "x"}})"}) {
    EXPECT_EQ(event_text(text), std::nullopt) << text;
  }
  const auto line = event_text(
      R"({"type": "dev.vigil.alert.v1", "time": 7, "data": {"camera": "\u001b[2J\n", "score": "high", "phase": ["x"], "title": null}})");
  ASSERT_TRUE(line.has_value());
  EXPECT_THAT(*line, HasSubstr("?[2J?"));
  EXPECT_EQ(line->find('\x1b'), std::string::npos);
}

class AlertDeskTest : public ::testing::Test {
 protected:
  AlertDesk desk() { return AlertDesk({{"m"}, 24h, 3}, *outbox_, publisher_, metrics_, clock_); }

  std::vector<std::string> published() const {
    std::vector<std::string> result;
    for (const auto& message : publisher_.messages) {
      const json event = json::parse(message.body);
      EXPECT_EQ(event.at("data").at("seq"), message.sequence);
      result.push_back(message.topic + ' ' + std::to_string(message.sequence) + ' ' +
                       event.at("data").value("phase", event.at("data").value("state", "")));
    }
    return result;
  }

  ManualClock clock_;
  Metrics metrics_;
  FakePublisher publisher_;
  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
  CameraPtr gate_ = camera("gate");
};

TEST_F(AlertDeskTest, PublishesEpisodesWithSequencesOfTheirTopic) {
  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(gate_, 2 * i, {0.9F}));
  alerts.status(gate_, CameraState::down, "end of file");
  alerts.end(gate_);
  EXPECT_THAT(published(), ElementsAre("alert/north/gate/person/ 1 new", "status/north/gate/ 1 down",
                                       "alert/north/gate/person/ 2 end"));
  const json first = json::parse(publisher_.messages[0].body);
  const json last = json::parse(publisher_.messages[2].body);
  EXPECT_EQ(first.at("data").at("episode"), last.at("data").at("episode"));
  EXPECT_NE(first.at("id"), last.at("id")) << "equal ids would be a duplicate";
  EXPECT_THAT(outbox_->unacknowledged(10), IsEmpty());
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_alerts_total{severity=\"alert\",topic=\"alert/north/gate/person/\"} 1\n"));
}

TEST_F(AlertDeskTest, WhatCannotBePublishedIsPublishedLaterInOrder) {
  AlertDesk alerts = desk();
  publisher_.refuses = true;
  alerts.status(gate_, CameraState::up, "");
  alerts.status(gate_, CameraState::stalled, "silent");
  EXPECT_THAT(published(), IsEmpty());
  EXPECT_EQ(outbox_->unacknowledged(10).size(), 2U);
  publisher_.refuses = false;
  alerts.tick();
  EXPECT_THAT(published(), ElementsAre("status/north/gate/ 1 up", "status/north/gate/ 2 stalled"));
  alerts.tick();
  EXPECT_EQ(publisher_.messages.size(), 2U);
  EXPECT_EQ(publisher_.served, 2);
}

TEST_F(AlertDeskTest, ARestartPublishesWhatWasLeftUnchangedAndGoesOnCounting) {
  publisher_.refuses = true;
  desk().status(gate_, CameraState::up, "");
  const std::string body = outbox_->unacknowledged(1).at(0).body;
  publisher_.refuses = false;
  AlertDesk next = desk();
  next.tick();
  ASSERT_EQ(publisher_.messages.size(), 1U);
  EXPECT_EQ(publisher_.messages[0].body, body) << "a resend keeps its id";
  next.status(gate_, CameraState::down, "");
  EXPECT_EQ(publisher_.messages[1].sequence, 2U);
}

/// Fails while it is told to.
class FailingOutbox final : public Outbox {
 public:
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner_->last_sequence(topic);
  }
  std::uint64_t append(const OutboxEvent& event) override {
    if (full) throw OutboxError("outbox: No space left on device");
    return inner_->append(event);
  }
  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return inner_->unacknowledged(limit);
  }
  void acknowledge(std::uint64_t position) override { inner_->acknowledge(position); }
  std::size_t prune(config::Clock::WallTime before) override {
    pruned_before = before;
    return inner_->prune(before);
  }
  bool full = false;
  config::Clock::WallTime pruned_before;

 private:
  std::unique_ptr<Outbox> inner_ = make_memory_outbox();
};

TEST_F(AlertDeskTest, EventsWaitWhileTheDiskIsFull) {
  auto failing = std::make_unique<FailingOutbox>();
  FailingOutbox& disk = *failing;
  outbox_ = std::move(failing);
  AlertDesk alerts = desk();
  disk.full = true;
  for (const CameraState state :
       {CameraState::connecting, CameraState::up, CameraState::stalled, CameraState::down}) {
    alerts.status(gate_, state, "");
  }
  EXPECT_THAT(published(), IsEmpty()) << "nothing is published that was not written";
  EXPECT_EQ(alerts.backlog(), 3U) << "bounded: the oldest is lost, and counted";
  EXPECT_THAT(alerts.failure(), HasSubstr("No space left"));
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_messages_dropped_total{reason=\"backlog_full\",socket=\"outbox\"} 1\n"));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_failures_total 4\n"));
  disk.full = false;
  alerts.tick();
  EXPECT_THAT(published(), ElementsAre("status/north/gate/ 1 up", "status/north/gate/ 2 stalled",
                                       "status/north/gate/ 3 down"));
  EXPECT_EQ(alerts.failure(), "");
}

TEST_F(AlertDeskTest, ForgetsWhatIsOlderThanTheRetention) {
  auto failing = std::make_unique<FailingOutbox>();
  FailingOutbox& disk = *failing;
  outbox_ = std::move(failing);
  AlertDesk alerts = desk();
  alerts.tick();
  EXPECT_EQ(disk.pruned_before, clock_.wall() - 24h);
  const auto before = disk.pruned_before;
  clock_.advance(30s);
  alerts.tick();
  EXPECT_EQ(disk.pruned_before, before) << "not at every tick";
  clock_.advance(31s);
  alerts.tick();
  EXPECT_EQ(disk.pruned_before, clock_.wall() - 24h);
}

TEST_F(AlertDeskTest, CountsWhatSlowSubscribersMissed) {
  AlertDesk alerts = desk();
  publisher_.dropped = 7;
  alerts.tick();
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_messages_dropped_total{reason=\"slow_subscriber\",socket=\"events\"} 7\n"));
}

/// Alerts of a rule that explains, of windows that are in the cache.
class ExplainTest : public AlertDeskTest {
 protected:
  WindowAnswersPtr cached(const CameraPtr& owner, double end, float score) {
    auto window = std::make_shared<WindowAnswers>(*window_of(owner, end, {score}));
    window->lease = std::make_shared<KvLease>(std::make_unique<FakeWindow>(), [this] { ++released_; });
    return window;
  }

  std::vector<json> descriptions() const {
    std::vector<json> result;
    for (const auto& message : publisher_.messages)
      if (const json data = json::parse(message.body).at("data"); data.value("phase", "") == "new")
        result.push_back(data.at("description"));
    return result;
  }

  CameraPtr yard_ = [] {
    auto settings = camera("yard");
    settings->rules[0].explain = true;
    return settings;
  }();
  int released_ = 0;
};

TEST_F(ExplainTest, AnAlertWaitsForItsTextAndHoldsItsWindowNoLongerThanThat) {
  AlertDesk alerts = desk();
  alerts.observe(cached(yard_, 2, 0.9F));
  EXPECT_THAT(alerts.take_requests(), IsEmpty()) << "one window is no alert yet";
  EXPECT_EQ(released_, 1);
  alerts.observe(cached(yard_, 4, 0.9F));
  auto requests = alerts.take_requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].rule, 0U);
  EXPECT_EQ(requests[0].window->end, 4);
  EXPECT_EQ(released_, 1);
  EXPECT_TRUE(alerts.explains("yard"));
  EXPECT_FALSE(alerts.explains("gate"));
  alerts.status(gate_, CameraState::up, "");
  alerts.tick();
  EXPECT_THAT(published(), IsEmpty()) << "the order of events is kept";
  alerts.explained(requests[0].ticket + 7, "of somebody else");
  EXPECT_THAT(published(), IsEmpty());
  alerts.explained(requests[0].ticket, "Yes, a man at the door.");
  requests.clear();
  EXPECT_EQ(released_, 2);
  EXPECT_FALSE(alerts.explains("yard"));
  EXPECT_THAT(published(), ElementsAre("alert/north/yard/person/ 1 new", "status/north/gate/ 1 up"));
  EXPECT_THAT(descriptions(), ElementsAre("Yes, a man at the door."));
  alerts.end(yard_);
  EXPECT_THAT(json::parse(publisher_.messages.back().body).at("data").at("description"), nullptr)
      << "an end is not explained";
}

TEST_F(ExplainTest, AnAlertIsToldWithoutATextThatDoesNotCome) {
  AlertDesk alerts = desk();
  for (const double end : {2.0, 4.0}) alerts.observe(cached(yard_, end, 0.9F));
  const auto requests = alerts.take_requests();
  ASSERT_EQ(requests.size(), 1U);
  clock_.advance(9s);
  alerts.tick();
  EXPECT_THAT(published(), IsEmpty());
  clock_.advance(2s);
  alerts.tick();
  EXPECT_THAT(descriptions(), ElementsAre(nullptr));
  alerts.explained(requests[0].ticket, "too late");
  EXPECT_THAT(descriptions(), ElementsAre(nullptr));
  // The target failed, or is gone.
  alerts.end(yard_);
  for (const double end : {66.0, 68.0}) alerts.observe(cached(yard_, end, 0.9F));
  const auto failed = alerts.take_requests();
  ASSERT_EQ(failed.size(), 1U);
  alerts.explained(failed[0].ticket, std::nullopt);
  EXPECT_THAT(descriptions(), ElementsAre(nullptr, nullptr));
  alerts.end(yard_);
  for (const double end : {130.0, 132.0}) alerts.observe(cached(yard_, end, 0.9F));
  alerts.give_up_explanations();
  EXPECT_EQ(descriptions().size(), 3U);
}

}  // namespace
}  // namespace vigil::actors
