// The state of the process: what probes are told, and the table that people see.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/status/status_board.h"
#include "actors/status/status_text.h"
#include "actors/status/work_beat.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::HasSubstr;

class StatusTest : public ::testing::Test {
 protected:
  json state() const { return json::parse(board_.json(metrics_)); }

  ManualClock clock_;
  Metrics metrics_;
  StatusBoard board_{clock_, 10s};
};

TEST_F(StatusTest, ProbesFollowTheLifeOfTheProcess) {
  clock_.advance(300s);
  EXPECT_TRUE(board_.live()) << "a large model takes long to load";
  EXPECT_FALSE(board_.started());
  EXPECT_FALSE(board_.ready());
  board_.phase(RunPhase::running);
  EXPECT_TRUE(board_.live() && board_.started() && board_.ready());
  clock_.advance(10s);
  EXPECT_TRUE(board_.live());
  clock_.advance(1s);
  EXPECT_FALSE(board_.live()) << "the supervisor is silent";
  EXPECT_FALSE(board_.ready());
  board_.beat();
  EXPECT_TRUE(board_.live() && board_.ready());
  board_.outbox("outbox: No space left on device");
  EXPECT_TRUE(board_.live()) << "a restart makes no room on a disk";
  EXPECT_FALSE(board_.ready());
  board_.outbox("");
  EXPECT_TRUE(board_.ready());
  board_.phase(RunPhase::draining);
  EXPECT_TRUE(board_.live());
  EXPECT_FALSE(board_.ready());
  EXPECT_EQ(state().at("phase"), "draining");
}

TEST_F(StatusTest, TellsWhatCamerasAndActorsDo) {
  board_.phase(RunPhase::running);
  metrics_.camera_added(*watch("gate"));
  metrics_.camera_added(*watch("yard"));
  board_.camera(*watch("gate"), CameraState::up, "");
  board_.camera(*watch("yard"), CameraState::down, "Connection refused");
  clock_.advance(90s);
  board_.beat();
  metrics_.camera_fps("gate", 2);
  for (int i = 0; i < 7; ++i) metrics_.frame_captured("gate");
  metrics_.frames_dropped("gate", "no_credit", 4);
  metrics_.frames_dropped("gate", "late", 1);
  metrics_.camera_reconnected("yard");
  metrics_.queue_depth("vision", 3);
  metrics_.windows("answered", 12);
  metrics_.windows("overtaken", 2);
  metrics_.alert("alert/north/gate/person/", "alert");
  metrics_.kv_usage("host", "cpu", 0.25);
  metrics_.outbox_pending(2);
  for (int i = 0; i < 19; ++i) metrics_.window_latency(0.3);
  metrics_.window_latency(6);
  const json status = state();
  EXPECT_EQ(status.at("uptime_seconds"), 90);
  EXPECT_EQ(status.at("cameras"), json::parse(R"([
    {"camera": "gate", "tenant": "north", "state": "up", "reason": "", "since_seconds": 90.0, "fps": 2.0, "frames": 7.0,
     "dropped": 5.0, "reconnects": 0.0},
    {"camera": "yard", "tenant": "north", "state": "down", "reason": "Connection refused", "since_seconds": 90.0, "fps": 0.0,
     "frames": 0.0, "dropped": 0.0, "reconnects": 1.0}])"));
  EXPECT_EQ(status.at("queues"), json({{"vision", 3.0}}));
  EXPECT_EQ(status.at("windows"), json({{"answered", 12.0},
                                        {"overtaken", 2.0},
                                        {"failed", 0.0},
                                        {"out_of_memory", 0.0},
                                        {"device_lost", 0.0}}));
  EXPECT_EQ(status.at("alerts"), 1);
  EXPECT_EQ(status.at("outbox"), json({{"failure", ""}, {"in_memory", false}, {"pending", 2.0}}));
  EXPECT_EQ(status.at("configuration").at("current"), true);
  EXPECT_EQ(status.at("kv_usage"), 0.25);
  const json& latency = status.at("window_latency_seconds");
  EXPECT_EQ(latency.at("count"), 20);
  EXPECT_NEAR(latency.at("mean").get<double>(), (19 * 0.3 + 6) / 20, 1e-9);
  // Within its bucket of 0.25 to 0.5 s, which holds 19 of 20.
  EXPECT_NEAR(latency.at("p50").get<double>(), 0.25 + 0.25 * 10 / 19, 1e-9);
  EXPECT_NEAR(latency.at("p95").get<double>(), 0.5, 1e-9);
  board_.forget("yard");
  EXPECT_EQ(state().at("cameras").size(), 1U);
}

TEST_F(StatusTest, WhatOnlyTheLogSaidIsSeen) {
  board_.phase(RunPhase::running);
  EXPECT_THAT(status_text(board_.json(metrics_)).value(),
              Not(AnyOf(HasSubstr("memory and not"), HasSubstr("refused"))));
  metrics_.outbox_in_memory(true);
  metrics_.config_reloaded(false);
  EXPECT_EQ(state().at("outbox").at("in_memory"), true);
  EXPECT_EQ(state().at("configuration").at("current"), false);
  EXPECT_THAT(
      status_text(board_.json(metrics_)).value(),
      AllOf(HasSubstr("kept in memory and not on the disk"), HasSubstr("configuration's file was refused")));
  metrics_.outbox_in_memory(false);
  metrics_.config_reloaded(true);
  EXPECT_EQ(state().at("configuration").at("current"), true);
  EXPECT_THAT(status_text(board_.json(metrics_)).value(), Not(HasSubstr("log says why")));
}

TEST_F(StatusTest, WhoIsSilentForTooLongIsNamed) {
  const auto late = [&] { return state().at("late"); };
  board_.phase(RunPhase::running);
  board_.beat("alerts", 30s);
  board_.beat("cuda:0 vision", 10min);
  board_.beat("evidence", 2min, /*vital=*/false);
  clock_.advance(31s);
  board_.beat();
  EXPECT_FALSE(board_.live()) << "the supervisor is alive, but there will be no alerts";
  EXPECT_FALSE(board_.ready());
  EXPECT_EQ(late(), json({"alerts"}));
  EXPECT_THAT(status_text(board_.json(metrics_)).value_or(""),
              HasSubstr("not heard of for too long: alerts\n"));
  board_.beat("alerts", 30s);
  EXPECT_TRUE(board_.live());
  EXPECT_EQ(late(), json::array());
  clock_.advance(121s);
  board_.beat();
  board_.beat("alerts", 30s);
  EXPECT_TRUE(board_.live()) << "alerts come without clips";
  EXPECT_EQ(late(), json({"evidence"}));
  clock_.advance(480s);
  board_.beat();
  board_.beat("alerts", 30s);
  EXPECT_EQ(late(), json({"cuda:0 vision", "evidence"}));
  EXPECT_FALSE(board_.live());
  board_.silent("cuda:0 vision");
  EXPECT_TRUE(board_.live()) << "its device was given up";
  board_.silent("nobody");
}

TEST(WorkBeat, PatienceFollowsWhatPassesTake) {
  WorkPatience patience;
  EXPECT_EQ(patience.of(1), WorkPatience::kMost) << "the first pass may take as long as any";
  patience.took(0.5, 1);
  EXPECT_EQ(patience.of(1), 60s) << "never less";
  EXPECT_EQ(patience.of(8), 80s) << "twenty times what 8 would have taken";
  patience.took(0.8, 8);
  EXPECT_EQ(patience.of(8), 60s) << "there was one of that size";
  EXPECT_EQ(patience.of(64), 128s) << "twenty times the slowest, in proportion";
  EXPECT_EQ(patience.of(1'000'000), WorkPatience::kMost);
  patience.took(1e12, 0);
  EXPECT_EQ(patience.of(1), WorkPatience::kMost);
}

TEST_F(StatusTest, WhoComputesMayTakeAsLongAsAPassCan) {
  board_.phase(RunPhase::running);
  WorkBeat beat(board_, "cpu vision");
  const auto late_after = [&](base::Duration span) {
    clock_.advance(span);
    const std::vector<std::string> late = board_.late();
    return std::find(late.begin(), late.end(), "cpu vision") != late.end();
  };
  EXPECT_FALSE(late_after(30s));
  EXPECT_TRUE(late_after(1s)) << "an idle one speaks every second";
  beat.begins(WorkBeat::Work::patches, 8);
  EXPECT_FALSE(late_after(10min));
  beat.took(WorkBeat::Work::patches, 1, 8);
  beat.begins(WorkBeat::Work::patches, 8);
  EXPECT_FALSE(late_after(60s));
  EXPECT_TRUE(late_after(1s));
  beat.begins(WorkBeat::Work::rows, 1024);
  EXPECT_FALSE(late_after(10min)) << "how long rows take, nobody knows yet";
}

TEST_F(StatusTest, ARemarkIsTheReasonOfACameraThatIsUp) {
  const auto reason = [&] { return state().at("cameras").at(0).at("reason"); };
  board_.remark("gate", "too long");
  EXPECT_TRUE(state().at("cameras").empty()) << "its state tells that there is a camera";
  board_.camera(*watch("gate"), CameraState::up, "delivers again");
  EXPECT_EQ(reason(), "too long");
  board_.camera(*watch("gate"), CameraState::down, "Connection refused");
  EXPECT_EQ(reason(), "Connection refused");
  board_.camera(*watch("gate"), CameraState::up, "");
  EXPECT_EQ(reason(), "too long");
  board_.remark("gate", "");
  EXPECT_EQ(reason(), "");
  board_.remark("gate", "too long");
  board_.forget("gate");
  board_.camera(*watch("gate"), CameraState::up, "");
  EXPECT_EQ(reason(), "") << "another camera of that name";
}

TEST_F(StatusTest, WithoutADeviceThatIsUpTheProcessIsNotReady) {
  board_.phase(RunPhase::running);
  EXPECT_TRUE(board_.ready()) << "no device is known yet";
  board_.device("cuda:0", DeviceState::up, "");
  board_.device("cuda:1", DeviceState::lost, "unspecified launch failure");
  EXPECT_TRUE(board_.ready());
  board_.device("cuda:0", DeviceState::restarting, "no \x1b[2Jweights");
  EXPECT_FALSE(board_.ready());
  EXPECT_TRUE(board_.live()) << "it is being mended";
  metrics_.device_failed("cuda:1");
  clock_.advance(5s);
  board_.beat();
  const json devices = state().at("devices");
  EXPECT_EQ(devices, json::parse(R"([
    {"device": "cuda:0", "state": "restarting", "reason": "no \u001b[2Jweights", "since_seconds": 5.0, "failures": 0.0},
    {"device": "cuda:1", "state": "lost", "reason": "unspecified launch failure", "since_seconds": 5.0, "failures": 1.0}])"));
  const std::string text = status_text(board_.json(metrics_)).value_or("");
  EXPECT_THAT(text, HasSubstr("cuda:0 is restarting for 5 s: no ?[2Jweights\n"));
  EXPECT_THAT(text, HasSubstr("cuda:1 is lost for 5 s: unspecified launch failure\n"));
  board_.device("cuda:0", DeviceState::up, "");
  EXPECT_TRUE(board_.ready());
  EXPECT_EQ(status_text(board_.json(metrics_)).value_or("").find("cuda:0"), std::string::npos);
}

TEST_F(StatusTest, ANodeIsReadyWhenItsFleetHasLetItIn) {
  board_.phase(RunPhase::running);
  ASSERT_TRUE(board_.ready()) << "a process that is no node waits for nobody";
  FleetStanding standing{.fleet = "city", .node = "c1", .roles = {"camera"}};
  board_.fleet(standing);
  EXPECT_FALSE(board_.ready());
  EXPECT_FALSE(board_.report().ready);
  EXPECT_TRUE(board_.live() && board_.started());
  standing.is_ready = true;
  board_.fleet(standing);
  EXPECT_TRUE(board_.ready());
  board_.outbox("No space left on device");
  EXPECT_FALSE(board_.ready()) << "that is not all";
}

TEST_F(StatusTest, PeopleSeeWhatANodeIs) {
  FleetStanding standing{.fleet = "city",
                         .node = "c1",
                         .roles = {"camera"},
                         .state = "ready",
                         .membership = "cut off",
                         .registry_remark = "it was set back"};
  board_.fleet(standing);
  EXPECT_THAT(*status_text(board_.json(metrics_)),
              HasSubstr("node c1 of fleet city: cut off, ready; nobody plans; the registry does not answer\n"
                        "of the registry: it was set back\n"));
  board_.gateway("No \x1b[2Jspace");
  board_.events("gateway g2 does not answer");
  EXPECT_THAT(*status_text(board_.json(metrics_)), HasSubstr("of the registry: it was set back\n"
                                                             "its gateway does not serve: No ?[2Jspace\n"
                                                             "events wait: gateway g2 does not answer\n"));
  standing.membership = "member";
  standing.planner = "c\x1b[2J2";
  standing.registry_answers = true;
  board_.fleet(standing);
  EXPECT_THAT(*status_text(board_.json(metrics_)),
              HasSubstr("node c1 of fleet city: member, ready; node c?[2J2 plans\n"));
  EXPECT_THAT(*status_text(board_.json(metrics_)), Not(HasSubstr("it waits")));
}

TEST_F(StatusTest, PeopleSeeThatANodeWaitsForTheFleetsConfiguration) {
  FleetStanding standing{.fleet = "city", .node = "c1", .roles = {"camera"}, .membership = "member"};
  board_.fleet(standing);
  const std::string waits = "it waits: it does not run by the fleet's configuration (vigil config status)\n";
  EXPECT_THAT(*status_text(board_.json(metrics_)), HasSubstr(": member, joining; "));
  EXPECT_THAT(*status_text(board_.json(metrics_)), HasSubstr(waits));
  standing.state = "draining";
  board_.fleet(standing);
  EXPECT_THAT(*status_text(board_.json(metrics_)), Not(HasSubstr(waits)));
  // One that is no member yet is not let in for other reasons.
  standing.state = standing.membership = "joining";
  board_.fleet(standing);
  EXPECT_THAT(*status_text(board_.json(metrics_)), Not(HasSubstr(waits)));
}

TEST_F(StatusTest, TellsOfThoseCamerasThatAreAskedFor) {
  board_.camera(*watch("gate"), CameraState::down, "refused");
  board_.camera(*watch("yard"), CameraState::up, "");
  board_.remark("yard", "few frames");
  clock_.advance(3s);
  const auto told = board_.cameras({"gate", "yard", "nowhere"});
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told.at("gate").state, CameraState::down);
  EXPECT_EQ(told.at("gate").reason, "refused");
  EXPECT_EQ(told.at("gate").age, 3s);
  EXPECT_EQ(told.at("yard").reason, "few frames");
}

TEST_F(StatusTest, FiguresOfSeveralDevicesAreOne) {
  metrics_.queue_depth("vision", 3, "cuda:0");
  metrics_.queue_depth("vision", 4, "cuda:1");
  metrics_.kv_usage("gpu", "cuda:0", 0.5);
  metrics_.kv_usage("gpu", "cuda:1", 0.1);
  EXPECT_EQ(state().at("queues"), json({{"vision", 7.0}}));
  EXPECT_NEAR(state().at("kv_usage").get<double>(), 0.3, 1e-12);
}

TEST_F(StatusTest, PeopleSeeATable) {
  board_.phase(RunPhase::running);
  board_.camera(*watch("gate"), CameraState::up, "");
  board_.camera(*watch("loading-dock"), CameraState::down, "rtsp://10.0.0.1/live: \x1b[2JConnection refused");
  board_.outbox("outbox: No space left on device");
  metrics_.window_latency(0.3);
  const auto text = status_text(board_.json(metrics_));
  ASSERT_TRUE(text.has_value());
  EXPECT_THAT(*text, HasSubstr("running for 0 s, not ready\n"));
  EXPECT_THAT(*text, HasSubstr("the outbox fails: outbox: No space left on device\n"));
  EXPECT_THAT(*text, HasSubstr("CAMERA        TENANT  STATE"));
  EXPECT_THAT(*text, HasSubstr("gate          north   up "));
  EXPECT_THAT(*text, HasSubstr("loading-dock  north   down"));
  EXPECT_THAT(*text, HasSubstr("?[2JConnection refused"));
  EXPECT_EQ(text->find('\x1b'), std::string::npos);
}

TEST_F(StatusTest, WithoutAnyWindowThereIsNoLatency) {
  EXPECT_EQ(state().at("window_latency_seconds").at("p95"), nullptr);
  EXPECT_THAT(status_text(board_.json(metrics_)).value_or(""), HasSubstr("half within -"));
}

TEST(StatusText, WhatIsNoStatusHasNoTable) {
  for (const char* text : {"", "nonsense", "[]", "{\"phase\":\"running\"}", "<html>"})
    EXPECT_EQ(status_text(text), std::nullopt) << text;
}

}  // namespace
}  // namespace vigil::actors
