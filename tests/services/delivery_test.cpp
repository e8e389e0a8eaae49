// Delivery from end to end, over the real outbox, sockets and programs: the source of events is killed again
// and again, and `vigil watch` stays on.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/alerts/outbox.h"
#include "cluster/process/clock.h"
#include "cluster/topics/topics.h"
#include "tests/temporary_folder.h"

namespace vigil {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  std::vector<std::string> lines;
  std::istringstream whole(text.str().substr(0, text.str().rfind('\n') + 1));
  for (std::string line; std::getline(whole, line);) lines.push_back(line);
  return lines;
}

/// A process of the test's own; killed when it goes.
class Process {
 public:
  Process(const std::vector<std::string>& command, const std::string& out, const std::string& err) {
    pid_ = fork();
    if (pid_ != 0) return;
    std::vector<char*> arguments;
    for (const std::string& each : command) arguments.push_back(const_cast<char*>(each.c_str()));
    arguments.push_back(nullptr);
    for (const auto& [file, descriptor] : {std::pair(&out, 1), std::pair(&err, 2)}) {
      const int opened = ::open(file->c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
      ::dup2(opened, descriptor);
    }
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// How it had ended if it was not killed by this.
  int kill() {
    if (pid_ <= 0) return 0;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : status;
  }
  /// The exit status.
  int wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
};

template <class F>
bool eventually(F condition, std::chrono::seconds limit = 60s) {
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(20ms);
  }
  return true;
}

/// What went over the wire, resends and all.
class Wire {
 public:
  explicit Wire(const std::string& endpoint)
      : subscriber_({.endpoint = endpoint, .prefixes = {""}}), thread_([this] {
          while (!stop_) {
            if (auto message = subscriber_.receive(50ms)) messages_.push_back(std::move(*message));
          }
        }) {}
  ~Wire() { stop(); }
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  const std::vector<cluster::TopicMessage>& stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    return messages_;
  }

 private:
  cluster::TopicSubscriber subscriber_;
  std::vector<cluster::TopicMessage> messages_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

/// Tells what the processes wrote on stderr if the test fails.
class Told {
 public:
  explicit Told(std::vector<std::string> files) : files_(std::move(files)) {}
  ~Told() {
    if (!testing::Test::HasFailure()) return;
    for (const std::string& file : files_) {
      for (const std::string& line : lines_of(file)) std::cerr << line << '\n';
    }
  }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

 private:
  std::vector<std::string> files_;
};

void kill_and_watch(int kills, std::uint64_t seed) {
  const TemporaryFolder folder;
  const Told told({folder / "source.log", folder / "watch.log"});
  const auto source = [&](std::uint64_t number, const char* mode) {
    return std::make_unique<Process>(
        std::vector<std::string>{EVENT_SOURCE, folder.path().string(), std::to_string(seed + number), mode},
        folder / "source.log", folder / "source.log");
  };
  Wire wire("ipc://" + (folder / "events"));
  Process watcher({VIGIL, "watch", "", "--output", "json", "--endpoint", "ipc://" + (folder / "events"),
                   "--replay", "ipc://" + (folder / "replay")},
                  folder / "seen", folder / "watch.log");
  // From its first event on the watcher is there.
  auto process = source(0, "hello");
  ASSERT_TRUE(eventually([&] { return lines_of(folder / "seen").size() == 1; })) << "the watcher saw nothing";
  EXPECT_EQ(process->kill(), 0);

  std::mt19937_64 random(seed);
  for (int i = 1; i <= kills; ++i) {
    const std::size_t before = lines_of(folder / "committed").size();
    process = source(static_cast<std::uint64_t>(i), "run");
    // Every other one at any time, also while it starts; the others at work, however long a start takes.
    if (i % 2 == 0) {
      ASSERT_TRUE(eventually([&] { return lines_of(folder / "committed").size() > before; }))
          << "start " << i;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 400'000));
    ASSERT_EQ(process->kill(), 0) << "it ended by itself, at start " << i;
  }
  process = source(0, "rest");

  const auto key_of = [](const json& event) {
    // What the topic is made of.
    const json& data = event.at("data");
    const std::string place =
        data.at("tenant").get<std::string>() + '/' + data.at("camera").get<std::string>() + '/';
    return event.at("type") == "dev.vigil.status.v1"
               ? "status/" + place
               : "alert/" + place + data.at("rule").get<std::string>() + '/';
  };
  std::map<std::string, std::vector<std::string>> seen;
  const auto all_seen = [&] {
    std::set<std::string> names;
    seen.clear();
    for (const std::string& line : lines_of(folder / "seen")) {
      const json event = json::parse(line);
      const std::string topic = key_of(event);
      seen[topic].push_back(line);
      names.insert(topic + ' ' + std::to_string(event.at("data").at("seq").get<std::uint64_t>()));
    }
    // The outbox knows every committed event, also one whose process died before it could say so.
    std::vector<std::string> committed = lines_of(folder / "kept");
    if (committed.empty() || committed.back() != "end") return false;
    committed.pop_back();
    return std::all_of(committed.begin(), committed.end(),
                       [&](const auto& name) { return names.contains(name); });
  };
  EXPECT_TRUE(eventually(all_seen)) << "not every event that was committed was seen";
  EXPECT_EQ(process->kill(), 0);
  EXPECT_EQ(watcher.kill(), 0) << "the watcher stays on";

  const cluster::SystemClock clock;
  config::RetentionClock ages(clock);
  const auto outbox = actors::open_rocksdb_outbox(folder / "outbox", ages);
  std::map<std::string, std::vector<std::string>> kept;
  actors::ReplayQuery query;
  query.topics = {""};
  std::size_t events = 0;
  for (bool more = true; more;) {
    actors::Replay page = outbox->replay(query);
    for (actors::OutboxEvent& event : page.events) {
      kept[event.topic].push_back(event.body);
      ++events;
    }
    query.after = page.cursor;
    more = page.more;
  }
  EXPECT_GE(events, lines_of(folder / "committed").size()) << "what was committed is kept";
  ASSERT_EQ(seen.size(), kept.size());
  for (const auto& [topic, bodies] : kept) {
    EXPECT_EQ(seen[topic], bodies) << topic << ": each once, unchanged, in order";
  }

  // Equal ids only for resends, which have equal bodies.
  std::map<std::pair<std::string, std::uint64_t>, std::string> bodies;
  std::map<std::string, std::pair<std::string, std::uint64_t>> ids;
  std::size_t resends = 0;
  for (const cluster::TopicMessage& message : wire.stop()) {
    const std::pair place(message.topic, message.sequence);
    const auto [body, first] = bodies.emplace(place, message.body);
    if (!first) ++resends;
    EXPECT_EQ(body->second, message.body);
    const json event = json::parse(message.body);
    const std::string id = event.at("source").get<std::string>() + ' ' + event.at("id").get<std::string>();
    EXPECT_EQ(ids.emplace(id, place).first->second, place) << id;
  }
  EXPECT_GT(resends, 0U);
  EXPECT_GT(events, static_cast<std::size_t>(kills));
  std::cout << kills << " kills: " << events << " events committed, " << wire.stop().size()
            << " on the wire, " << resends << " of them resends; the watcher saw each event once\n";
  testing::Test::RecordProperty("events", std::to_string(events));
}

TEST(Delivery, AWatcherSeesEveryEventOfASourceThatIsKilledAgainAndAgain) {
  kill_and_watch(KILLS, KILLS);
}

// A byte of the log is another one when the killed source starts again: what was seen keeps its meaning, what
// is left is not shown twice, and what is new is not taken for what is gone.
TEST(Delivery, AWatcherGoesOnWhenTheLogOfAKilledSourceIsDamaged) {
  const TemporaryFolder folder;
  const Told told({folder / "source.log", folder / "watch.log"});
  const auto source = [&](const char* seed, const char* mode) {
    return std::make_unique<Process>(
        std::vector<std::string>{EVENT_SOURCE, folder.path().string(), seed, mode}, folder / "source.log",
        folder / "source.log");
  };
  Process watcher({VIGIL, "watch", "", "--output", "json", "--endpoint", "ipc://" + (folder / "events"),
                   "--replay", "ipc://" + (folder / "replay")},
                  folder / "seen", folder / "watch.log");
  auto process = source("0", "hello");
  ASSERT_TRUE(eventually([&] { return lines_of(folder / "seen").size() == 1; })) << "the watcher saw nothing";
  EXPECT_EQ(process->kill(), 0);
  process = source("1", "run");
  ASSERT_TRUE(eventually([&] { return lines_of(folder / "seen").size() > 100; }));
  EXPECT_EQ(process->kill(), 0);
  const std::size_t committed = lines_of(folder / "committed").size();

  std::filesystem::path log;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "outbox"))
    if (entry.path().extension() == ".log" && (log.empty() || entry.path() > log)) log = entry.path();
  std::fstream file(log, std::ios::binary | std::ios::in | std::ios::out);
  const auto middle = static_cast<std::streamoff>(std::filesystem::file_size(log) / 2);
  file.seekg(middle);
  const char byte = static_cast<char>(file.get() ^ 1);
  file.seekp(middle);
  file.put(byte);
  file.close();

  process = source("2", "run");
  ASSERT_TRUE(eventually([&] { return lines_of(folder / "committed").size() > committed + 100; }));
  EXPECT_EQ(process->kill(), 0);
  process = source("3", "rest");
  ASSERT_TRUE(eventually([&] {
    const auto lines = lines_of(folder / "kept");
    return !lines.empty() && lines.back() == "end";
  }));
  const auto name_of = [](const std::string& body) {
    const json event = json::parse(body);
    return event.at("source").get<std::string>() + ' ' + event.at("id").get<std::string>();
  };
  std::vector<std::string> kept;
  const auto all_seen = [&] {
    std::set<std::string> names;
    for (const std::string& line : lines_of(folder / "seen")) names.insert(name_of(line));
    return std::all_of(kept.begin(), kept.end(),
                       [&](const auto& body) { return names.contains(name_of(body)); });
  };
  EXPECT_EQ(process->kill(), 0);
  {
    const cluster::SystemClock clock;
    config::RetentionClock ages(clock);
    const auto outbox = actors::open_rocksdb_outbox(folder / "outbox", ages);
    actors::ReplayQuery query;
    query.topics = {""};
    for (bool more = true; more;) {
      actors::Replay page = outbox->replay(query);
      for (actors::OutboxEvent& event : page.events) kept.push_back(std::move(event.body));
      query.after = page.cursor;
      more = page.more;
    }
  }
  EXPECT_GT(kept.size(), 150U);
  process = source("4", "rest");
  EXPECT_TRUE(eventually(all_seen)) << "what the outbox has was not all seen";
  EXPECT_EQ(process->kill(), 0);
  EXPECT_EQ(watcher.kill(), 0) << "the watcher stays on";
  std::map<std::string, std::string> seen;
  for (const std::string& line : lines_of(folder / "seen"))
    EXPECT_TRUE(seen.emplace(name_of(line), line).second) << "twice: " << line;
  for (const std::string& body : kept) EXPECT_EQ(seen[name_of(body)], body) << "another event under its id";
  const auto says = [&](const char* name, const std::string& text) {
    const auto lines = lines_of(folder / name);
    return std::count_if(lines.begin(), lines.end(),
                         [&](const std::string& line) { return line.find(text) != std::string::npos; });
  };
  EXPECT_EQ(says("source.log", "outbox_behind: "), 1);
  EXPECT_EQ(says("watch.log", "has another outbox than before"), 1);
}

}  // namespace
}  // namespace vigil
