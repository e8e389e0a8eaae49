// CloudEvents of alerts and states, and what is read of them again.
#include "actors/alerts/event.h"

#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/alerts/alert_policy.h"
#include "actors/alerts/closing.h"
#include "actors/alerts/event_text.h"
#include "actors/messages/topic.h"
#include "base/timestamp.h"
#include "tests/actors/events.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::HasSubstr;

constexpr const char* kOutbox = "0123456789abcdef";

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
                                             base::Clock::TimePoint(1h + 1840ms)));
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
    "start_time": 1785578400.48, "end_time": 1785578410.0, "end_reason": "camera_ended", "title": "person at gate-7", "prompt": "Is there a person in the room?", "description": null,
    "window": {"start": "2026-08-01T10:00:08.500Z", "end": "2026-08-01T10:00:12.500Z", "frames": 8},
    "latency_ms": {"capture_to_alert": 1840}})");
  expected["episode"] = episode;
  expected["rule_version"] = rule_version(watch_of(*owner), owner->rules[0]);
  expected["model"] = {{"id", "demo-vl"}, {"prompt_hash", data.at("model").at("prompt_hash")}};
  EXPECT_EQ(data, expected);
  EXPECT_TRUE(
      std::regex_match(data.at("model").at("prompt_hash").get<std::string>(), std::regex("[0-9a-f]{16}")));
}

TEST(Event, AnExplanationIsItsDescriptionWhateverItsBytes) {
  auto owner = camera("gate");
  owner->rules[0].explain = true;
  const json event = json::parse(alert_event({*window_of(owner, 4, {1}), 0, {}, "", "A man \xff", {"m"}, {}},
                                             1, base::Clock::TimePoint(1h)));
  EXPECT_EQ(event.at("data").at("description"), "A man \xEF\xBF\xBD");
}

TEST(Event, ItsTitleReadsLikeNews) {
  auto owner = camera("gate-7");
  const auto told = [&](const std::string& title) {
    owner->rules[0].title = title;
    const json event = json::parse(
        alert_event({*window_of(owner, 4, {1}), 0, {}, "", {}, {"m"}, {}}, 1, base::Clock::TimePoint(1h)));
    EXPECT_EQ(event.at("data").at("prompt"), "Is there a person in the room?");
    return event.at("data").at("title").get<std::string>();
  };
  EXPECT_EQ(told(""), "person at gate-7");
  EXPECT_EQ(told("Jemand steht am Tor"), "Jemand steht am Tor");
  EXPECT_EQ(told("{rule} ({camera}), {rule}"), "person (gate-7), person");
  owner->rules[0].name = "x";
  EXPECT_EQ(told("{rule}{camera}{rule}"), "xgate-7x");
}

TEST(Event, AProcessTellsOfItself) {
  const json event =
      json::parse(process_event({"north-1", ProcessState::offline, "restart", ""}, {kOutbox, 8}, kStart));
  expect_valid(event);
  EXPECT_EQ(event.at("id"), "process-0123456789abcdef-8");
  EXPECT_EQ(event.at("source"), "/process/north-1");
  EXPECT_EQ(event.at("data"),
            json::parse(R"({"seq": 8, "process": "north-1", "state": "offline", "reason": "restart"})"));
  expect_valid(json::parse(
      process_event({"a", ProcessState::online, "outbox_replaced", "damaged"}, {kOutbox, 8}, kStart)));
}

TEST(Event, NoTwoOutboxesGiveAStatusTheSameId) {
  const auto id = [](const char* outbox, std::uint64_t sequence) {
    const json event = json::parse(status_event(*watch(), CameraState::up, "", {outbox, sequence}, kStart));
    expect_valid(event);
    return event.at("id").get<std::string>();
  };
  EXPECT_EQ(id(kOutbox, 1), "status-0123456789abcdef-1");
  EXPECT_NE(id(kOutbox, 1), id(kOutbox, 2));
  EXPECT_NE(id(kOutbox, 1), id("fedcba9876543210", 1));
}

TEST(Event, TellsWhichOwnerOfTheCameraItIsFromInAFleet) {
  const auto settings = std::make_shared<const WatchSettings>(watch_of(*camera("gate"), version_of(12, 3)));
  WindowAnswers window = *window_of(camera("gate"), 4, {1});
  const auto alert = [&] {
    const json event = json::parse(
        alert_event({window, 0, {}, episode_id(kStart, "e"), {}, {"m"}, {}}, 1, base::Clock::TimePoint(1h)));
    return event.at("data").value("fence", json());
  };
  EXPECT_EQ(alert(), json());
  window.watch = settings;
  EXPECT_EQ(alert(), 12);
  const json event = json::parse(status_event(*settings, CameraState::up, "", {kOutbox, 1}, kStart));
  expect_valid(event);
  EXPECT_EQ(event.at("data").at("fence"), 12);
}

TEST(Event, EvidenceIsToldWithItsState) {
  const WindowAnswersPtr window = window_of(camera("gate"), 4, {1});
  Emission emission;
  emission.confirmations = 1;
  const auto told = [&](const Evidence& evidence) {
    const json event = json::parse(alert_event(
        {*window, 0, emission, episode_id(kStart, "e"), {}, {"m"}, evidence}, 1, base::Clock::TimePoint(1h)));
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
                                             1, base::Clock::TimePoint(1h)));
  ASSERT_TRUE(is_valid(event));
  for (const auto& [key, value] : event.items()) {
    json without = event;
    without.erase(key);
    EXPECT_FALSE(is_valid(without)) << key;
  }
  for (const auto& [key, value] : event.at("data").items()) {
    json without = event;
    without["data"].erase(key);
    EXPECT_EQ(is_valid(without), key == "prompt") << key << ": events of before have none";
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
  const std::string version = rule_version(watch_of(*owner), owner->rules[0]);
  EXPECT_TRUE(std::regex_match(version, std::regex("[0-9a-f]{16}"))) << version;
  // The figure is that of every machine and every build: FNV-1a over the rule's canonical text, counted with
  // another program (python3).
  EXPECT_EQ(version, "aec73fd65517daad");
  std::set<std::string> versions = {version};
  const auto changed = [&](const auto& change) {
    config::CameraSettings other = *owner;
    change(other, other.rules[0]);
    return rule_version(watch_of(other), other.rules[0]);
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
  versions.insert(changed([](Camera& each, Rule&) { each.stream.window.memory = 10min; }));
  versions.insert(changed([](Camera& each, Rule&) { each.stream.window.memory = 5min; }));
  EXPECT_EQ(versions.size(), 13U) << "each is another";
  EXPECT_EQ(version, changed([](Camera&, Rule& rule) { rule.severity = config::Severity::detection; }));
  EXPECT_EQ(version, changed([](Camera&, Rule& rule) { rule.topics = {"staff"}; }));
  EXPECT_EQ(version, changed([](Camera&, Rule& rule) { rule.snooze_until = kStart; }));
}

TEST(Topics, AreWholeWithAllTheNamesOfTheirForm) {
  const auto settings = camera("gate");
  settings->rules[0].topics = {"staff"};
  for (const std::string& topic : alert_topics(watch_of(*settings), settings->rules[0]))
    EXPECT_TRUE(read_topic(topic)) << topic;
  EXPECT_TRUE(read_topic(status_topic(watch_of(*settings))));
  EXPECT_TRUE(read_topic(process_topic("north-1")));
  for (const char* beginning :
       {"", "/", "alert/", "alert/north/gate/", "alert/north/gate/person", "alert/north/gate/person/more/",
        "alert//gate/person/", "topic/staff/north/gate/", "topic/staff/north/gate/person",
        "topic/staff/north/gate/person/more/", "status/north/", "status/north/gate",
        "status/north/gate/more/", "process/", "process/a", "process/a/b/", "process//",
        "alerts/north/gate/person/", "/alert/north/gate/"})
    EXPECT_FALSE(read_topic(beginning)) << beginning;
}

TEST(EventText, IsALineForPeople) {
  auto owner = camera("gate-7");
  Emission emission;
  emission.score = 0.912;
  const std::string body = alert_event({*window_of(owner, 12, {1}), 0, emission, "", {}, {"m"}, {}}, 1,
                                       base::Clock::TimePoint(1h));
  EXPECT_EQ(event_text(body),
            "2026-08-01 10:00:12  gate-7          person        new     0.91  person at gate-7");
  EXPECT_EQ(event_text(status_event(watch_of(*owner), CameraState::down, "no route", {kOutbox, 3}, kStart)),
            "2026-08-01 10:00:00  gate-7          down  no route");
  EXPECT_EQ(event_text(process_event({"north-1", ProcessState::online, "start", ""}, {kOutbox, 3}, kStart)),
            "2026-08-01 10:00:00  north-1         online  start");
  EXPECT_EQ(event_text(process_event({"north-1", ProcessState::online, "clock", "it\x1bstepped"},
                                     {kOutbox, 3}, kStart)),
            "2026-08-01 10:00:00  north-1         online  clock  it?stepped");
}

TEST(EventText, AnEventIsOneLineOfJson) {
  const std::string body = alert_event({*window_of(camera("gate-7"), 12, {1}), 0, {}, "", {}, {"m"}, {}}, 1,
                                       base::Clock::TimePoint(1h));
  EXPECT_EQ(event_line(body), body) << "byte for byte";
  EXPECT_EQ(event_line("{\n  \"b\": 1,\r\n\t\"a\": \"\\n\"\n}"), R"({"b":1,"a":"\n"})");
  EXPECT_EQ(event_line("{\nno event"), "{?no event");
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

TEST(Closing, AfterALossItsIdIsNoneThatMayHaveBeenLost) {
  const std::string body =
      R"({"type":"dev.vigil.alert.v1","id":"E-4","data":{"episode":"E","phase":"update"}})";
  const auto id_of = [](const std::string& event) { return json::parse(event).at("id").get<std::string>(); };
  const auto marked = closing_event({1, "t/", 1, kStart, body}, 2, kStart, "6f1c");
  ASSERT_TRUE(marked);
  EXPECT_EQ(id_of(*marked), "E-5-6f1c");
  EXPECT_EQ(event_name(*marked), (EventName{"E", 5})) << "it is read again as what it is";
  EXPECT_EQ(id_of(closing_event({1, "t/", 1, kStart, body}, 2, kStart).value()), "E-5");
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

}  // namespace
}  // namespace vigil::actors
