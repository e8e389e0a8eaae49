// From answers to events: policy, CloudEvents, the desk between outbox and topics.
#include <fstream>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "actors/alerts/alert_desk.h"
#include "actors/alerts/alert_policy.h"
#include "actors/alerts/closing.h"
#include "actors/alerts/event.h"
#include "actors/alerts/event_text.h"
#include "config/timestamp.h"
#include "tests/actors/fakes.h"
#include "tests/actors/times.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AlertPolicyTest : public ::testing::Test {
 protected:
  /// Windows end every 2 s; a score for each. Returns what was emitted, as "phase@seconds#episode.ordinal".
  std::vector<std::string> feed(const std::vector<double>& scores) {
    std::vector<std::string> result;
    for (const double score : scores) {
      seconds_ += 2;
      const auto emission = policy_->observe(
          {score, seconds_, kStart + std::chrono::seconds(static_cast<int>(seconds_)) + jumped_, snoozed_});
      if (emission) {
        last_ = *emission;
        if (emission->phase == Phase::begin) ++episodes_;
        result.push_back(std::string(name_of(emission->phase)) + '@' +
                         std::to_string(static_cast<int>(seconds_)) + '#' + std::to_string(episodes_ - 1) +
                         '.' + std::to_string(emission->ordinal));
      }
    }
    return result;
  }

  void configure(config::Confirmation confirm, config::Duration cooldown, double threshold = 0.5,
                 int max_per_hour = 10'000) {
    config::RuleSettings rule;
    rule.confirm = confirm;
    rule.cooldown = cooldown;
    rule.threshold = threshold;
    rule.max_per_hour = max_per_hour;
    policy_.emplace(rule, config::WindowSettings{4s, 2s});
    seconds_ = 0;
    episodes_ = 0;
  }

  std::optional<AlertPolicy> policy_;
  double seconds_ = 0;
  int episodes_ = 0;
  bool snoozed_ = false;
  config::Duration jumped_{0};
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
  EXPECT_EQ(policy_->close(EndReason::camera_ended), std::nullopt);
  feed({1});
  const auto last = policy_->close(EndReason::camera_ended);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->phase, Phase::end);
  EXPECT_EQ(last->reason, EndReason::camera_ended);
  EXPECT_EQ(last->end, kStart + 2s);
  EXPECT_EQ(policy_->close(EndReason::camera_ended), std::nullopt);
}

TEST_F(AlertPolicyTest, TheRateCapCountsWhatWasToldWithinAnHour) {
  configure({1, 1}, 0s, 0.5, /*max_per_hour=*/3);
  EXPECT_THAT(feed({1, 1, 0, 1, 1, 0}),
              ElementsAre("new@2#0.0", "update@4#0.1", "end@6#0.2", "new@8#1.0", "end@12#1.1"))
      << "an end is always told, and is not counted";
  EXPECT_THAT(feed({1, 0, 1}), IsEmpty());
  EXPECT_EQ(policy_->held(), Held::rate_cap);
  seconds_ = 3600 - 2;
  EXPECT_THAT(feed({1}), IsEmpty()) << "an hour after the first is at 3602 s";
  EXPECT_THAT(feed({1, 1, 1, 1}), ElementsAre("new@3602#2.0", "update@3604#2.1", "update@3608#2.2"))
      << "each makes room for one an hour later; what was held back took none";
  EXPECT_EQ(policy_->held(), std::nullopt);
}

TEST_F(AlertPolicyTest, ACooldownLongerThanAnHourHolds) {
  configure({1, 1}, 3h, 0.5, /*max_per_hour=*/1);
  EXPECT_THAT(feed({1, 0}), ElementsAre("new@2#0.0", "end@4#0.1"));
  seconds_ = 2 * 3600;
  EXPECT_THAT(feed({1, 0}), IsEmpty());
  seconds_ = 3 * 3600;
  EXPECT_THAT(feed({1}), ElementsAre("new@10802#1.0"));
}

TEST_F(AlertPolicyTest, ASnoozeHoldsBackUntilItIsOverAndUsesNothingUp) {
  configure({2, 2}, 6s);
  snoozed_ = true;
  EXPECT_THAT(feed({1, 1, 1}), IsEmpty());
  EXPECT_EQ(policy_->held(), Held::snoozed);
  EXPECT_FALSE(policy_->active());
  snoozed_ = false;
  EXPECT_THAT(feed({1}), ElementsAre("new@8#0.0")) << "it still holds, and no cooldown runs";
  snoozed_ = true;
  EXPECT_THAT(feed({1, 1, 1, 1, 0}), IsEmpty()) << "no update";
  EXPECT_THAT(feed({0}), ElementsAre("end@20#0.1")) << "what was told is told to its end";
  EXPECT_THAT(feed({1, 0, 1}), IsEmpty());
  EXPECT_EQ(policy_->held(), std::nullopt) << "nothing is confirmed";
}

TEST_F(AlertPolicyTest, AJumpOfTheWallClockChangesNoCooldownAndNoRate) {
  for (const config::Duration jump : {config::Duration(24h), config::Duration(-24h)}) {
    configure({1, 1}, 10s, 0.5, /*max_per_hour=*/2);
    jumped_ = config::Duration(0);
    EXPECT_THAT(feed({1, 0}), ElementsAre("new@2#0.0", "end@4#0.1"));
    jumped_ = jump;
    EXPECT_THAT(feed({1, 0, 1}), IsEmpty()) << "at 6 s and 10 s it cools down";
    EXPECT_THAT(feed({1, 0}), ElementsAre("new@12#1.0", "end@14#1.1"));
    seconds_ = 30;
    EXPECT_THAT(feed({1}), IsEmpty());
    EXPECT_EQ(policy_->held(), Held::rate_cap);
  }
}

TEST_F(AlertPolicyTest, AnEpisodeDoesNotEndBeforeItsStart) {
  configure({1, 1}, 0s);
  feed({1});
  jumped_ = -24h;
  EXPECT_THAT(feed({1, 0}), ElementsAre("update@4#0.1", "end@6#0.2"));
  EXPECT_EQ(last_.start, kStart + 2s);
  EXPECT_EQ(last_.end, last_.start);
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

/// docs/event.schema.json, as a validator that is not ours reads it.
bool is_valid(const json& event, valijson::ValidationResults* results = nullptr) {
  std::ifstream file(VIGIL_SOURCE_DIR "/docs/event.schema.json");
  const json schema = json::parse(file);
  valijson::Schema compiled;
  valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled);
  return valijson::Validator().validate(compiled, valijson::adapters::NlohmannJsonAdapter(event), results);
}

void expect_valid(const json& event) {
  valijson::ValidationResults results;
  EXPECT_TRUE(is_valid(event, &results)) << event.dump(2);
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    std::string path;
    for (const std::string& step : error.context) path += step;
    ADD_FAILURE() << path << ": " << error.description;
  }
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
  emission.reason = EndReason::camera_ended;
  const WindowAnswersPtr window = window_of(owner, 12.5, {0.5F});
  const std::string episode = episode_id(emission.start, "gate");
  const json event = json::parse(alert_event({*window, 0, emission, episode, {}, {"demo-vl"}, {}}, 8812,
                                             config::Clock::TimePoint(1h + 1840ms)));
  expect_valid(event);
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
    "rule": "person", "severity": "alert", "score": 0.75, "threshold": 0.5, "confirmations": 5,
    "start_time": 1785578400.48, "end_time": 1785578410.0, "end_reason": "camera_ended", "title": "Is there a person in the room?", "description": null,
    "window": {"start": "2026-08-01T10:00:08.500Z", "end": "2026-08-01T10:00:12.500Z", "frames": 8},
    "latency_ms": {"capture_to_alert": 1840}})");
  expected["episode"] = episode;
  expected["rule_version"] = rule_version(*owner, owner->rules[0]);
  expected["model"] = {{"id", "demo-vl"}, {"prompt_hash", data.at("model").at("prompt_hash")}};
  EXPECT_EQ(data, expected);
  EXPECT_TRUE(
      std::regex_match(data.at("model").at("prompt_hash").get<std::string>(), std::regex("[0-9a-f]{16}")));
}

TEST(Event, AnExplanationIsItsDescriptionWhateverItsBytes) {
  auto owner = camera("gate");
  owner->rules[0].explain = true;
  const json event = json::parse(alert_event({*window_of(owner, 4, {1}), 0, {}, "", "A man \xff", {"m"}, {}},
                                             1, config::Clock::TimePoint(1h)));
  EXPECT_EQ(event.at("data").at("description"), "A man \xEF\xBF\xBD");
}

TEST(Event, EvidenceIsToldWithItsState) {
  const WindowAnswersPtr window = window_of(camera("gate"), 4, {1});
  Emission emission;
  emission.confirmations = 1;
  const auto told = [&](const Evidence& evidence) {
    const json event =
        json::parse(alert_event({*window, 0, emission, episode_id(kStart, "e"), {}, {"m"}, evidence}, 1,
                                config::Clock::TimePoint(1h)));
    expect_valid(event);
    return event.at("data").value("evidence", json());
  };
  EXPECT_EQ(told({}), json());
  EXPECT_EQ(told({EvidenceState::pending, "a.jpg", "", ""}),
            json::parse(R"({"thumb": "a.jpg", "clip": null, "clip_state": "pending"})"));
  EXPECT_EQ(told({EvidenceState::ready, "a.jpg", "a.mp4", "", kStart, kStart - 5s, kStart + 5s, 7, "h264"}),
            json::parse(R"({"thumb": "a.jpg", "clip": "a.mp4", "clip_state": "ready",
              "thumb_time": "2026-08-01T10:00:00.000Z", "from": "2026-08-01T09:59:55.000Z",
              "to": "2026-08-01T10:00:05.000Z", "bytes": 7, "codec": "h264"})"));
  EXPECT_EQ(told({EvidenceState::failed, "", "", "no packet"}),
            json::parse(R"({"thumb": null, "clip": null, "clip_state": "failed", "reason": "no packet"})"));
}

TEST(Event, TheSchemaRefusesWhatIsNoEvent) {
  const WindowAnswersPtr window = window_of(camera("gate"), 4, {1});
  Emission emission;
  emission.confirmations = 1;
  const json event = json::parse(alert_event({*window, 0, emission, episode_id(kStart, "e"), {}, {"m"}, {}},
                                             1, config::Clock::TimePoint(1h)));
  ASSERT_TRUE(is_valid(event));
  for (const auto& [key, value] : event.items()) {
    json without = event;
    without.erase(key);
    EXPECT_FALSE(is_valid(without)) << key;
  }
  for (const auto& [key, value] : event.at("data").items()) {
    json without = event;
    without["data"].erase(key);
    EXPECT_FALSE(is_valid(without)) << key;
    json other = event;
    other["data"][key] = json::array({1});
    EXPECT_FALSE(is_valid(other)) << key;
  }
}

TEST(Event, EpisodesHaveIdsThatSortByTimeAndDiffer) {
  const std::string id = episode_id(kStart, "alert/north/gate/person/#0");
  EXPECT_TRUE(std::regex_match(id, std::regex("[0-7][0-9A-HJKMNP-TV-Z]{25}"))) << id;
  EXPECT_EQ(id, episode_id(kStart, "alert/north/gate/person/#0"));
  EXPECT_NE(id, episode_id(kStart, "alert/north/gate/person/#1"));
  EXPECT_NE(id, episode_id(kStart, "alert/north/gate/car/#0"));
  EXPECT_LT(id, episode_id(kStart + 1ms, "alert/north/gate/person/#0"));
  // The time of a ULID is its first ten characters: 1785578400000 ms.
  std::uint64_t time = 0;
  for (const char c : id.substr(0, 10))
    time = time * 32 + std::string("0123456789ABCDEFGHJKMNPQRSTVWXYZ").find(c);
  EXPECT_EQ(time, 1785578400000U);
}

TEST(Event, AVersionIsWhatARuleAsksAndWhenItTells) {
  const auto owner = camera();
  const std::string version = rule_version(*owner, owner->rules[0]);
  EXPECT_TRUE(std::regex_match(version, std::regex("[0-9a-f]{16}"))) << version;
  // The figure is that of every machine and every build: FNV-1a over the rule's canonical text, counted with
  // another program (python3).
  EXPECT_EQ(version, "aec73fd65517daad");
  std::set<std::string> versions = {version};
  const auto changed = [&](const auto& change) {
    config::CameraSettings other = *owner;
    change(other, other.rules[0]);
    return rule_version(other, other.rules[0]);
  };
  using Camera = config::CameraSettings;
  using Rule = config::RuleSettings;
  versions.insert(changed([](Camera&, Rule& rule) { rule.prompt += "?"; }));
  versions.insert(changed([](Camera&, Rule& rule) { rule.threshold = 0.51; }));
  versions.insert(changed([](Camera&, Rule& rule) { rule.confirm = {2, 3}; }));
  versions.insert(changed([](Camera&, Rule& rule) { rule.cooldown = 1s; }));
  versions.insert(changed([](Camera&, Rule& rule) { rule.max_per_hour = 7; }));
  versions.insert(changed([](Camera&, Rule& rule) { rule.explain = true; }));
  versions.insert(changed([](Camera&, Rule& rule) { rule.max_tokens = 7; }));
  versions.insert(changed([](Camera& each, Rule&) { each.stream.fps = 1; }));
  versions.insert(changed([](Camera& each, Rule&) { each.stream.window.length = 8s; }));
  versions.insert(changed([](Camera& each, Rule&) { each.stream.window.stride = 1s; }));
  EXPECT_EQ(versions.size(), 11U) << "each is another";
  EXPECT_EQ(version, changed([](Camera&, Rule& rule) { rule.severity = config::Severity::detection; }));
  EXPECT_EQ(version, changed([](Camera&, Rule& rule) { rule.topics = {"staff"}; }));
  EXPECT_EQ(version, changed([](Camera&, Rule& rule) { rule.snooze_until = kStart; }));
}

TEST(EventText, IsALineForPeople) {
  auto owner = camera("gate-7");
  Emission emission;
  emission.score = 0.912;
  const std::string body = alert_event({*window_of(owner, 12, {1}), 0, emission, "", {}, {"m"}, {}}, 1,
                                       config::Clock::TimePoint(1h));
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
  CameraPtr gate_ = camera("gate");
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
  config::CameraSettings settings = *gate_;
  for (const char* name : {"changed", "removed"}) {
    config::RuleSettings rule = settings.rules[0];
    rule.name = name;
    settings.rules.push_back(rule);
  }
  settings.rules[0].cooldown = 1h;
  const auto before = std::make_shared<const config::CameraSettings>(settings);
  // The first rule moves to the second place and gets another severity; "changed" asks something else.
  config::CameraSettings edited = settings;
  edited.rules = {settings.rules[1], settings.rules[0]};
  edited.rules[0].prompt = "Is there a dog?";
  edited.rules[1].severity = config::Severity::detection;
  edited.labels["zone"] = "dock";
  const auto after = std::make_shared<const config::CameraSettings>(edited);

  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(before, 2 * i, {0.9F, 0.9F, 0.9F}));
  EXPECT_THAT(phases(publisher_), ElementsAre("person new", "changed new", "removed new"));
  publisher_.messages.clear();
  alerts.observe(window_of(after, 6, {0.9F, 0.9F}));
  EXPECT_THAT(phases(publisher_), ElementsAre("changed end rule_changed", "removed end rule_changed"));
  for (const auto& message : publisher_.messages) {
    EXPECT_EQ(json::parse(message.body).at("data").at("title"), "Is there a person in the room?")
        << "what ended is what had begun";
  }
  publisher_.messages.clear();
  alerts.observe(window_of(after, 8, {0.9F, 0.1F}));
  EXPECT_THAT(phases(publisher_), ElementsAre("changed new")) << "it confirms anew";
  alerts.observe(window_of(after, 10, {0.9F, 0.1F}));
  alerts.end(after);
  const json last = json::parse(publisher_.messages.back().body).at("data");
  EXPECT_THAT(phases(publisher_),
              ElementsAre("changed new", "changed update", "person end over", "changed end camera_ended"));
  const json person = json::parse(publisher_.messages[2].body).at("data");
  EXPECT_EQ(person.at("severity"), "detection");
  EXPECT_EQ(person.at("confirmations"), 3);
  EXPECT_EQ(person.at("labels").at("zone"), "dock");
  EXPECT_EQ(last.at("title"), "Is there a dog?");
}

TEST_F(AlertDeskTest, AnotherTenantIsAnotherTopic) {
  AlertDesk alerts = desk();
  for (int i = 1; i <= 2; ++i) alerts.observe(window_of(gate_, 2 * i, {0.9F}));
  config::CameraSettings moved = *gate_;
  moved.labels["tenant"] = "south";
  const auto after = std::make_shared<const config::CameraSettings>(moved);
  for (int i = 3; i <= 4; ++i) alerts.observe(window_of(after, 2 * i, {0.9F}));
  EXPECT_THAT(published(), ElementsAre("alert/north/gate/person/ 1 new", "alert/north/gate/person/ 2 end",
                                       "alert/south/gate/person/ 1 new"));
}

TEST_F(AlertDeskTest, AnAlertGoesToItsTopicsTooWithTheirOwnSequences) {
  config::CameraSettings settings = *gate_;
  settings.rules[0].topics = {"staff", "fire"};
  const auto owner = std::make_shared<const config::CameraSettings>(settings);
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
  config::CameraSettings settings = *gate_;
  settings.rules[0].snooze_until = clock_.wall() + 1h;
  const auto snoozed = std::make_shared<const config::CameraSettings>(settings);
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
  config::CameraSettings settings = *gate_;
  settings.snooze_until = clock_.wall() + 1min;
  const auto snoozed = std::make_shared<const config::CameraSettings>(settings);
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
      auto owner = std::make_shared<config::CameraSettings>(*gate_);
      for (int change = 0; change < 3; ++change) {
        auto edited = std::make_shared<config::CameraSettings>(*owner);
        edited->rules[0].threshold = 0.5 + 0.1 * (change % 2);
        for (int i = 1; i <= 2; ++i) alerts.observe(window_of(edited, 2 * i, {0.9F}));
      }
      alerts.end(owner);
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

TEST_F(AlertDeskTest, ARestartEndsTheEpisodesThatWereLeftOpen) {
  const CameraPtr yard = camera("yard");
  {
    AlertDesk killed = desk();
    for (int i = 1; i <= 3; ++i) killed.observe(window_of(gate_, 2 * i, {0.9F}));
    for (int i = 1; i <= 2; ++i) killed.observe(window_of(yard, 2 * i, {0.9F}));
    killed.end(yard);
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
  EXPECT_EQ(end.at("time"), config::format_rfc3339(clock_.wall()));
  EXPECT_EQ(end.at("data").at("end_time"), 1785578406.0) << "the last window that is known of";
  EXPECT_EQ(end.at("data").at("end_reason"), "restart");
  // All else is as it was.
  for (const char* key : {"episode", "camera", "rule", "score", "start_time", "title", "window"}) {
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

TEST(Closing, LeavesAloneWhatIsNoOpenEpisode) {
  const auto closes = [](const std::string& body) {
    return closing_event({1, "t/", 1, kStart, body}, 2, kStart).has_value();
  };
  const std::string alert = R"({"type":"dev.vigil.alert.v1","id":"E-0","data":{"episode":"E","phase":)";
  EXPECT_TRUE(closes(alert + R"("new"}})"));
  EXPECT_TRUE(closes(alert + R"("update"}})"));
  for (
      const std::string& body :
      {alert + R"("end"}})", alert + "7}}", std::string("{"), std::string("[]"), std::string("7"),
       std::string(R"({"type":"dev.vigil.alert.v1"})"),
       std::string(R"({"type":"dev.vigil.alert.v1","data":[]})"),
       std::string(R"({"type":"dev.vigil.status.v1","id":"E-0","data":{"episode":"E","phase":"new"}})"),
       std::string(R"({"type":"dev.vigil.alert.v1","id":"E-x","data":{"episode":"E","phase":"new"}})"),
       std::string(R"({"type":"dev.vigil.alert.v1","id":"F-1","data":{"episode":"E","phase":"new"}})"),
       std::string(
           R"({"type":"dev.vigil.alert.v1","id":"E-99999999999999999999","data":{"episode":"E","phase":"new"}})")}) {
    EXPECT_FALSE(closes(body)) << body;
  }
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
  const std::string& identity() const override { return inner_->identity(); }
  std::uint64_t last_position() const override { return inner_->last_position(); }
  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    return inner_->position_of(topic, sequence);
  }
  Replay replay(const ReplayQuery& query) const override { return inner_->replay(query); }
  std::vector<OutboxEvent> last_events() const override {
    if (full) throw OutboxError("outbox: No space left on device");
    return inner_->last_events();
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
  alerts.finish();
  EXPECT_EQ(descriptions().size(), 3U);
}

}  // namespace
}  // namespace vigil::actors
