// A process that finds and publishes alerts as `vigil run` does, without cameras and a model, until it is
// killed:
//
//   event_source FOLDER SEED hello|run|rest|dump [OUTBOX]
//
// FOLDER gets the outbox (unless it is another folder), the endpoints `events` and `replay`, and the file
// `committed`: a line for each event that the outbox has taken. hello: one event, then none; run: events all
// the time; rest: none but those that a start makes, and the file `kept` with a line for each event that the
// outbox has then, complete when its last line is "end". dump: one more event, then everything that can be
// read of the outbox goes to stdout as JSON lines, and it ends.
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/prctl.h>
#include <unistd.h>

#include "actors/alerts/alert_desk.h"
#include "actors/status/metrics.h"
#include "cluster/process/clock.h"
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

  void refresh() override { inner_->refresh(); }
  std::uint64_t append(std::span<const actors::OutboxEvent> events,
                       std::span<const actors::OutboxNote> notes) override {
    const std::uint64_t first = inner_->append(events, notes);
    std::string lines;
    for (const actors::OutboxEvent& event : events)
      lines += event.topic + ' ' + std::to_string(event.sequence) + '\n';
    if (::write(log_, lines.data(), lines.size()) != static_cast<ssize_t>(lines.size())) std::abort();
    return first;
  }
  std::map<std::string, std::string> notes() const override { return inner_->notes(); }
  std::uint64_t last_sequence(const std::string& topic) const override {
    return inner_->last_sequence(topic);
  }
  std::vector<actors::OutboxEvent> unacknowledged(std::size_t limit) const override {
    return inner_->unacknowledged(limit);
  }
  void acknowledge(std::span<const std::uint64_t> positions) override { inner_->acknowledge(positions); }
  std::size_t prune(base::Duration older_than) override { return inner_->prune(older_than); }
  std::vector<actors::OutboxNotice> take_notices() override {
    std::vector<actors::OutboxNotice> notices = inner_->take_notices();
    for (const actors::OutboxNotice& notice : notices)
      std::cerr << notice.reason << ": " << notice.text << '\n';
    return notices;
  }
  const std::string& identity() const override { return inner_->identity(); }
  std::string mark_of_loss() const override { return inner_->mark_of_loss(); }
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

/// Everything that a subscriber may ever be told, by all ways to read it.
void dump(const actors::Outbox& outbox, std::ostream& out) {
  using nlohmann::json;
  out << json{{"outbox", outbox.identity()}, {"last", outbox.last_position()}} << '\n';
  std::map<std::string, std::uint64_t> last;
  actors::ReplayQuery query;
  query.topics = {""};
  for (bool more = true; more;) {
    const actors::Replay page = outbox.replay(query);
    for (const actors::OutboxEvent& event : page.events) {
      out << json{{"position", event.position},
                  {"topic", event.topic},
                  {"sequence", event.sequence},
                  {"time", event.time.time_since_epoch().count()},
                  {"body", event.body},
                  {"found_at", outbox.position_of(event.topic, event.sequence).value_or(0)}}
                 .dump(-1, ' ', false, json::error_handler_t::replace)
          << '\n';
      last[event.topic] = event.sequence;
    }
    query.after = page.cursor;
    more = page.more;
  }
  for (const auto& [topic, sequence] : last) {
    out << json{{"topic", topic}, {"last", outbox.last_sequence(topic)}}.dump(-1, ' ', false,
                                                                              json::error_handler_t::replace)
        << '\n';
  }
  for (const actors::OutboxEvent& event : outbox.last_events(8)) {
    out << json{{"last_event", event.position}, {"topic", event.topic}, {"sequence", event.sequence}}.dump(
               -1, ' ', false, json::error_handler_t::replace)
        << '\n';
  }
  out << json{{"end", true}} << std::endl;
}

/// As whoever asks: a read that meets damage fails, and the next one finds what could be saved.
void dump_patiently(const actors::Outbox& outbox) {
  for (int attempt = 1;; ++attempt) {
    try {
      std::ostringstream lines;
      dump(outbox, lines);
      std::cout << lines.str() << std::flush;
      return;
    } catch (const actors::OutboxError& error) {
      std::cerr << error.what() << '\n';
      if (attempt == 4) throw;
    }
  }
}

actors::WatchPtr camera(const std::string& name) {
  auto settings = std::make_shared<actors::OwnCamera>();
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
  return std::make_shared<const actors::WatchSettings>(actors::watch_of(*settings));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 2;
  // Not longer than the test that started it.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const std::filesystem::path folder = argv[1];
  std::mt19937_64 random(std::stoull(argv[2]));
  const std::string mode = argv[3];
  const cluster::SystemClock clock;
  actors::Metrics metrics;
  const std::filesystem::path place = argc == 5 ? std::filesystem::path(argv[4]) : folder / "outbox";
  config::RetentionClock ages(clock);
  LoggedOutbox outbox(actors::open_rocksdb_outbox(place, ages), folder / "committed");
  outbox.take_notices();
  services::TopicPublisher publisher({.endpoint = "ipc://" + (folder / "events").string()},
                                     {.endpoint = "ipc://" + (folder / "replay").string()}, outbox);
  actors::AlertDesk desk({.model = {"none"}, .run = std::random_device{}()}, outbox, publisher, metrics,
                         clock);
  desk.tick();
  if (mode == "rest") write_down(outbox, folder / "kept");
  if (mode == "hello" || mode == "dump") desk.status(camera("hello"), actors::CameraState::up, "");
  if (mode == "dump") {
    dump_patiently(outbox);
    return 0;
  }
  const std::vector<actors::WatchPtr> cameras = {camera("a"), camera("b"), camera("c")};
  for (double seconds = 4;; seconds += 2) {
    if (mode == "run") {
      for (const actors::WatchPtr& each : cameras) {
        auto window = std::make_shared<actors::WindowAnswers>();
        window->watch = each;
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
