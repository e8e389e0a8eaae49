// The shells under the deterministic scheduler: nothing happens but by `run`, and time passes only when it is
// told to.
#include "tests/actors/pipeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "bench/window_log.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// 2 s a stride at 2 frames a second: a window for every four frames.
const std::vector<int> kEmptyRoom(16, 10);
const std::vector<int> kPersonPassing = {10, 10, 10, 10, 90, 90, 90, 90, 90, 90,
                                         90, 90, 10, 10, 10, 10, 10, 10, 10, 10};

TEST_F(PipelineTest, AFileGoesAllTheWayThroughAndTheRunEnds) {
  sources_.add("/clips/gate.mp4", frames(kPersonPassing));
  start({camera()});
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/person end"));
  EXPECT_THAT(told("status/"), ElementsAre("gate connecting", "gate up", "gate down"));
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 5);
  EXPECT_EQ(metric("vigil_frames_total{camera=\"gate\"}"), 20);
  EXPECT_EQ(metric("vigil_window_latency_seconds_count"), 5);
  EXPECT_EQ(metric("vigil_patches_encoded_total"), 10);
  EXPECT_EQ(metric("vigil_frames_dropped_total"), 0);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->complete);
  EXPECT_THAT(report->failures, IsEmpty());
  EXPECT_THAT(outbox_->unacknowledged(10), IsEmpty());
}

TEST_F(PipelineTest, TellsWhatRequestsTookAndWhatRulesShared) {
  const auto gate = camera();
  for (const char* name : {"car", "fire"}) {
    gate->rules.push_back(gate->rules.front());
    gate->rules.back().name = name;
  }
  gate->rules.front().explain = true;
  gate->rules.front().max_tokens = 16;
  language_.passes.on_ask = [&](std::size_t) { clock_.advance(200ms); };
  double most_running = 0;
  language_.passes.on_generate = [&](std::size_t) {
    most_running = std::max(most_running, metric("vigil_requests_running{kind=\"explanation\"}"));
    clock_.advance(30ms);
  };
  sources_.add("/clips/gate.mp4", frames(kPersonPassing));
  start({gate});
  EXPECT_EQ(most_running, 1);
  EXPECT_EQ(metric("vigil_requests_running"), 0);
  EXPECT_EQ(metric("vigil_requests_waiting"), 0);
  // Of three prompts of a window, two did not compute what they share: what stands before its patches, and
  // these, of which the five windows have 2, 4, 4, 4 and 4.
  EXPECT_EQ(metric("vigil_prefix_cache_queries_total"), metric("vigil_prompt_tokens_total"));
  EXPECT_EQ(metric("vigil_prefix_cache_hits_total"),
            2.0 * static_cast<double>(5 * language_.prompts.before() + 18));
  EXPECT_EQ(metric("vigil_time_to_first_token_seconds_count"), 5);
  EXPECT_GE(metric("vigil_time_to_first_token_seconds_sum"), 5 * 0.2 - 1e-9);
  // A pass for each token behind an answer's first one, and one that ends it.
  const auto words = static_cast<double>(language_.passes.words(90).size());
  EXPECT_EQ(metric("vigil_request_decode_time_seconds_count"), 1);
  EXPECT_EQ(metric("vigil_generation_tokens_total"), words);
  EXPECT_EQ(metric("vigil_inter_token_latency_seconds_count"), words - 1);
  EXPECT_GE(metric("vigil_inter_token_latency_seconds_sum"), 0.03 * words - 1e-9);
}

TEST_F(PipelineTest, CamerasAreBatchedInBothPasses) {
  std::vector<CameraPtr> cameras;
  for (const char* each : {"a", "b", "c", "d", "e", "f"}) {
    const std::string name = each;
    sources_.add("/clips/" + name, frames(kEmptyRoom));
    cameras.push_back(camera(name, config::Pace::fast, "/clips/" + name));
  }
  start(cameras);
  EXPECT_GT(*std::max_element(encoder_.batches.begin(), encoder_.batches.end()), 4U);
  EXPECT_LE(*std::max_element(encoder_.batches.begin(), encoder_.batches.end()), 8U);
  EXPECT_GT(*std::max_element(language_.passes.asked.begin(), language_.passes.asked.end()), 2U);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 6 * 4);
  EXPECT_TRUE(outcome().has_value());
}

TEST_F(PipelineTest, AWindowThatCannotBeAnsweredIsCountedAndTheOthersGoOn) {
  std::vector<int> values = kPersonPassing;
  values[2] = values[3] = 254;  // the last patch of the first window
  sources_.add("/clips/gate.mp4", frames(values));
  sources_.add("/clips/yard.mp4", frames(kPersonPassing));
  start({camera(), camera("yard", config::Pace::fast, "/clips/yard.mp4")});
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"failed\"}"), 1);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 9);
  EXPECT_THAT(told("alert/"), AllOf(Contains("gate/person new"), Contains("yard/person new")));
  EXPECT_THAT(log_.str(), HasSubstr("stream: camera gate: no answer about a window: a window without room"));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, PatchesThatCannotBeEncodedAreCountedAndTheOthersGoOn) {
  // More of them than there is credit: what fails must give its credit back.
  std::vector<int> values(80, 255);
  values.insert(values.end(), kPersonPassing.begin(), kPersonPassing.end());
  sources_.add("/clips/gate.mp4", frames(values));
  start({camera()});
  EXPECT_EQ(metric("vigil_frames_dropped_total{camera=\"gate\",reason=\"encode_failed\"}"), 80);
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/person end"));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, OnceAFileThatIsMissingEndsInAFailureAndTheOthersPlay) {
  sources_.add("/clips/gate.mp4", frames(kPersonPassing));
  start({camera(), camera("lost", config::Pace::fast, "/clips/lost.mp4")});
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->complete);
  EXPECT_THAT(report->failures, ElementsAre("camera lost: /clips/lost.mp4: Connection refused"));
  EXPECT_THAT(told("alert/"), Contains("gate/person end"));
  EXPECT_EQ(metric("vigil_camera_up{camera=\"lost\"}"), 0);
}

TEST_F(PipelineTest, ACameraThatCannotBeReachedIsTriedForEverAndSeenAsDown) {
  const std::string url = "rtsp://10.0.0.1/live";
  auto settings = camera("gate", config::Pace::realtime, url);
  settings->stream.reconnect = {1s, 2s};
  start({settings}, /*once=*/false);
  pass(20s);
  EXPECT_GE(metric("vigil_camera_reconnects_total{camera=\"gate\"}"), 10);
  EXPECT_EQ(metric("vigil_camera_state{camera=\"gate\",state=\"down\"}"), 1);
  EXPECT_EQ(metric("vigil_camera_state{camera=\"gate\",state=\"up\"}"), 0);
  EXPECT_EQ(metric("vigil_camera_up{camera=\"gate\"}"), 0);
  EXPECT_FALSE(outcome().has_value());
  sources_.add(url, frames({10, 10, 10, 10}));
  pass(3s);
  EXPECT_THAT(told("status/"), Contains("gate up"));
}

TEST_F(PipelineTest, PacedCamerasAreAnsweredAsTimePasses) {
  sources_.add("/clips/gate.mp4", frames(kPersonPassing));
  start({camera("gate", config::Pace::realtime)});
  EXPECT_EQ(metric("vigil_camera_up{camera=\"gate\"}"), 1);
  pass(1400ms);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 0);
  pass(200ms);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 1)
      << "the frame at 1.5 s ends the first stride";
  EXPECT_NEAR(metric("vigil_camera_fps{camera=\"gate\"}"), 2, 0.01);
  pass(10s);
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/person end"));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, UnderOverloadEveryFrameIsEitherSeenOrCountedAsDropped) {
  // Three cameras make three patches a second; a pass of the vision tower takes two seconds.
  encoder_.on_encode = [this] { clock_.advance(2s); };
  std::vector<CameraPtr> cameras;
  for (const char* name : {"a", "b", "c"}) {
    sources_.add(name, frames(std::vector<int>(240, 90)));
    cameras.push_back(camera(name, config::Pace::realtime, name));
  }
  start(cameras);
  pass(130s);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_TRUE(outcome()->complete);
  double dropped = 0;
  for (const char* name : {"a", "b", "c"}) {
    const std::string label = std::string("{camera=\"") + name;
    EXPECT_EQ(metric("vigil_frames_total" + label + "\"}"), 240);
    const double lost = metric("vigil_frames_dropped_total" + label + "\",reason=\"no_credit\"}");
    EXPECT_GT(lost, 0) << name;
    EXPECT_LT(lost, 200) << name << " starves";
    dropped += lost;
  }
  EXPECT_EQ(dropped + static_cast<double>(encoder_.frames), 720);
  EXPECT_EQ(metric("vigil_frames_dropped_total{reason=\"queue_full\"}"), 0);
  EXPECT_THAT(told("alert/"),
              AllOf(Contains("a/person new"), Contains("b/person new"), Contains("c/person new")));
}

/// Eleven cameras of which the machine can serve about half, for five minutes.
class OverloadTest : public PipelineTest {
 protected:
  /// Of the windows of the camera that was served least, over the median, within any minute.
  std::optional<double> fairness() {
    observer_.window = [this](const WindowAnswers& window, const WorkSpan& asked) {
      log_windows_.add(window, asked);
    };
    std::vector<CameraPtr> cameras;
    std::vector<std::string> names;
    for (char name = 'a'; name <= 'k'; ++name) {
      names.emplace_back(1, name);
      sources_.add(names.back(), frames(std::vector<int>(100'000, 10)));
      cameras.push_back(camera(names.back(), config::Pace::realtime, names.back()));
    }
    start(cameras, /*once=*/false);
    const auto begin = clock_.now();
    while (clock_.now() - begin < 300s) pass(1s);
    const auto windows = log_windows_.between(begin, clock_.now());
    // A window every 2 s each, and not much less than half of them are answered.
    EXPECT_LT(windows.size(), 11U * 150 * 3 / 4) << "no overload";
    EXPECT_GT(windows.size(), 11U * 150 / 4);
    for (const bench::AnsweredWindow& window : windows) worst_ = std::max(worst_, window.latency);
    return bench::least_share(windows, names, begin, clock_.now(), 60s);
  }

  bench::WindowLog log_windows_;
  double worst_ = 0;
};

TEST_F(OverloadTest, NoCameraStarvesWhereVisionIsTooSlow) {
  encoder_.on_encode = [this] { clock_.advance(std::chrono::milliseconds(160 * encoder_.batches.back())); };
  EXPECT_GE(fairness().value(), 0.5);
  // Two strides of each camera wait for vision at most, 44 patches that take 7 s, beside what is under way.
  EXPECT_LT(worst_, 12) << "latency stays bounded";
}

TEST_F(OverloadTest, NoCameraStarvesWherePrefillIsTooSlow) {
  language_.passes.on_ask = [this](std::size_t windows) {
    clock_.advance(std::chrono::milliseconds(360 * windows));
  };
  EXPECT_GE(fairness().value(), 0.5);
  EXPECT_LT(worst_, 8) << "latency stays bounded";
}

TEST_F(PipelineTest, EveryAnsweredWindowIsObservedWithItsTimes) {
  sources_.add("/clips/gate.mp4", frames(kEmptyRoom));
  encoder_.on_encode = [this] { clock_.advance(20ms); };
  language_.passes.on_ask = [this](std::size_t) { clock_.advance(30ms); };
  std::map<std::string, int> pieces;
  observer_.piece = [&](const char* stage, const WorkSpan&) { ++pieces[stage]; };
  int seen = 0;
  observer_.window = [&](const WindowAnswers& window, const WorkSpan& asked) {
    ++seen;
    EXPECT_EQ(window.watch->name, "gate");
    EXPECT_EQ(window.encoded.end - window.encoded.begin, 20ms);
    EXPECT_EQ(asked.end - asked.begin, 30ms);
    EXPECT_LE(window.captured.steady, window.encoded.begin);
    EXPECT_LE(window.encoded.end, asked.begin);
  };
  start({camera()});
  EXPECT_EQ(seen, 4);
  EXPECT_EQ(pieces["vision"], static_cast<int>(encoder_.batches.size()));
  EXPECT_EQ(pieces["language"], 4);
  EXPECT_TRUE(outcome().has_value());
}

TEST_F(PipelineTest, StoppingDrainsWhatIsUnderWayAndEndsEpisodes) {
  std::vector<int> always(10'000, 90);
  sources_.add("/clips/gate.mp4", frames(always));
  start({camera("gate", config::Pace::realtime)}, /*once=*/false);
  pass(6s);
  EXPECT_THAT(told("alert/"), Contains("gate/person new"));
  EXPECT_FALSE(outcome().has_value());
  const double answered = metric("vigil_windows_total{outcome=\"answered\"}");
  caf::anon_send(supervisor_, stop_atom_v);
  settle();
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), answered + 1)
      << "what was begun is answered";
  EXPECT_EQ(told("alert/").back(), "gate/person end");
  EXPECT_EQ(told("status/").back(), "gate down");
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->complete);
}

TEST_F(PipelineTest, StoppingACameraThatIsBeingRetriedEndsTheRun) {
  start({camera("gate", config::Pace::realtime, "rtsp://10.0.0.1/live")}, /*once=*/false);
  pass(3s);
  caf::anon_send(supervisor_, stop_atom_v);
  pass(1s);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->complete);
}

/// Throws what no source should, `failures` times; then plays.
ReaderFactory broken(FakeSources& sources, int& failures) {
  return [&, inner = sources.factory()](const std::string& url, const media::ReadOptions& options) {
    if (failures-- > 0) throw std::bad_alloc();
    return inner(url, options);
  };
}

TEST_F(PipelineTest, ACameraActorThatFailsIsRestarted) {
  sources_.add("/clips/gate.mp4", frames(kPersonPassing));
  int failures = 3;
  start({camera()}, /*once=*/true, broken(sources_, failures));
  EXPECT_EQ(metric("vigil_camera_up{camera=\"gate\"}"), 0);
  EXPECT_THAT(log_.str(), HasSubstr("camera: failed: std::bad_alloc"));
  pass(20s);
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/person end"));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, AStageThatFailsEndsTheRunWithItsName) {
  // In a way that no pass survives.
  language_.passes.on_ask = [](std::size_t) { throw 7; };
  sources_.add("/clips/gate.mp4", frames(kPersonPassing));
  start({camera()});
  pass(1s);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->complete);
  ASSERT_EQ(report->failures.size(), 1U);
  EXPECT_THAT(report->failures[0], HasSubstr("the executor actor failed"));
}

TEST_F(PipelineTest, EventsThatAreRefusedAreOfferedAgain) {
  publisher_.refuses = true;
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(100, 90)));
  start({camera("gate", config::Pace::realtime)}, /*once=*/false);
  pass(6s);
  EXPECT_THAT(publisher_.messages, IsEmpty());
  EXPECT_EQ(metric("vigil_outbox_pending"), 4) << "connecting, up, new, update";
  publisher_.refuses = false;
  pass(200ms);
  EXPECT_THAT(told(), Contains("gate/person new"));
  EXPECT_EQ(metric("vigil_outbox_pending"), 0);
}

std::shared_ptr<OwnCamera> explaining(const std::string& name, const std::string& url) {
  auto settings = camera(name, config::Pace::fast, url);
  settings->rules[0].explain = true;
  settings->rules[0].max_tokens = 16;
  return settings;
}

TEST_F(PipelineTest, OnlyWhatIsToldIsExplained) {
  sources_.add("/clips/gate.mp4", frames(kPersonPassing));
  start({explaining("gate", "/clips/gate.mp4")});
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/person end"));
  const auto of = [&](const std::string& phase) {
    for (const auto& message : publisher_.messages)
      if (const json data = json::parse(message.body).at("data"); data.value("phase", "") == phase)
        return data.at("description");
    return json("no such event");
  };
  EXPECT_EQ(of("new"), "Yes, a 90.");
  EXPECT_EQ(of("end"), nullptr);
  EXPECT_EQ(metric("vigil_request_decode_time_seconds_count"), 1) << "five windows, one alert";
  EXPECT_EQ(metric("vigil_generation_tokens_total"), static_cast<double>(language_.passes.words(90).size()));
  EXPECT_EQ(metric("vigil_kv_cache_usage_ratio{device=\"cpu\",tier=\"host\"}"), 0)
      << "nothing is left in the cache";
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, AnExplanationThatFailsLosesNoAlert) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(8, 99)));
  start({explaining("gate", "/clips/gate.mp4")});
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/person end"));
  EXPECT_THAT(log_.str(), HasSubstr("alerts: camera gate: no explanation for rule person: no words"));
  EXPECT_EQ(metric("vigil_kv_cache_usage_ratio{device=\"cpu\",tier=\"host\"}"), 0);
  EXPECT_TRUE(outcome()->complete);
}

/// A device whose cache a test chooses.
class SmallCacheTest : public PipelineTest {
 protected:
  std::vector<DeviceSlot> devices() override { return {slot(encoder_, *small_)}; }
  std::optional<ScriptedLanguage> small_;
};

TEST_F(SmallCacheTest, WindowsWaitForRoomInTheCache) {
  // Room for two windows; four cameras are due at once.
  std::vector<CameraPtr> cameras;
  for (const char* each : {"a", "b", "c", "d"}) {
    sources_.add(each, frames(kPersonPassing));
    cameras.push_back(explaining(each, each));
  }
  small_.emplace(2 * language_.pages_of(4, cameras[0]->rules) + 1);
  start(cameras);
  EXPECT_LE(*std::max_element(small_->passes.asked.begin(), small_->passes.asked.end()), 2U);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 4 * 5);
  EXPECT_THAT(told("alert/"), AllOf(Contains("a/person new"), Contains("b/person new"),
                                    Contains("c/person new"), Contains("d/person end")));
  EXPECT_EQ(metric("vigil_kv_cache_usage_ratio{device=\"cpu\",tier=\"host\"}"), 0);
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, AReloadAddsAndRemovesCamerasWhileTheOthersGoOn) {
  const std::vector<int> always(200, 90);
  for (const char* name : {"gate", "yard", "dock"}) sources_.add(name, frames(always));
  const CameraPtr gate = camera("gate", config::Pace::realtime, "gate");
  start({gate, camera("yard", config::Pace::realtime, "yard")}, /*once=*/false);
  pass(6s);
  EXPECT_THAT(told("alert/"), AllOf(Contains("gate/person new"), Contains("yard/person new")));
  caf::anon_send(supervisor_, reload_atom_v,
                 CameraList{{gate, camera("dock", config::Pace::realtime, "dock")}});
  pass(6s);
  EXPECT_THAT(told("alert/north/yard/"), Contains("yard/person end"));
  EXPECT_EQ(told("status/north/yard/").back(), "yard down");
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("yard"))) << "nobody is alarmed for ever";
  EXPECT_EQ(metric("vigil_camera_up{camera=\"dock\"}"), 1);
  EXPECT_THAT(told("alert/north/dock/"), Contains("dock/person new"));
  EXPECT_THAT(told("alert/north/gate/"), Not(Contains("gate/person end")));
  EXPECT_EQ(sources_.opened(), 3) << "the gate's stream went on";
  EXPECT_THAT(log_.str(), Not(HasSubstr("[warning] camera yard")));
  // It may come back under its name.
  sources_.add("yard", frames(always));
  caf::anon_send(supervisor_, reload_atom_v,
                 CameraList{{gate, camera("yard", config::Pace::realtime, "yard")}});
  pass(6s);
  EXPECT_EQ(told("alert/north/yard/").back(), "yard/person update");
  EXPECT_EQ(told("alert/north/dock/").back(), "dock/person end");
}

TEST_F(PipelineTest, AReloadOfRulesKeepsTheStreamItsWindowsAndTheEpisodesOfOtherRules) {
  auto before = camera("gate", config::Pace::realtime, "gate");
  before->rules[0].cooldown = 1h;
  before->rules.push_back(before->rules[0]);
  before->rules[1].name = "old";
  sources_.add("gate", frames(std::vector<int>(400, 90)));
  start({before}, /*once=*/false);
  pass(6s);
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/old new"));
  auto after = std::make_shared<OwnCamera>(*before);
  after->rules[1].name = "young";
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{after}});
  pass(6s);
  EXPECT_THAT(told("alert/"),
              ElementsAre("gate/person new", "gate/old new", "gate/old end", "gate/young new"));
  EXPECT_EQ(sources_.opened(), 1);
  EXPECT_THAT(told("status/"), ElementsAre("gate connecting", "gate up"));
  const json window = json::parse(publisher_.messages.back().body).at("data").at("window");
  EXPECT_EQ(window.at("frames"), 8) << "a whole window, half of it from before";
}

TEST_F(PipelineTest, AReloadOfTheStreamRestartsThatCamera) {
  sources_.add("gate", frames(std::vector<int>(400, 90)));
  start({camera("gate", config::Pace::realtime, "gate")}, /*once=*/false);
  pass(6s);
  auto after = camera("gate", config::Pace::realtime, "gate");
  after->stream.window = {2s, 1s};
  sources_.add("gate", frames(std::vector<int>(400, 90)));
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{after}});
  settle();
  EXPECT_EQ(told("alert/").back(), "gate/person end");
  EXPECT_THAT(told("status/"),
              ElementsAre("gate connecting", "gate up", "gate down", "gate connecting", "gate up"));
  EXPECT_FALSE(outcome().has_value()) << "the run goes on without a camera for a moment";
  pass(5s);
  EXPECT_EQ(told("alert/").back(), "gate/person update");
  const json window = json::parse(publisher_.messages.back().body).at("data").at("window");
  EXPECT_EQ(window.at("frames"), 4) << "2 s";
  EXPECT_EQ(sources_.opened(), 2);
}

TEST_F(PipelineTest, AReloadThatComesAfterTheEndStartsNothing) {
  for (const char* name : {"gate", "yard"}) sources_.add(name, frames(kPersonPassing));
  start({camera("gate", config::Pace::realtime, "gate")}, /*once=*/false);
  // Until two actors have quit: the camera's, whose file has ended, and the router, as the run is over.
  const std::size_t left = system_.registry().running() - 2;
  const auto over = [&] { return system_.registry().running() <= left; };
  for (int i = 0; i < 400 && !over(); ++i) {
    clock_.advance(50ms);
    scheduler().advance_time(50ms);
    while (!over() && scheduler().try_run_once()) {
    }
  }
  ASSERT_EQ(system_.registry().running(), left) << "the others are still finishing";
  caf::anon_send(supervisor_, reload_atom_v,
                 CameraList{{camera("gate", config::Pace::realtime, "gate"),
                             camera("yard", config::Pace::realtime, "yard")}});
  settle();
  ASSERT_TRUE(outcome().has_value()) << "it waits for a camera that nothing takes frames from";
  EXPECT_TRUE(outcome()->complete);
  EXPECT_EQ(sources_.opened(), 1);
}

TEST_F(PipelineTest, AReloadReachesACameraThatIsBeingRetried) {
  const std::string bad = "rtsp://10.0.0.1/live";
  start({camera("gate", config::Pace::realtime, bad)}, /*once=*/false);
  pass(3s);
  sources_.add("rtsp://10.0.0.2/live", frames(std::vector<int>(400, 90)));
  caf::anon_send(supervisor_, reload_atom_v,
                 CameraList{{camera("gate", config::Pace::realtime, "rtsp://10.0.0.2/live")}});
  pass(2s);
  EXPECT_THAT(told("status/"), Contains("gate up"));
}

}  // namespace
}  // namespace vigil::actors
