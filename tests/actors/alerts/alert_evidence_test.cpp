// How alerts tell of their evidence: promised, made, failed, or left behind by a process that was killed.
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/alerts/alert_desk.h"
#include "actors/alerts/event_text.h"
#include "tests/actors/events.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AlertEvidence : public ::testing::Test {
 protected:
  AlertDesk desk() {
    return AlertDesk({.model = {"m"}, .evidence = AlertDesk::Options::ClipRoll{5s, 3s}, .run = run_},
                     *outbox_, publisher_, metrics_, clock_);
  }

  /// A window of 4 s that ends at `end`.
  void observe(AlertDesk& alerts, double end, float score, const CameraPtr& owner = nullptr) const {
    const CameraPtr camera = owner ? owner : gate_;
    alerts.observe(window_of(camera, end, std::vector<float>(camera->rules.size(), score)));
  }

  void begin(AlertDesk& alerts) const {
    for (const int end : {2, 4}) observe(alerts, end, 0.9F);
  }

  static EvidenceReport ready(const std::string& episode) {
    Evidence evidence;
    evidence.state = EvidenceState::ready;
    evidence.thumb = "gate/x.jpg";
    evidence.clip = "gate/x.mp4";
    evidence.thumb_time = kStart + 3500ms;
    evidence.from = kStart - 5s;
    evidence.to = kStart + 7s;
    evidence.bytes = 12345;
    evidence.codec = "h264";
    return {episode, evidence};
  }

  /// "phase state" of all that was told, "*" at those that are about nothing else than evidence; each is
  /// valid and has an id of its own.
  std::vector<std::string> told() const {
    std::vector<std::string> result;
    std::set<std::string> ids;
    for (const OutboxEvent& message : publisher_.messages) {
      const json event = json::parse(message.body);
      expect_valid(event);
      EXPECT_TRUE(ids.insert(message.topic + event.at("id").get<std::string>()).second) << event.at("id");
      const json& data = event.at("data");
      result.push_back(data.at("phase").get<std::string>() + ' ' +
                       data.at("evidence").at("clip_state").get<std::string>() +
                       (data.value("cause", "") == "evidence" ? "*" : ""));
    }
    return result;
  }
  json last() const { return json::parse(publisher_.messages.back().body).at("data"); }

  ManualClock clock_;
  Metrics metrics_;
  FakePublisher publisher_;
  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
  std::shared_ptr<OwnCamera> gate_ = camera("gate");
  std::uint64_t run_ = 1;
};

TEST_F(AlertEvidence, IsPromisedAtOnceAndToldWhenItIsReady) {
  gate_->rules[0].cooldown = 1h;
  AlertDesk alerts = desk();
  begin(alerts);
  EXPECT_THAT(told(), ElementsAre("new pending"));
  EXPECT_EQ(last().at("evidence").at("clip"), nullptr);
  const auto requests = alerts.take_evidence_requests();
  ASSERT_THAT(requests, SizeIs(1));
  EXPECT_THAT(alerts.take_evidence_requests(), IsEmpty());
  EXPECT_EQ(requests[0].camera, "gate");
  EXPECT_EQ(requests[0].tenant, "north");
  EXPECT_EQ(requests[0].rule, "person");
  EXPECT_EQ(requests[0].episode, last().at("episode").get<std::string>());
  EXPECT_DOUBLE_EQ(requests[0].span.from, -5) << "the window from 0 to 4 s, and 5 s before";
  EXPECT_DOUBLE_EQ(requests[0].span.to, 7);
  EXPECT_DOUBLE_EQ(requests[0].span.moment, 3.5) << "its last frame";
  EXPECT_EQ(requests[0].moment, kStart + 4s);
  EXPECT_TRUE(alerts.awaits_evidence("gate"));
  EXPECT_FALSE(alerts.awaits_evidence("yard"));

  observe(alerts, 6, 0.8F);
  alerts.evidence(ready(requests[0].episode));
  EXPECT_THAT(told(), ElementsAre("new pending", "update ready*"));
  EXPECT_FALSE(alerts.awaits_evidence("gate"));
  EXPECT_EQ(last().at("evidence"),
            json::parse(R"({"thumb": "gate/x.jpg", "clip": "gate/x.mp4", "clip_state": "ready",
    "thumb_time": "2026-08-01T10:00:03.500Z", "from": "2026-08-01T09:59:55.000Z", "to": "2026-08-01T10:00:07.000Z",
    "bytes": 12345, "codec": "h264"})"));
  EXPECT_EQ(last().at("confirmations"), 3) << "the episode as it stands";
  alerts.evidence(ready(requests[0].episode));
  EXPECT_THAT(publisher_.messages, SizeIs(2)) << "once";
  // What follows has it.
  alerts.end("gate");
  EXPECT_THAT(told(), ElementsAre("new pending", "update ready*", "end ready"));
}

TEST_F(AlertEvidence, UsesUpNeitherCooldownNorRateCap) {
  gate_->rules[0].cooldown = 6s;
  gate_->rules[0].max_per_hour = 2;
  AlertDesk alerts = desk();
  begin(alerts);
  observe(alerts, 6, 0.9F);
  alerts.evidence(ready(last().at("episode")));
  observe(alerts, 8, 0.9F);
  EXPECT_THAT(told(), ElementsAre("new pending", "update ready*"));
  observe(alerts, 10, 0.9F);
  EXPECT_THAT(told(), ElementsAre("new pending", "update ready*", "update ready")) << "6 s after `new`";
  EXPECT_THAT(metrics_.text(), HasSubstr("topic=\"alert/north/gate/person/\"} 1\n")) << "one alert";
}

TEST_F(AlertEvidence, OfAnEpisodeThatIsOverIsToldWithItsEnd) {
  AlertDesk alerts = desk();
  begin(alerts);
  const std::string episode = last().at("episode");
  for (const int end : {6, 8}) observe(alerts, end, 0.1F);
  EXPECT_THAT(told(), ElementsAre("new pending", "end pending"));
  json end = last();
  // Meanwhile the next one has begun.
  for (const int at : {10, 12}) observe(alerts, at, 0.9F);
  alerts.evidence(ready(episode));
  EXPECT_THAT(told(), ElementsAre("new pending", "end pending", "new pending", "end ready*"));
  json again = last();
  EXPECT_EQ(again.at("episode"), episode);
  for (const char* key : {"seq", "evidence", "cause", "latency_ms"}) {
    end.erase(key);
    again.erase(key);
  }
  EXPECT_EQ(again, end) << "nothing else is new";
  observe(alerts, 14, 0.9F);
  EXPECT_EQ(told().back(), "update pending") << "the other one's is still to be made";
}

TEST_F(AlertEvidence, SurvivesAChangeOfOtherRules) {
  AlertDesk alerts = desk();
  begin(alerts);
  const std::string episode = last().at("episode");
  auto changed = std::make_shared<OwnCamera>(*gate_);
  changed->rules.insert(changed->rules.begin(), changed->rules[0]);
  changed->rules[0].name = "car";
  changed->rules[1].cooldown = gate_->rules[0].cooldown;
  observe(alerts, 6, 0.1F, changed);
  alerts.evidence(ready(episode));
  EXPECT_EQ(told().back(), "update ready*");
  EXPECT_EQ(last().at("rule"), "person");
}

TEST_F(AlertEvidence, ThatFailsIsToldWithItsReason) {
  AlertDesk alerts = desk();
  begin(alerts);
  EvidenceReport report{last().at("episode"), {}};
  report.evidence.state = EvidenceState::failed;
  report.evidence.reason = "no key frame is kept of that time";
  alerts.evidence(report);
  EXPECT_THAT(told(), ElementsAre("new pending", "update failed*"));
  EXPECT_EQ(last().at("evidence").at("reason"), "no key frame is kept of that time");
}

TEST_F(AlertEvidence, WhatIsNotMadeWhenVigilStopsHasFailed) {
  AlertDesk alerts = desk();
  begin(alerts);
  alerts.end("gate");
  EXPECT_TRUE(alerts.awaits_evidence("gate"));
  alerts.give_up_evidence();
  EXPECT_FALSE(alerts.awaits_evidence("gate"));
  EXPECT_THAT(told(), ElementsAre("new pending", "end pending", "end failed*"));
  EXPECT_THAT(outbox_->unacknowledged(10), IsEmpty());
}

TEST_F(AlertEvidence, WhatAKilledProcessPromisedHasFailed) {
  // One episode was open, the other over.
  {
    AlertDesk killed = desk();
    begin(killed);
  }
  ++run_;
  {
    AlertDesk next = desk();
    next.tick();
    EXPECT_THAT(told(), ElementsAre("new pending", "end failed"));
    EXPECT_EQ(last().at("end_reason"), "restart");
    for (const int end : {2, 4}) observe(next, end, 0.9F);
    next.end("gate");
    EXPECT_EQ(told().back(), "end pending");
  }
  ++run_;
  AlertDesk third = desk();
  third.tick();
  EXPECT_EQ(told().back(), "end failed*");
  EXPECT_EQ(last().at("end_reason"), "camera_ended") << "it had ended so";
  EXPECT_THAT(last().at("evidence").at("reason"), "Vigil was started again before it was made");
  const std::size_t all = publisher_.messages.size();
  AlertDesk fourth = desk();
  fourth.tick();
  EXPECT_EQ(publisher_.messages.size(), all) << "once";
}

TEST_F(AlertEvidence, OfTwoEpisodesThatAKilledProcessPromisedHasFailed) {
  std::string first;
  {
    AlertDesk killed = desk();
    begin(killed);
    first = last().at("episode");
    for (const int end : {6, 8}) observe(killed, end, 0.1F);
    for (const int end : {10, 12}) observe(killed, end, 0.9F);
    EXPECT_THAT(told(), ElementsAre("new pending", "end pending", "new pending"));
  }
  ++run_;
  AlertDesk next = desk();
  next.tick();
  EXPECT_THAT(told(), ElementsAre("new pending", "end pending", "new pending", "end failed*", "end failed"));
  EXPECT_EQ(json::parse(publisher_.messages[3].body).at("data").at("episode"), first);
  EXPECT_NE(last().at("episode"), first);
  EXPECT_EQ(last().at("end_reason"), "restart");
  AlertDesk third = desk();
  third.tick();
  EXPECT_THAT(publisher_.messages, SizeIs(5)) << "once";
}

TEST_F(AlertEvidence, AnOpenEpisodeIsEndedThoughTheEventAfterItIsAnothers) {
  {
    AlertDesk killed = desk();
    begin(killed);
    const std::string first = last().at("episode");
    for (const int end : {6, 8}) observe(killed, end, 0.1F);
    for (const int end : {10, 12}) observe(killed, end, 0.9F);
    killed.evidence(ready(first));
    EXPECT_EQ(told().back(), "end ready*") << "the first's, after the second's new";
  }
  ++run_;
  publisher_.messages.clear();
  AlertDesk next = desk();
  next.tick();
  EXPECT_THAT(told(), ElementsAre("end failed"));
  EXPECT_EQ(last().at("end_reason"), "restart");
}

TEST_F(AlertEvidence, IsShownToPeopleWhenItIsThere) {
  AlertDesk alerts = desk();
  begin(alerts);
  EXPECT_THAT(event_text(publisher_.messages.back().body).value(), ::testing::Not(HasSubstr("clip")));
  alerts.evidence(ready(last().at("episode")));
  EXPECT_THAT(event_text(publisher_.messages.back().body).value(), ::testing::EndsWith("  clip gate/x.mp4"));
  json event = json::parse(publisher_.messages.back().body);
  event["data"]["evidence"] = {{"clip_state", "failed"}, {"reason", "disk\n\x1b[2J"}};
  EXPECT_THAT(event_text(event.dump()).value(), ::testing::EndsWith("  no clip: disk??[2J"));
}

}  // namespace
}  // namespace vigil::actors
