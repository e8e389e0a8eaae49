// What is told in Prometheus' words: what is there before anything happened, what goes with a camera, and
// what Prometheus' own tools say of it.
#include "actors/status/metrics.h"

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "actors/status/erasure_series.h"
#include "actors/status/fleet_series.h"
#include "actors/status/gateway_series.h"
#include "actors/status/maker_series.h"
#include "actors/status/memory_series.h"
#include "actors/status/status_board.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

/// Something of everything, with names that need care.
void count_everything(Metrics& metrics) {
  metrics.build("0.1.0", "abc123");
  metrics.process({.cpu_seconds = 1.5,
                   .resident_bytes = 1,
                   .virtual_bytes = 2,
                   .open_fds = 3,
                   .max_fds = 4,
                   .start_seconds = 5});
  metrics.camera_added(*watch("gate"));
  metrics.camera_state("gate", CameraState::up);
  metrics.camera_fps("gate", 2);
  metrics.camera_recording("gate", true);
  metrics.camera_reconnected("gate");
  metrics.camera_damaged_packets("gate", 3);
  metrics.frame_captured("gate", base::Clock::WallTime(1785578400s));
  metrics.frames_dropped("gate", "a \"new\"\n\\reason", 2);
  metrics.camera_budget("gate", 0.9, 12);
  metrics.camera_pruned_less("gate", 1);
  metrics.left_stream(stream::Leaving::evicted, 7);
  metrics.queue_depth("vision", 1, "cuda:0");
  metrics.requests(RequestKind::window, "cuda:0", 2, 3);
  metrics.requests(RequestKind::explanation, "cuda:0", 0, 1);
  metrics.encoded(0.1, 2, {.kept = 3, .pruned = 4, .not_computed = 5});
  metrics.window_tokens({.visual = 10, .kept = 7, .refreshed = 2});
  metrics.prefilled(0.1, 300, 180);
  metrics.first_token(0.2);
  metrics.generated(0.3, 7, 6);
  metrics.kv_usage("gpu", "cuda:0", 0.5);
  metrics.window_memory("cuda:0", {.tokens = 1, .host_bytes = 2, .device_bytes = 3});
  metrics.device_state("cuda:0", DeviceState::up);
  metrics.device_failed("cuda:0");
  metrics.device_behind("cuda:0", true);
  metrics.windows("answered", 1);
  metrics.window_latency(1);
  metrics.alert("alert/north/gate/person/", "alert");
  metrics.alert_held("cooldown");
  metrics.config_reloaded(true);
  metrics.messages_dropped("events", "slow_subscriber", 1);
  metrics.evidence_bytes(1);
  metrics.evidence_clip("ready");
  metrics.outbox_failed();
  metrics.outbox_pending(1);
  metrics.outbox_in_memory(true);
  metrics.outbox_noticed("outbox_behind");
  metrics.outbox_noticed("clock");
  metrics.topic_connections("events", 1);
  metrics.connections_refused("events", "allowance", 1);
}

TEST(Metrics, CountersAreThereBeforeAnythingIsCounted) {
  Metrics metrics;
  metrics.camera_added(*watch("gate"));
  metrics.device_state("cuda:0", DeviceState::up);
  const std::string page = metrics.text();
  for (const char* series : {"vigil_windows_total{outcome=\"device_lost\"} 0",
                             "vigil_alerts_held_total{reason=\"rate_cap\"} 0",
                             "vigil_config_reloads_total{result=\"refused\"} 0",
                             "vigil_evidence_clips_total{state=\"failed\"} 0",
                             "vigil_messages_dropped_total{reason=\"slow_subscriber\",socket=\"events\"} 0",
                             "vigil_messages_dropped_total{reason=\"backlog_full\",socket=\"outbox\"} 0",
                             "vigil_device_failures_total{device=\"cuda:0\"} 0",
                             "vigil_outbox_failures_total 0",
                             "vigil_frames_total{camera=\"gate\",tenant=\"north\"} 0",
                             "vigil_frames_dropped_total{camera=\"gate\",reason=\"late\",tenant=\"north\"} 0",
                             "vigil_camera_reconnects_total{camera=\"gate\",tenant=\"north\"} 0",
                             "vigil_camera_damaged_packets_total{camera=\"gate\",tenant=\"north\"} 0",
                             "vigil_camera_forgotten_tokens_total{camera=\"gate\",tenant=\"north\"} 0",
                             "vigil_kv_left_tokens_total{reason=\"slid\"} 0",
                             "vigil_kv_left_tokens_total{reason=\"forgotten\"} 0",
                             "vigil_kv_left_tokens_total{reason=\"evicted\"} 0",
                             "vigil_kv_left_tokens_total{reason=\"closed\"} 0",
                             "vigil_alerts_total{severity=\"alert\",topic=\"alert/north/gate/person/\"} 0",
                             "vigil_prefix_cache_hits_total 0",
                             "vigil_time_to_first_token_seconds_count 0",
                             "vigil_cameras{state=\"up\"} 0"})
    EXPECT_THAT(page, HasSubstr(std::string(series) + '\n'));
  // A family of which nothing was counted is left out of the page as a whole. Who names the reasons of
  // refused connections declares them (tests/services/topic_publisher_test.cpp).
  Metrics counted;
  count_everything(counted);
  for (const auto& family : counted.registry()->Collect())
    EXPECT_TRUE(family.type != prometheus::MetricType::Counter ||
                family.name == "vigil_connections_refused_total" ||
                page.find("# TYPE " + family.name + ' ') != std::string::npos)
        << family.name;
}

TEST(Metrics, WhatWindowsRememberIsOfEachDeviceAndOfWhereItLies) {
  Metrics metrics;
  metrics.window_memory("cuda:0", {.tokens = 7, .host_bytes = 57344, .device_bytes = 512, .room = 65536});
  metrics.window_memory("cuda:1", {.tokens = 2});
  const std::string page = metrics.text();
  for (const char* series :
       {"vigil_window_memory_tokens{device=\"cuda:0\"} 7", "vigil_window_memory_tokens{device=\"cuda:1\"} 2",
        "vigil_window_memory_bytes{device=\"cuda:0\",where=\"host\"} 57344",
        "vigil_window_memory_bytes{device=\"cuda:0\",where=\"device\"} 512",
        "vigil_window_memory_bytes{device=\"cuda:1\",where=\"host\"} 0",
        "vigil_window_memory_room_bytes{device=\"cuda:0\"} 65536",
        "vigil_window_memory_room_bytes{device=\"cuda:1\"} 0"})
    EXPECT_THAT(page, HasSubstr(std::string(series) + '\n'));
  metrics.window_memory("cuda:0", {});
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_window_memory_tokens{device=\"cuda:0\"} 0\n")) << "forgotten";
}

TEST(Metrics, ACamerasSeriesGoWithItAndComeBackAtZero) {
  Metrics metrics;
  const std::string before = metrics.text();
  metrics.camera_added(*watch("gate"));
  metrics.camera_state("gate", CameraState::up);
  metrics.camera_fps("gate", 2);
  metrics.camera_recording("gate", true);
  metrics.frame_captured("gate", base::Clock::WallTime(1785578400s));
  metrics.frames_dropped("gate", "another", 2);
  metrics.alert("alert/north/gate/person/", "alert");
  EXPECT_THAT(
      metrics.text(),
      HasSubstr("vigil_camera_last_frame_timestamp_seconds{camera=\"gate\",tenant=\"north\"} 1785578400\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_cameras{state=\"up\"} 1\n"));
  EXPECT_EQ(metrics.cameras().at("gate").frames, 1U);
  metrics.camera_removed("gate");
  EXPECT_EQ(metrics.text(), before) << "nothing is left of it";
  metrics.frame_captured("gate");
  metrics.frames_dropped("gate", "device_lost", 2);
  metrics.camera_state("gate", CameraState::up);
  metrics.camera_fps("gate", 2);
  metrics.camera_removed("gate");
  EXPECT_EQ(metrics.text(), before) << "what comes late does not bring it back";
  EXPECT_TRUE(metrics.cameras().empty());
  metrics.camera_added(*watch("gate"));
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_frames_total{camera=\"gate\",tenant=\"north\"} 0\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("topic=\"alert/north/gate/person/\"} 0\n"));
}

TEST(Metrics, ACamerasBudgetIsThereOnceItHasOne) {
  Metrics metrics;
  metrics.camera_added(*watch("gate"));
  const std::string usage = "vigil_camera_kv_budget_usage_ratio{camera=\"gate\",tenant=\"north\"} ";
  metrics.camera_budget("gate", std::nullopt, 0);
  EXPECT_THAT(metrics.text(), Not(HasSubstr(usage)));
  metrics.camera_budget("gate", 0.5, 0);
  metrics.camera_budget("gate", 1, 12);
  metrics.camera_budget("gate", 0.75, 3);
  EXPECT_THAT(metrics.text(), HasSubstr(usage + "0.75\n"));
  EXPECT_THAT(metrics.text(),
              HasSubstr("vigil_camera_forgotten_tokens_total{camera=\"gate\",tenant=\"north\"} 15\n"));
  metrics.camera_budget("gate", std::nullopt, 0);
  EXPECT_THAT(metrics.text(), HasSubstr(usage + "0\n")) << "it has none any more";
  metrics.camera_budget("yard", 0.5, 5);
  EXPECT_THAT(metrics.text(), Not(HasSubstr("yard")));
  metrics.camera_removed("gate");
  EXPECT_THAT(metrics.text(), Not(HasSubstr("gate")));
}

TEST(Metrics, WhatAuditsSayOfARule) {
  Metrics metrics;
  WatchSettings gate = *watch("gate");
  gate.pruning.audit = 0;
  metrics.camera_added(gate);
  EXPECT_THAT(metrics.text(), Not(HasSubstr("vigil_camera_pruned_less_steps{"))) << "nothing is audited";
  gate.pruning.audit = 3;
  metrics.camera_added(gate);
  const std::string none = "vigil_camera_pruned_less_steps{camera=\"gate\",tenant=\"north\"} 0\n";
  EXPECT_THAT(metrics.text(), HasSubstr(none)) << "from the beginning";
  const std::string of = "{agrees=\"false\",camera=\"gate\",rule=\"person\",tenant=\"north\"} ";
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_audited_answers_total" + of + "0\n")) << "from the beginning";
  metrics.audits(2, 1);
  metrics.audited("gate", "person", false, 0.5);
  metrics.audited("gate", "person", true, 0.25);
  metrics.audited("gate", "unknown", true, 1);
  metrics.audited("yard", "person", true, 1);
  metrics.camera_pruned_less("gate", 2);
  const std::string page = metrics.text();
  EXPECT_THAT(page, HasSubstr("vigil_audits_total{outcome=\"answered\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("vigil_audits_total{outcome=\"given_up\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("vigil_audited_answers_total" + of + "1\n"));
  EXPECT_THAT(page, HasSubstr("vigil_audited_difference_total{camera=\"gate\",rule=\"person\","
                              "tenant=\"north\"} 0.75\n"));
  EXPECT_THAT(page, HasSubstr("vigil_camera_pruned_less_steps{camera=\"gate\",tenant=\"north\"} 2\n"));
  EXPECT_THAT(page, Not(HasSubstr("unknown")));
  EXPECT_THAT(page, Not(HasSubstr("yard")));
  metrics.camera_removed("gate");
  EXPECT_THAT(metrics.text(), Not(HasSubstr("gate")));

  Metrics together(Metrics::Options{.cameras = false});
  together.camera_added(*watch("gate"));
  together.audited("gate", "person", true, 0.25);
  EXPECT_THAT(together.text(), HasSubstr("vigil_audited_answers_total{agrees=\"true\"} 1\n"));
  EXPECT_THAT(together.text(), HasSubstr("vigil_audited_difference_total 0.25\n"));
}

TEST(Metrics, AnotherTenantOrRuleOfACamera) {
  Metrics metrics;
  const auto gate = camera("gate");
  metrics.camera_added(*watched(*gate));
  metrics.camera_state("gate", CameraState::up);
  metrics.frame_captured("gate");
  metrics.alert("alert/north/gate/person/", "alert");
  metrics.camera_added(*watched(*gate));
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_frames_total{camera=\"gate\",tenant=\"north\"} 1\n"))
      << "as before";
  gate->rules.front().name = "car";
  gate->rules.front().severity = config::Severity::detection;
  metrics.camera_added(*watched(*gate));
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_frames_total{camera=\"gate\",tenant=\"north\"} 1\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("{severity=\"detection\",topic=\"alert/north/gate/car/\"} 0\n"));
  EXPECT_THAT(metrics.text(), Not(HasSubstr("person")));
  gate->labels["tenant"] = "south";
  metrics.camera_added(*watched(*gate));
  const std::string page = metrics.text();
  EXPECT_THAT(page, Not(HasSubstr("north")));
  EXPECT_THAT(page, HasSubstr("vigil_camera_up{camera=\"gate\",tenant=\"south\"} 1\n"))
      << "it has not changed";
  EXPECT_THAT(page, HasSubstr("vigil_frames_total{camera=\"gate\",tenant=\"south\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("topic=\"alert/south/gate/car/\"} 0\n"));
}

TEST(Metrics, WhatAGatewaySaysOfEventsIsThereFromTheStart) {
  Metrics metrics;
  EXPECT_THAT(metrics.text(), Not(HasSubstr("vigil_gateway_"))) << "this one is none";
  GatewaySeries gateway(metrics);
  for (const char* outcome : {"stored", "committed", "duplicate", "refused"})
    EXPECT_THAT(metrics.text(),
                HasSubstr("vigil_gateway_events_total{outcome=\"" + std::string(outcome) + "\"} 0\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_gateway_behind_events 0\n"));
  gateway.add({.stored = 4, .committed = 3, .duplicate = 2, .refused = 1});
  gateway.add({.stored = 1});
  gateway.behind(7);
  gateway.behind(6);
  const std::string page = metrics.text();
  EXPECT_THAT(page, HasSubstr("vigil_gateway_events_total{outcome=\"stored\"} 5\n"));
  EXPECT_THAT(page, HasSubstr("vigil_gateway_events_total{outcome=\"committed\"} 3\n"));
  EXPECT_THAT(page, HasSubstr("vigil_gateway_events_total{outcome=\"duplicate\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("vigil_gateway_events_total{outcome=\"refused\"} 1\n"));
  EXPECT_THAT(page, HasSubstr("vigil_gateway_behind_events 6\n"));
}

TEST(Metrics, WithoutSeriesOfCamerasThereAreThoseOfAllTogether) {
  Metrics metrics(Metrics::Options{.cameras = false});
  for (const char* name : {"gate", "yard"}) {
    metrics.camera_added(*watch(name));
    metrics.camera_state(name, CameraState::up);
    metrics.camera_fps(name, 2);
    metrics.camera_recording(name, true);
    metrics.camera_reconnected(name);
    metrics.frame_captured(name, base::Clock::WallTime(1s));
    metrics.frames_dropped(name, "late", 2);
    metrics.camera_budget(name, 0.5, 4);
    metrics.alert(std::string("alert/north/") + name + "/person/", "alert");
  }
  metrics.camera_removed("yard");
  const std::string page = metrics.text();
  for (const char* word : {"gate", "yard", "north", "person"}) EXPECT_THAT(page, Not(HasSubstr(word)));
  EXPECT_THAT(page, HasSubstr("vigil_frames_total 2\n")) << "what was counted stays";
  EXPECT_THAT(page, HasSubstr("vigil_frames_dropped_total{reason=\"late\"} 4\n"));
  EXPECT_THAT(page, HasSubstr("vigil_alerts_total{severity=\"alert\"} 2\n"));
  EXPECT_THAT(page, HasSubstr("vigil_alerts_total{severity=\"detection\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("vigil_camera_reconnects_total 2\n"));
  EXPECT_THAT(page, HasSubstr("vigil_camera_forgotten_tokens_total 8\n"));
  EXPECT_THAT(page, Not(HasSubstr("vigil_camera_kv_budget_usage_ratio{")));
  EXPECT_THAT(page, HasSubstr("vigil_cameras{state=\"up\"} 1\n"));
  EXPECT_EQ(metrics.cameras().at("gate").dropped, 2U) << "/status tells of each";
}

TEST(Metrics, ProcessorTimeGoesOn) {
  Metrics metrics;
  metrics.process({.cpu_seconds = 1.5});
  metrics.process({.cpu_seconds = 2.25});
  EXPECT_THAT(metrics.text(), HasSubstr("process_cpu_seconds_total 2.25\n"));
}

TEST(Metrics, TokensOfAnExplanationHaveItsMeanInterval) {
  Metrics metrics;
  // One of 6 tokens, and one that ended with its first.
  metrics.generated(0.5, 6, 5);
  metrics.generated(0, 1, 0);
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_inter_token_latency_seconds_count 5\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_inter_token_latency_seconds_bucket{le=\"0.1\"} 5\n"));
  EXPECT_THAT(metrics.text(), HasSubstr("vigil_inter_token_latency_seconds_bucket{le=\"0.075\"} 0\n"));
}

TEST(Metrics, PromtoolHasNothingToSay) {
  if (std::system("command -v promtool >/dev/null") != 0)
    GTEST_SKIP() << "no promtool (Debian's package prometheus)";
  for (const bool cameras : {true, false}) {
    Metrics metrics(Metrics::Options{.cameras = cameras});
    count_everything(metrics);
    std::string file = (std::filesystem::temp_directory_path() / "vigil-metrics-XXXXXX").string();
    ::close(::mkstemp(file.data()));
    std::ofstream(file) << metrics.text();
    std::FILE* tool = ::popen(("promtool check metrics <" + file + " 2>&1").c_str(), "r");
    std::string said;
    std::array<char, 256> bytes{};
    while (const std::size_t size = std::fread(bytes.data(), 1, bytes.size(), tool))
      said.append(bytes.data(), size);
    EXPECT_EQ(::pclose(tool), 0);
    EXPECT_EQ(said, "");
    std::filesystem::remove(file);
  }
}

TEST(Metrics, ThePageNamesEachWithItsLabels) {
  std::ifstream file(VIGIL_SOURCE_DIR "/docs/metrics.md");
  // | `name` | labels | ...
  const std::regex row("\\| `((?:vigil|process)_[a-z_]+)` \\| ?([^|]*?) ?\\|.*");
  std::map<std::string, std::string> documented;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    EXPECT_TRUE(documented.emplace(match[1], match[2]).second) << line;
  }
  Metrics metrics;
  count_everything(metrics);
  FleetSeries fleet(metrics);
  fleet.tell({.configuration = "1f"});
  LinkFigures link;
  link.failed_dials["silence"] = 1;
  fleet.links({{"n2", link}});
  const GatewaySeries gateway(metrics);
  const MakerSeries maker(metrics);
  const MemorySeries memory(metrics);
  const ErasureSeries erasures(metrics);
  std::map<std::string, std::string> told;
  for (const auto& family : metrics.registry()->Collect()) {
    std::set<std::string> labels;
    for (const auto& metric : family.metric)
      for (const auto& label : metric.label) labels.insert('`' + label.name + '`');
    std::string& text = told[family.name];
    for (const std::string& label : labels) text += (text.empty() ? "" : ", ") + label;
  }
  EXPECT_EQ(documented, told);
}

TEST(Metrics, QuestionsAboutThePastAreOneFamilyWhoeverCountsThem) {
  Metrics metrics;
  MemorySeries memory(metrics);
  AskSeries socket(metrics);
  for (const char* const outcome : {"answered", "unavailable", "bad_request", "busy", "too_late"})
    EXPECT_THAT(metrics.text(),
                HasSubstr("vigil_past_questions_total{outcome=\"" + std::string(outcome) + "\"} 0\n"));
  socket.busy(2);
  socket.too_late(1);
  memory.question(PastOutcome::answer, 0.5);
  // It is told to the socket, which counts it.
  memory.question(PastOutcome::too_late, 60);
  const std::string page = metrics.text();
  for (const char* const series :
       {"{outcome=\"answered\"} 1", "{outcome=\"busy\"} 2", "{outcome=\"too_late\"} 1"})
    EXPECT_THAT(page, HasSubstr("vigil_past_questions_total" + std::string(series) + '\n'));
  EXPECT_THAT(page, HasSubstr("vigil_past_question_seconds_count 1\n"));
  const std::string type = "# TYPE vigil_past_questions_total ";
  EXPECT_EQ(page.find(type), page.rfind(type));
}

TEST(Status, IsAsItsSchemaSays) {
  std::ifstream file(VIGIL_SOURCE_DIR "/docs/status.schema.json");
  const json schema = json::parse(file);
  valijson::Schema compiled;
  valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), compiled);
  const auto faults = [&](const json& status) {
    valijson::ValidationResults results;
    valijson::Validator().validate(compiled, valijson::adapters::NlohmannJsonAdapter(status), &results);
    std::string text;
    for (valijson::ValidationResults::Error error; results.popError(error);) text += error.description + '\n';
    return text;
  };
  const ManualClock clock;
  StatusBoard board(clock);
  Metrics metrics;
  EXPECT_EQ(faults(json::parse(board.json(metrics))), "") << "before anything happened";
  count_everything(metrics);
  board.phase(RunPhase::running);
  board.camera(*watch("gate"), CameraState::stalled, "silence");
  board.camera(*watch("y\xff"
                      "ard"),
               CameraState::up, "");
  board.device("cuda:0", DeviceState::restarting, "no weights");
  board.outbox("No space left on device");
  board.fleet({.fleet = "city", .node = "c1", .roles = {"camera", "gateway"}, .membership = "cut off"});
  json status = json::parse(board.json(metrics));
  EXPECT_EQ(faults(status), "");
  status["cameras"][0]["passwords"] = "hunter2";
  EXPECT_NE(faults(status), "") << "whoever adds something says so in the schema";
}

}  // namespace
}  // namespace vigil::actors
