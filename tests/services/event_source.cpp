// A process that finds and publishes alerts as `vigil run` does, without cameras and a model, until it is
// killed:
//
//   event_source FOLDER SEED hello|run|rest
//
// FOLDER gets the outbox, the endpoints `events` and `replay`, and the file `committed`: a line for each
// event that the outbox has taken. hello: one event, then none; run: events all the time; rest: none but
// those that a start makes, and the file `kept` with a line for each event that the outbox has then, complete
// when its last line is "end".
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "actors/alerts/alert_desk.h"
#include "actors/status/metrics.h"
#include "cluster/clock.h"
#include "services/topic_publisher.h"

namespace {

using namespace vigil;
using namespace std::chrono_literals;

/// Writes down what was committed, where a kill cannot take it back.
class LoggedOutbox final : public actors::Outbox {
 public:
  LoggedOutbox(std::unique_ptr<actors::Outbox> inner, const std::filesystem::path& log)
      : inner_(std::move(inner)),
        log_(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  ~LoggedOutbox() override { ::close(log_); }
  LoggedOutbox(const LoggedOutbox&) = delete;
  LoggedOutbox& operator=(const LoggedOutbox&) = delete;

  std::uint64_t append(const actors::OutboxEvent& event) override {
    const std::uint64_t position = inner_->append(event);
    const std::string line = event.topic + ' ' + std::to_string(event.sequence) + '\n';
    if (::write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
    return position;
  }
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner_->last_sequence(topic);
  }
  std::vector<actors::OutboxEvent> unacknowledged(std::size_t limit) const override {
    return inner_->unacknowledged(limit);
  }
  void acknowledge(std::uint64_t position) override { inner_->acknowledge(position); }
  std::size_t prune(config::Clock::WallTime before) override { return inner_->prune(before); }
  const std::string& identity() const override { return inner_->identity(); }
  std::uint64_t last_position() const override { return inner_->last_position(); }
  std::optional<std::uint64_t> position_of(const std::string& topic, std::uint64_t sequence) const override {
    return inner_->position_of(topic, sequence);
  }
  actors::Replay replay(const actors::ReplayQuery& query) const override { return inner_->replay(query); }
  std::vector<actors::OutboxEvent> last_events(std::size_t each) const override {
    return inner_->last_events(each);
  }

 private:
  std::unique_ptr<actors::Outbox> inner_;
  int log_;
};

void write_down(const actors::Outbox& outbox, const std::filesystem::path& file) {
  std::ofstream lines(file);
  actors::ReplayQuery query;
  query.topics = {""};
  for (bool more = true; more;) {
    const actors::Replay page = outbox.replay(query);
    for (const actors::OutboxEvent& event : page.events)
      lines << event.topic << ' ' << event.sequence << '\n';
    query.after = page.cursor;
    more = page.more;
  }
  lines << "end" << std::endl;
}

actors::CameraPtr camera(const std::string& name) {
  auto settings = std::make_shared<config::CameraSettings>();
  settings->name = name;
  settings->stream.window = {4s, 2s};
  settings->labels = {{"tenant", "north"}};
  settings->inputs = {{{"/clip.mp4", "/clip.mp4"}, {config::Role::detect}}};
  for (const char* rule : {"person", "car"}) {
    auto& each = settings->rules.emplace_back();
    each.name = rule;
    each.prompt = "Is there one?";
    each.cooldown = 0s;
  }
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  // Not longer than the test that started it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::filesystem::path folder = argv[1];
  std::mt19937_64 random(std::stoull(argv[2]));
  const std::string mode = argv[3];
  const cluster::SystemClock clock;
  actors::Metrics metrics;
  LoggedOutbox outbox(actors::open_rocksdb_outbox(folder / "outbox"), folder / "committed");
  services::TopicPublisher publisher({.endpoint = "ipc://" + (folder / "events").string()},
                                     {.endpoint = "ipc://" + (folder / "replay").string()}, outbox);
  actors::AlertDesk desk({.model = {"none"}, .run = std::random_device{}()}, outbox, publisher, metrics,
                         clock);
  desk.tick();
  if (mode == "rest") write_down(outbox, folder / "kept");
  if (mode == "hello") desk.status(camera("hello"), actors::CameraState::up, "");
  const std::vector<actors::CameraPtr> cameras = {camera("a"), camera("b"), camera("c")};
  for (double seconds = 4;; seconds += 2) {
    if (mode == "run") {
      for (const actors::CameraPtr& each : cameras) {
        auto window = std::make_shared<actors::WindowAnswers>();
        window->camera = each;
        window->start = seconds - 4;
        window->end = seconds;
        window->end_wall = clock.wall();
        window->start_wall = window->end_wall - 4s;
        window->captured = {clock.now(), window->end_wall};
        window->answers.resize(2);
        for (auto& answer : window->answers) answer.probability_yes = random() % 4 == 0 ? 0.1F : 0.9F;
        desk.observe(window);
        if (random() % 16 == 0) desk.status(each, actors::CameraState::stalled, "");
      }
    }
    desk.tick();
    std::this_thread::sleep_for(mode == "run" ? 1ms : 10ms);
  }
}
