// The desk between answers, outbox and topics.
#include "actors/alerts/alert_desk.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/timestamp.h"
#include "tests/actors/events.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AlertDeskTest : public ::testing::Test {
 protected:
  AlertDesk desk() {
    return AlertDesk({.model = {"m"}, .retention = 24h, .backlog = 3, .run = run_}, *outbox_, publisher_,
                     metrics_, clock_);
  }

  std::vector<std::string> published() const {
    std::vector<std::string> result;
    for (const auto& message : publisher_.messages) {
      const json event = json::parse(message.body);
      EXPECT_EQ(event.at("data").at("seq"), message.sequence);
      expect_valid(event);
      result.push_back(message.topic + ' ' + std::to_string(message.sequence) + ' ' +
                       event.at("data").value("phase", event.at("data").value("state", "")));
    }
    return result;
  }

  ManualClock clock_;
  Metrics metrics_;
  FakePublisher publisher_;
  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
  WatchPtr gate_ = watch("gate");
  std::uint64_t run_ = 1;
};

/// "rule phase reason" of all that was published on topics that begin so.
std::vector<std::string> phases(const FakePublisher& publisher, const std::string& prefix = "alert/") {
  std::vector<std::string> result;
  for (const auto& message : publisher.messages) {
    if (!message.topic.starts_with(prefix)) continue;
    const json data = json::parse(message.body).at("data");
    const std::string reason = data.value("end_reason", "");
    result.push_back(data.at("rule").get<std::string>() + ' ' + data.at("phase").get<std::string>() +
                     (reason.empty() ? "" : ' ' + reason));
  }
  return result;
}

TEST_F(AlertDeskTest, NewSettingsKeepTheEpisodesOfRulesThatStay) {
  config::CameraSettings settings = *camera("gate");
  for (const char* name : {"changed", "removed"}) {
    config::RuleSettings rule = settings.rules[0];
    rule.name = name;
    settings.rules.push_back(rule);
  }
  settings.rules[0].cooldown = 1h;
  const auto before = std::make_shared<const OwnCamera>(settings);
  // The first rule moves to the second place and gets another severity; "changed" asks something else.
  config::CameraSettings edited = settings;
  edited.rules = {settings.rules[1], settings.rules[0]};
  edited.rules[0].prompt = "Is there a dog?";
  edited.rules[1].severity = config::Severity::detection;
  edited.labels["zone"] = "dock";
  const auto after = std::make_shared<const OwnCamera>(edited);

  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(before, 2 * i, {0.9F, 0.9F, 0.9F}));
  EXPECT_THAT(phases(publisher_), ElementsAre("person new", "changed new", "removed new"));
  publisher_.messages.clear();
  alerts.observe(window_of(after, 6, {0.9F, 0.9F}));
  EXPECT_THAT(phases(publisher_), ElementsAre("changed end rule_changed", "removed end rule_changed"));
  for (const auto& message : publisher_.messages) {
    EXPECT_EQ(json::parse(message.body).at("data").at("prompt"), "Is there a person in the room?")
        << "what ended is what had begun";
  }
  publisher_.messages.clear();
  alerts.observe(window_of(after, 8, {0.9F, 0.1F}));
  EXPECT_THAT(phases(publisher_), ElementsAre("changed new")) << "it confirms anew";
  alerts.observe(window_of(after, 10, {0.9F, 0.1F}));
  alerts.end("gate");
  const json last = json::parse(publisher_.messages.back().body).at("data");
  EXPECT_THAT(phases(publisher_),
              ElementsAre("changed new", "changed update", "person end over", "changed end camera_ended"));
  const json person = json::parse(publisher_.messages[2].body).at("data");
  EXPECT_EQ(person.at("severity"), "detection");
  EXPECT_EQ(person.at("confirmations"), 3);
  EXPECT_EQ(person.at("labels").at("zone"), "dock");
  EXPECT_EQ(last.at("prompt"), "Is there a dog?");
}

// Nobody looks, so nobody can say that it is over.
TEST_F(AlertDeskTest, AnAlertOfACameraThatIsLostStaysOpenUntilItIsBackOrRemoved) {
  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(gate_, 2 * i, {0.9F}));
  alerts.status(gate_, CameraState::down, "no route");
  clock_.advance(24h);
  alerts.tick();
  EXPECT_THAT(phases(publisher_), ElementsAre("person new"));
  alerts.end("gate");
  EXPECT_THAT(phases(publisher_), ElementsAre("person new", "person end camera_ended"));
}

TEST_F(AlertDeskTest, AnotherTenantIsAnotherTopic) {
  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(gate_, 2 * i, {0.9F}));
  config::CameraSettings moved = *camera("gate");
  moved.labels["tenant"] = "south";
  const auto after = std::make_shared<const OwnCamera>(moved);
  for (int i = 3; i <= 4; ++i) alerts.observe(window_of(after, 2 * i, {0.9F}));
  EXPECT_THAT(published(), ElementsAre("alert/north/gate/person/ 1 new", "alert/north/gate/person/ 2 end",
                                       "alert/south/gate/person/ 1 new"));
}

TEST_F(AlertDeskTest, AnAlertGoesToItsTopicsTooWithTheirOwnSequences) {
  config::CameraSettings settings = *camera("gate");
  settings.rules[0].topics = {"staff", "fire"};
  const auto owner = std::make_shared<const OwnCamera>(settings);
  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(owner, 2 * i, {0.9F}));
  EXPECT_THAT(published(),
              ElementsAre("alert/north/gate/person/ 1 new", "topic/staff/north/gate/person/ 1 new",
                          "topic/fire/north/gate/person/ 1 new"));
  EXPECT_EQ(json::parse(publisher_.messages[0].body).at("id"),
            json::parse(publisher_.messages[1].body).at("id"))
      << "one event, however often it is told";
}

TEST_F(AlertDeskTest, ASnoozeEndsByTheWallClock) {
  config::CameraSettings settings = *camera("gate");
  settings.rules[0].snooze_until = clock_.wall() + 1h;
  const auto snoozed = std::make_shared<const OwnCamera>(settings);
  AlertDesk alerts = desk();
  double end = 0;
  const auto observe = [&](float score) { alerts.observe(window_of(snoozed, end += 2, {score})); };
  for (int i = 0; i < 3; ++i) observe(0.9F);
  EXPECT_THAT(phases(publisher_), IsEmpty());
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_alerts_held_total{reason=\"snoozed\"} 1\n"))
      << "an episode, not a window";
  clock_.jump(1h - 1ms);
  observe(0.9F);
  EXPECT_THAT(phases(publisher_), IsEmpty());
  clock_.jump(1ms);
  observe(0.9F);
  EXPECT_THAT(phases(publisher_), ElementsAre("person new"));
  clock_.jump(-2h);
  for (int i = 0; i < 2; ++i) observe(0.1F);
  for (int i = 0; i < 2; ++i) observe(0.9F);
  EXPECT_THAT(phases(publisher_), ElementsAre("person new", "person end over"));
}

TEST_F(AlertDeskTest, ACameraThatIsSnoozedIsSilentAsAWhole) {
  config::CameraSettings settings = *camera("gate");
  settings.snooze_until = clock_.wall() + 1min;
  const auto snoozed = std::make_shared<const OwnCamera>(settings);
  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(snoozed, 2 * i, {0.9F}));
  EXPECT_THAT(phases(publisher_), IsEmpty());
}

TEST_F(AlertDeskTest, IdsDifferWhereverTheClockIsSet) {
  // Each time the wall clock is back where it was, in this process, after a change of the rule, after a
  // return of the camera, and in another process.
  std::set<std::string> ids;
  std::size_t told = 0;
  for (; run_ <= 3; ++run_) {
    outbox_ = make_memory_outbox();
    AlertDesk alerts = desk();
    for (int round = 0; round < 3; ++round) {
      auto owner = std::make_shared<OwnCamera>(*camera("gate"));
      for (int change = 0; change < 3; ++change) {
        auto edited = std::make_shared<OwnCamera>(*owner);
        edited->rules[0].threshold = 0.5 + 0.1 * (change % 2);
        for (int i = 1; i <= 2; ++i) alerts.observe(window_of(edited, 2 * i, {0.9F}));
      }
      alerts.end(owner->name);
    }
  }
  for (const auto& message : publisher_.messages) {
    ++told;
    ids.insert(json::parse(message.body).at("id"));
  }
  EXPECT_EQ(told, 3U * 3U * 3U * 2U) << "new and end of each";
  EXPECT_EQ(ids.size(), told);
}

TEST_F(AlertDeskTest, PublishesEpisodesWithSequencesOfTheirTopic) {
  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(gate_, 2 * i, {0.9F}));
  alerts.status(gate_, CameraState::down, "end of file");
  alerts.end("gate");
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

TEST_F(AlertDeskTest, ARestartEndsTheEpisodesThatWereLeftOpen) {
  const WatchPtr yard = watch("yard");
  {
    AlertDesk killed = desk();
    for (int i = 1; i <= 3; ++i) killed.observe(window_of(gate_, 2 * i, {0.9F}));
    for (int i = 1; i <= 2; ++i) killed.observe(window_of(yard, 2 * i, {0.9F}));
    killed.end("yard");
    killed.status(gate_, CameraState::up, "");
  }
  const auto before = publisher_.messages;
  publisher_.messages.clear();
  clock_.advance(1h);
  AlertDesk next = desk();
  next.tick();
  ASSERT_THAT(published(), ElementsAre("alert/north/gate/person/ 3 end"));
  const json last = json::parse(before[1].body);
  json end = json::parse(publisher_.messages[0].body);
  const std::string episode = last.at("data").at("episode");
  EXPECT_EQ(last.at("id"), episode + "-1") << "new and update";
  EXPECT_EQ(end.at("id"), episode + "-2");
  EXPECT_EQ(end.at("time"), base::format_rfc3339(clock_.wall()));
  EXPECT_EQ(end.at("data").at("end_time"), 1785578406.0) << "the last window that is known of";
  EXPECT_EQ(end.at("data").at("end_reason"), "restart");
  // All else is as it was.
  for (const char* key : {"episode", "camera", "rule", "score", "start_time", "title", "prompt", "window"}) {
    EXPECT_EQ(end.at("data").at(key), last.at("data").at(key)) << key;
  }
  EXPECT_EQ(end.at("source"), last.at("source"));
  next.tick();
  EXPECT_EQ(publisher_.messages.size(), 1U) << "once";
  AlertDesk third = desk();
  third.tick();
  EXPECT_EQ(publisher_.messages.size(), 1U) << "nor after another restart";
}

TEST_F(AlertDeskTest, ARestartRemembersTheLastEventOfEachTopic) {
  {
    AlertDesk killed = desk();
    killed.status(gate_, CameraState::connecting, "");
    killed.status(gate_, CameraState::up, "");
    EXPECT_THAT(publisher_.remembered, IsEmpty());
  }
  desk().tick();
  ASSERT_EQ(publisher_.remembered.size(), 1U);
  EXPECT_EQ(publisher_.remembered[0].sequence, 2U);
}

/// Fails while it is told to.
class FailingOutbox final : public Outbox {
 public:
  void refresh() override { inner_->refresh(); }
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner_->last_sequence(topic);
  }
  std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) override {
    if (full) throw OutboxError("outbox: No space left on device");
    return inner_->append(events, notes);
  }
  std::map<std::string, std::string> notes() const override { return inner_->notes(); }
  std::vector<OutboxEvent> unacknowledged(std::size_t limit) const override {
    return inner_->unacknowledged(limit);
  }
  void acknowledge(std::span<const std::uint64_t> positions) override { inner_->acknowledge(positions); }
  std::size_t prune(base::Duration older_than) override {
    pruned.push_back(older_than);
    return inner_->prune(older_than);
  }
  const std::string& identity() const override { return inner_->identity(); }
  std::uint64_t last_position() const override { return inner_->last_position(); }
  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    return inner_->position_of(topic, sequence);
  }
  Replay replay(const ReplayQuery& query) const override { return inner_->replay(query); }
  std::vector<OutboxEvent> last_events(std::size_t each) const override {
    if (full) throw OutboxError("outbox: No space left on device");
    return inner_->last_events(each);
  }
  bool full = false;
  std::vector<base::Duration> pruned;

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
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_failures_total 1\n")) << "not at every event";
  clock_.advance(1s);
  alerts.tick();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_failures_total 2\n"));
  disk.full = false;
  alerts.tick();
  EXPECT_THAT(published(), IsEmpty());
  clock_.advance(1s);
  alerts.tick();
  EXPECT_THAT(published(), ElementsAre("status/north/gate/ 1 up", "status/north/gate/ 2 stalled",
                                       "status/north/gate/ 3 down"));
  EXPECT_EQ(alerts.failure(), "");
}

TEST_F(AlertDeskTest, WhatIsPendingCountsWhereverItWaits) {
  auto failing = std::make_unique<FailingOutbox>();
  FailingOutbox& disk = *failing;
  outbox_ = std::move(failing);
  AlertDesk alerts = desk();
  publisher_.refuses = true;
  for (const CameraState state : {CameraState::connecting, CameraState::up}) alerts.status(gate_, state, "");
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_pending 2\n")) << "in the outbox";
  disk.full = true;
  alerts.status(gate_, CameraState::stalled, "");
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_pending 3\n")) << "one of them in memory";
  alerts.status(gate_, CameraState::down, "");
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_pending 4\n"))
      << "also while the outbox is left alone";
  disk.full = false;
  clock_.advance(1s);
  alerts.tick();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_pending 4\n"));
  publisher_.refuses = false;
  alerts.tick();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_outbox_pending 0\n"));
}

TEST_F(AlertDeskTest, AtTheEndAFailedOutboxIsTriedOnceMore) {
  auto failing = std::make_unique<FailingOutbox>();
  FailingOutbox& disk = *failing;
  outbox_ = std::move(failing);
  AlertDesk alerts = desk();
  disk.full = true;
  alerts.status(gate_, CameraState::up, "");
  alerts.finish();
  EXPECT_EQ(alerts.backlog(), 1U) << "what is lost can be told";
  disk.full = false;
  alerts.tick();
  EXPECT_THAT(published(), IsEmpty()) << "a moment after a failure";
  alerts.finish();
  EXPECT_THAT(published(), ElementsAre("status/north/gate/ 1 up"));
  EXPECT_EQ(alerts.backlog(), 0U);
}

TEST_F(AlertDeskTest, ForgetsWhatIsOlderThanTheRetention) {
  auto failing = std::make_unique<FailingOutbox>();
  FailingOutbox& disk = *failing;
  outbox_ = std::move(failing);
  AlertDesk alerts = desk();
  alerts.tick();
  EXPECT_THAT(disk.pruned, ElementsAre(24h));
  clock_.advance(30s);
  alerts.tick();
  EXPECT_THAT(disk.pruned, SizeIs(1)) << "not at every tick";
  clock_.advance(31s);
  alerts.tick();
  EXPECT_THAT(disk.pruned, ElementsAre(24h, 24h));
}

TEST_F(AlertDeskTest, CountsWhatSlowSubscribersMissed) {
  AlertDesk alerts = desk();
  publisher_.dropped = 7;
  alerts.tick();
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_messages_dropped_total{reason=\"slow_subscriber\",socket=\"events\"} 7\n"));
}

class GatheringTest : public AlertDeskTest {
 protected:
  AlertDesk gathering() {
    return AlertDesk({.model = {"m"}, .retention = 24h, .backlog = 4096, .run = 1, .gather = true}, watched_,
                     publisher_, metrics_, clock_);
  }
  WatchedOutbox watched_{*outbox_};
};

TEST_F(GatheringTest, WhatComesTogetherIsWrittenTogether) {
  AlertDesk alerts = gathering();
  for (int i = 0; i < 100; ++i) alerts.status(gate_, CameraState::up, "");
  EXPECT_THAT(watched_.appends, IsEmpty());
  EXPECT_EQ(alerts.backlog(), 100U);
  EXPECT_FALSE(alerts.flush());
  ASSERT_THAT(watched_.appends, SizeIs(1)) << "one sync for all";
  EXPECT_THAT(published(), SizeIs(100));
}

TEST_F(GatheringTest, AFloodOfStatesDelaysAnAlertByOneAppendAtMost) {
  config::CameraSettings settings = *camera("gate");
  settings.rules[0].topics = {"staff"};
  const auto owner = std::make_shared<const OwnCamera>(settings);
  AlertDesk alerts = gathering();
  constexpr std::size_t kFlood = 10'000;
  std::size_t before = 0;
  for (std::size_t i = 0; i < kFlood; ++i) {
    alerts.status(gate_, CameraState::stalled, std::to_string(i));
    if (i != kFlood / 2) continue;
    for (const double end : {2.0, 4.0}) alerts.observe(window_of(owner, end, {0.9F}));
    before = watched_.appends.size();
    alerts.flush();
    ASSERT_EQ(watched_.appends.size(), before + 1);
    EXPECT_EQ(watched_.appends.back().at(0).topic, "alert/north/gate/person/");
    EXPECT_EQ(watched_.appends.back().at(1).topic, "topic/staff/north/gate/person/");
  }
  while (alerts.flush()) {
  }
  EXPECT_EQ(alerts.backlog(), 0U);
  EXPECT_LE(watched_.appends.size(), kFlood / 256 + 3);
  for (const auto& batch : watched_.appends) EXPECT_LE(batch.size(), 256U);
  EXPECT_EQ(publisher_.messages.size(), kFlood + 2) << "none is lost";
  const json last = json::parse(publisher_.messages.back().body).at("data");
  EXPECT_EQ(last.at("reason"), std::to_string(kFlood - 1)) << "in their order";
  EXPECT_EQ(last.at("seq"), kFlood);
}

TEST_F(GatheringTest, NothingOfABatchThatFailsIsLostOrToldTwice) {
  AlertDesk alerts = gathering();
  alerts.tick();
  watched_.fails = true;
  for (const double end : {2.0, 4.0}) alerts.observe(window_of(gate_, end, {0.9F}));
  alerts.status(gate_, CameraState::up, "");
  EXPECT_FALSE(alerts.flush());
  EXPECT_EQ(alerts.backlog(), 2U);
  EXPECT_THAT(published(), IsEmpty());
  watched_.fails = false;
  clock_.advance(1s);
  alerts.flush();
  EXPECT_THAT(published(), ElementsAre("alert/north/gate/person/ 1 new", "status/north/gate/ 1 up"));
  EXPECT_EQ(alerts.backlog(), 0U);
}

/// Alerts of a rule that explains, of windows that are in the cache.
class ExplainTest : public AlertDeskTest {
 protected:
  WindowAnswersPtr cached(const CameraPtr& owner, double end, float score) {
    auto window = std::make_shared<WindowAnswers>(*window_of(owner, end, {score}));
    window->id = stream::WindowId{owner->name, 3, static_cast<std::uint64_t>(end)};
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
};

TEST_F(ExplainTest, AnAlertWaitsForItsText) {
  AlertDesk alerts = desk();
  alerts.observe(cached(yard_, 2, 0.9F));
  EXPECT_THAT(alerts.take_requests(), IsEmpty()) << "one window is no alert yet";
  alerts.observe(cached(yard_, 4, 0.9F));
  auto requests = alerts.take_requests();
  ASSERT_EQ(requests.size(), 1U);
  EXPECT_EQ(requests[0].explain.rule, 0U);
  EXPECT_EQ(requests[0].explain.window, (stream::WindowId{"yard", 3, 4}));
  EXPECT_EQ(requests[0].watch->name, "yard");
  EXPECT_TRUE(alerts.explains("yard"));
  EXPECT_FALSE(alerts.explains("gate"));
  alerts.status(gate_, CameraState::up, "");
  alerts.tick();
  EXPECT_THAT(published(), ElementsAre("status/north/gate/ 1 up")) << "others do not wait";
  alerts.explained(requests[0].explain.ticket + 7, "of somebody else");
  EXPECT_THAT(published(), SizeIs(1));
  alerts.explained(requests[0].explain.ticket, "Yes, a man at the door.");
  EXPECT_FALSE(alerts.explains("yard"));
  EXPECT_THAT(published(), ElementsAre("status/north/gate/ 1 up", "alert/north/yard/person/ 1 new"));
  EXPECT_THAT(descriptions(), ElementsAre("Yes, a man at the door."));
  alerts.end("yard");
  EXPECT_THAT(json::parse(publisher_.messages.back().body).at("data").at("description"), nullptr)
      << "an end is not explained";
}

TEST_F(ExplainTest, ItHoldsBackWhatFollowsItOnItsTopicsAndNothingElse) {
  auto settings = std::make_shared<OwnCamera>(*yard_);
  settings->rules.push_back(settings->rules[0]);
  settings->rules[1].name = "car";
  settings->rules[1].explain = false;
  AlertDesk alerts = desk();
  const auto observe = [&](double end, float person, float car) {
    auto window = std::make_shared<WindowAnswers>(*window_of(settings, end, {person, car}));
    window->id = stream::WindowId{"yard", 3, static_cast<std::uint64_t>(end)};
    alerts.observe(window);
  };
  for (const double end : {2.0, 4.0}) observe(end, 0.9F, 0.1F);
  const auto requests = alerts.take_requests();
  ASSERT_EQ(requests.size(), 1U);
  for (const double end : {6.0, 8.0}) observe(end, 0.1F, 0.9F);
  EXPECT_THAT(published(), ElementsAre("alert/north/yard/car/ 1 new")) << "the person's end waits";
  for (const double end : {2.0, 4.0}) alerts.observe(window_of(gate_, end, {0.9F}));
  EXPECT_THAT(published(), ElementsAre("alert/north/yard/car/ 1 new", "alert/north/gate/person/ 1 new"));
  alerts.explained(requests[0].explain.ticket, "A man.");
  EXPECT_THAT(published(), ElementsAre("alert/north/yard/car/ 1 new", "alert/north/gate/person/ 1 new",
                                       "alert/north/yard/person/ 1 new", "alert/north/yard/person/ 2 end"));
}

TEST_F(ExplainTest, TheTimeThatItWaitsIsPartOfItsLatency) {
  AlertDesk alerts = desk();
  for (const double end : {2.0, 4.0}) alerts.observe(cached(yard_, end, 0.9F));
  const auto requests = alerts.take_requests();
  ASSERT_EQ(requests.size(), 1U);
  // It was captured at the clock's beginning.
  clock_.advance(7s);
  alerts.explained(requests[0].explain.ticket, "A man.");
  const json data = json::parse(publisher_.messages.back().body).at("data");
  EXPECT_EQ(data.at("latency_ms").at("capture_to_alert"), 7000);
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
  alerts.explained(requests[0].explain.ticket, "too late");
  EXPECT_THAT(descriptions(), ElementsAre(nullptr));
  // The target failed, or is gone.
  alerts.end("yard");
  for (const double end : {66.0, 68.0}) alerts.observe(cached(yard_, end, 0.9F));
  const auto failed = alerts.take_requests();
  ASSERT_EQ(failed.size(), 1U);
  alerts.explained(failed[0].explain.ticket, std::nullopt);
  EXPECT_THAT(descriptions(), ElementsAre(nullptr, nullptr));
  alerts.end("yard");
  for (const double end : {130.0, 132.0}) alerts.observe(cached(yard_, end, 0.9F));
  // As when half of the time for an orderly end is over.
  alerts.let_go();
  alerts.flush();
  EXPECT_EQ(descriptions().size(), 3U);
  alerts.end("yard");
  for (const double end : {194.0, 196.0}) alerts.observe(cached(yard_, end, 0.9F));
  alerts.finish();
  EXPECT_EQ(descriptions().size(), 4U);
  EXPECT_EQ(alerts.lost().events, 0U);
}

}  // namespace
}  // namespace vigil::actors
