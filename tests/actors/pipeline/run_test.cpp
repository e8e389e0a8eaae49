// The whole thread on real threads, sockets and clocks: scripted cameras and engine at the one end, a
// subscriber and a scraper at the other.
#include <array>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <latch>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <stop_token>
#include <thread>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/null_sink.h>
#include <unistd.h>

#include "actors/messages/types.h"
#include "actors/supervisor/supervisor_actor.h"
#include "cluster/http/http.h"
#include "cluster/http/http_client.h"
#include "cluster/process/clock.h"
#include "cluster/process/system.h"
#include "cluster/topics/topics.h"
#include "services/topic_publisher.h"
#include "tests/actors/fakes.h"
#include "tests/actors/scripted_language.h"
#include "tests/temporary_folder.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::HasSubstr;

/// Checks a page against the text exposition format: each sample belongs to a family that was announced with
/// its help and type, histograms have their parts, and counters end in `_total`.
void expect_exposition_format(const std::string& page) {
  static const std::regex help("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex type("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)");
  static const std::regex sample(
      R"re(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[a-zA-Z_][a-zA-Z0-9_]*="[^"\\]*"(,[a-zA-Z_][a-zA-Z0-9_]*="[^"\\]*")*\})? ([-+]?(\d+(\.\d+)?(e[-+]?\d+)?|Inf)|Nan))re");
  std::map<std::string, std::string> types;
  std::set<std::string> helped;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_match(line, match, help)) {
      EXPECT_TRUE(helped.insert(match[1]).second) << "announced twice: " << line;
    } else if (std::regex_match(line, match, type)) {
      EXPECT_TRUE(helped.contains(match[1])) << line;
      EXPECT_TRUE(types.emplace(match[1], match[2]).second) << line;
      if (match[2] == "counter") {
        EXPECT_TRUE(match[1].str().ends_with("_total")) << line;
      }
    } else if (std::regex_match(line, match, sample)) {
      std::string family = match[1];
      for (const char* part : {"_bucket", "_sum", "_count"}) {
        const std::string_view suffix(part);
        if (!types.contains(family) && family.ends_with(suffix)) family.resize(family.size() - suffix.size());
      }
      EXPECT_TRUE(types.contains(family)) << line;
      EXPECT_TRUE(family.starts_with("vigil_") || family.starts_with("process_")) << line;
    } else {
      ADD_FAILURE() << "no line of the format: " << line;
    }
  }
  EXPECT_GT(types.size(), 10U);
}

TEST(Run, FramesInAnEventOnATopicAndFiguresOnAPage) {
  const TemporaryFolder folder;
  const cluster::SystemClock clock;
  FakeSources sources;
  std::vector<int> values(200, 10);
  std::fill(values.begin() + 60, values.begin() + 120, 90);
  sources.add("/clips/gate.mp4", frames(values));
  sources.add("/clips/yard.mp4", frames(std::vector<int>(200, 20)));
  FakeEncoder encoder;
  ScriptedLanguage language;
  Metrics metrics;
  StatusBoard board(clock);
  config::RetentionClock ages(clock);
  const auto outbox = open_rocksdb_outbox(folder / "outbox", ages);
  services::TopicPublisher publisher({.endpoint = "tcp://127.0.0.1:0"}, {.endpoint = "tcp://127.0.0.1:0"},
                                     *outbox);
  const cluster::HttpServer server(
      {.listen = "127.0.0.1:0", .routes = {{.path = "/metrics", .handler = [&](const cluster::HttpRequest&) {
                                              return cluster::HttpResponse{.body = metrics.text()};
                                            }}}});
  spdlog::logger logger("test", std::make_shared<spdlog::sinks::null_sink_mt>());
  cluster::TopicSubscriber subscriber({.endpoint = publisher.endpoint(), .prefixes = {"alert/north/gate/"}});
  cluster::TopicSubscriber states({.endpoint = publisher.endpoint(), .prefixes = {"status/"}});

  DrainReport report;
  {
    cluster::SystemConfig config;
    know_messages(config);
    caf::actor_system system(config);
    const auto handle = system.spawn(
        supervisor, PipelineDeps{.cameras = {camera(), camera("yard", config::Pace::fast, "/clips/yard.mp4"),
                                             camera("lost", config::Pace::realtime, "rtsp://10.0.0.1/live")},
                                 .once = true,
                                 .grace = 10s,
                                 .retention = 24h,
                                 .model_id = "fake",
                                 .open = sources.factory(),
                                 .shape = {2, {}},
                                 .devices = {slot(encoder, language)},
                                 .outbox = *outbox,
                                 .publisher = publisher,
                                 .metrics = metrics,
                                 .board = board,
                                 .clock = clock,
                                 .logger = logger,
                                 .seed = 1,
                                 .threads = Threads::own});
    // The subscription may come after the first events: the last of the topic is sent again, and that is the
    // episode's end.
    std::vector<std::string> phases;
    std::uint64_t last = 0;
    while (phases.empty() || phases.back() != "end") {
      const auto message = subscriber.receive(20s);
      ASSERT_TRUE(message.has_value()) << "no event in 20 s";
      EXPECT_EQ(message->topic, "alert/north/gate/person/");
      if (message->sequence <= last) continue;
      last = message->sequence;
      const json event = json::parse(message->body);
      EXPECT_EQ(event.at("data").at("seq"), message->sequence);
      EXPECT_EQ(event.at("data").at("camera"), "gate");
      EXPECT_GE(event.at("data").at("latency_ms").at("capture_to_alert"), 0);
      phases.push_back(event.at("data").at("phase"));
    }
    // Stopping cuts short what is still played.
    for (std::set<std::string> playing{"gate", "yard"}; !playing.empty();) {
      const auto message = states.receive(20s);
      ASSERT_TRUE(message.has_value()) << "a file did not end in 20 s";
      const json data = json::parse(message->body).at("data");
      if (data.at("state") == "down") playing.erase(data.at("camera"));
    }
    caf::anon_send(handle, stop_atom_v);
    caf::scoped_actor self{system};
    self->request(handle, 30s, wait_atom_v)
        .receive([&](const DrainReport& outcome) { report = outcome; },
                 [&](const caf::error& error) { ADD_FAILURE() << system.render(error); });
    const cluster::HttpResponse answer =
        cluster::http_get("http://127.0.0.1:" + std::to_string(server.port()) + "/metrics", 5s);
    EXPECT_EQ(answer.status, 200);
    const std::string& page = answer.body;
    expect_exposition_format(page);
    EXPECT_THAT(page, HasSubstr("vigil_frames_total{camera=\"gate\",tenant=\"north\"} 200\n"));
    EXPECT_THAT(page, HasSubstr("vigil_windows_total{outcome=\"answered\"} 100\n"));
    EXPECT_THAT(page,
                HasSubstr("vigil_alerts_total{severity=\"alert\",topic=\"alert/north/gate/person/\"} 1\n"));
    EXPECT_THAT(page, HasSubstr("vigil_camera_up{camera=\"lost\",tenant=\"north\"} 0\n"));
    EXPECT_THAT(page, HasSubstr("vigil_window_latency_seconds_count 100\n"));
    EXPECT_THAT(page, HasSubstr("vigil_outbox_pending 0\n"));
  }
  EXPECT_TRUE(report.complete);
}

/// A source that blocks until `release`, as a camera does that says nothing.
class SilentReader final : public media::VideoReader {
 public:
  explicit SilentReader(std::stop_token release) : release_(std::move(release)) {}
  const media::SourceInfo& info() const override { return info_; }
  const media::ReadStats& stats() const override { return stats_; }
  const std::vector<media::FrameMotion>& rest() const override { return rest_; }
  std::optional<media::SampledFrame> next() override {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any never;
    never.wait(lock, release_, [] { return false; });
    throw media::Error("cancelled", media::Error::Kind::cancelled);
  }

 private:
  std::stop_token release_;
  media::SourceInfo info_;
  media::ReadStats stats_;
  std::vector<media::FrameMotion> rest_;
};

/// Keeps the phases of the alerts that were published, for a test to wait for. Thread-safe.
class WatchedPublisher final : public Publisher {
 public:
  bool publish(const OutboxEvent& event) override {
    published_ = event.position;
    const json data = json::parse(event.body).at("data");
    if (!data.contains("phase")) return true;
    const std::lock_guard lock(mutex_);
    phases_.push_back(data.at("phase"));
    changed_.notify_all();
    return true;
  }
  std::uint64_t published() const override { return published_; }
  void drain() override {}
  void start_over() override { published_ = 0; }
  void remember(const OutboxEvent&) override {}
  void serve() override {}
  std::uint64_t take_dropped() override { return 0; }

  std::vector<std::string> phases() const {
    const std::lock_guard lock(mutex_);
    return phases_;
  }
  /// False if no episode has ended after `patience`.
  bool wait_until_episode_ends(std::chrono::seconds patience) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [this] { return !phases_.empty() && phases_.back() == "end"; });
  }

 private:
  // Of the thread that publishes.
  std::uint64_t published_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> phases_;
};

/// A pipeline on real threads with the camera `gate`, which plays 10 windows of a person, and `silent`, whose
/// source is made by `open`.
class SilentCamera : public ::testing::Test {
 protected:
  /// Waits for the 10 windows, stops, and tells how the run ended.
  DrainReport run(
      const std::function<std::unique_ptr<media::VideoReader>(const media::ReadOptions&)>& open,
      base::Duration grace, const std::function<void()>& before_the_end = [] {}) {
    sources_.add("/clips/gate.mp4", frames(std::vector<int>(40, 90)));
    const auto handle = system_.spawn(
        supervisor,
        PipelineDeps{.cameras = {camera(), camera("silent", config::Pace::realtime, "rtsp://10.0.0.1/live")},
                     .once = true,
                     .grace = grace,
                     .retention = 24h,
                     .model_id = "fake",
                     .open =
                         [this, open, inner = sources_.factory()](const std::string& url,
                                                                  const media::ReadOptions& options) {
                           if (!url.starts_with("rtsp")) return inner(url, options);
                           if (!opened_.try_wait()) opened_.count_down();
                           return open(options);
                         },
                     .shape = {2, {}},
                     .devices = {slot(encoder_, language_)},
                     .outbox = *outbox_,
                     .publisher = publisher_,
                     .metrics = metrics_,
                     .board = board_,
                     .clock = clock_,
                     .logger = logger_,
                     .seed = 1,
                     .threads = Threads::own});
    // The camera `gate` ends by itself, and its open episode with it, once all of its windows are answered.
    EXPECT_TRUE(publisher_.wait_until_episode_ends(20s));
    EXPECT_THAT(metrics_.text(), HasSubstr("vigil_windows_total{outcome=\"answered\"} 10\n"));
    opened_.wait();
    before_the_end();
    caf::anon_send(handle, stop_atom_v);
    DrainReport report;
    caf::scoped_actor self{system_};
    self->request(handle, 30s, wait_atom_v)
        .receive([&](const DrainReport& outcome) { report = outcome; },
                 [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    return report;
  }

  struct Config : cluster::SystemConfig {
    Config() { know_messages(*this); }
  };

  std::latch opened_{1};
  cluster::SystemClock clock_;
  FakeSources sources_;
  FakeEncoder encoder_;
  ScriptedLanguage language_;
  WatchedPublisher publisher_;
  Metrics metrics_;
  StatusBoard board_{clock_};
  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  Config config_;
  caf::actor_system system_{config_};
};

/// Threads of this process that have the name.
int threads_named(const std::string& name) {
  int count = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(task.path() / "comm");
    std::string comm;
    std::getline(file, comm);
    count += comm == name ? 1 : 0;
  }
  return count;
}

TEST_F(SilentCamera, ThatCannotBeReachedGivesItsThreadBack) {
  const DrainReport report = run(
      [](const media::ReadOptions&) -> std::unique_ptr<media::VideoReader> { throw media::Error("refused"); },
      20s,
      [] {
        const auto end = std::chrono::steady_clock::now() + 20s;
        while (threads_named("camera") > 0 && std::chrono::steady_clock::now() < end)
          std::this_thread::sleep_for(1ms);
        EXPECT_EQ(threads_named("camera"), 0) << "neither that one nor the one that has ended";
      });
  EXPECT_TRUE(report.complete);
}

TEST_F(SilentCamera, HoldsUpNeitherTheOthersNorTheEnd) {
  const DrainReport report = run(
      [](const media::ReadOptions& options) { return std::make_unique<SilentReader>(options.stop); }, 20s);
  EXPECT_TRUE(report.complete);
}

TEST_F(SilentCamera, ThatCannotBeCancelledIsGivenUpAfterTheGracePeriodAndNoAlertIsLost) {
  std::stop_source release;
  const DrainReport report = run(
      [&](const media::ReadOptions&) { return std::make_unique<SilentReader>(release.get_token()); }, 300ms);
  EXPECT_FALSE(report.complete);
  const std::vector<std::string> phases = publisher_.phases();
  ASSERT_FALSE(phases.empty());
  EXPECT_EQ(phases.front(), "new");
  EXPECT_EQ(phases.back(), "end");
  EXPECT_TRUE(outbox_->unacknowledged(1).empty());
  release.request_stop();
}

}  // namespace
}  // namespace vigil::actors
