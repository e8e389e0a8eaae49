// Gateways of one fleet, and a follower of them, in one thread and over real sockets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cluster/process/clock.h"
#include "cluster/topics/follower.h"
#include "tests/temporary_folder.h"

namespace vigil::cluster::testing {

/// The machine's clock, which a test sets forward: nobody waits for what takes long and brings nothing. It
/// leaves out how long the machine stood still between two looks: nobody was silent meanwhile. For one
/// thread.
class JumpingClock final : public base::Clock {
 public:
  TimePoint now() const override {
    const TimePoint real = clock_.now();
    now_ += std::min<TimePoint::duration>(real - std::exchange(looked_, real), kMost);
    return now_;
  }
  WallTime wall() const override { return clock_.wall(); }
  void jump(base::Duration by) { now_ += by; }

 private:
  /// Longer than any wait of a test between two looks.
  static constexpr TimePoint::duration kMost = std::chrono::milliseconds(10);
  const SystemClock clock_;
  mutable TimePoint looked_ = clock_.now();
  mutable TimePoint now_ = looked_;
};

/// What a gateway has committed, and its sockets while it runs.
class Site final : public ReplaySource {
 public:
  Site(std::string name, const TemporaryFolder& folder) : outbox(std::move(name)), folder_(folder) {}

  Gateway gateway() const {
    return {"ipc://" + (folder_ / (outbox.substr(0, 1) + "e")),
            "ipc://" + (folder_ / (outbox.substr(0, 1) + "r"))};
  }
  void start(const std::optional<CurveServer>& curve = std::nullopt) {
    publisher.emplace(TopicPublisher::Options{
        .endpoint = gateway().endpoint, .linger = std::chrono::milliseconds(0), .curve = curve});
    for (const TopicMessage& event : log) publisher->remember(event);
    start_replay(curve);
  }
  void start_replay(const std::optional<CurveServer>& curve = std::nullopt) {
    server.emplace(ReplayServer::Options{.endpoint = gateway().replay, .curve = curve}, *this);
  }
  /// As by a kill: nothing is sent any more.
  void stop() {
    server.reset();
    publisher.reset();
  }
  void serve() {
    if (publisher) publisher->serve();
    if (server && answering) server->serve();
  }
  void commit(const std::string& topic) {
    const std::uint64_t sequence = ++sequences[topic];
    log.push_back({topic, sequence, R"({"source":"s","id":")" + topic + std::to_string(sequence) + R"("})",
                   log.size() + 1});
    if (publisher && publishing) publisher->publish(log.back());
  }
  /// The same events in another order, as of a gateway that lost its disk and followed the others.
  void rebuild() {
    outbox += '\'';
    std::stable_sort(log.begin(), log.end(),
                     [](const TopicMessage& a, const TopicMessage& b) { return a.topic > b.topic; });
    for (std::size_t i = 0; i < log.size(); ++i) log[i].position = i + 1;
  }

  ReplayPage replay(const ReplayQuery& query) override {
    ++asked;
    ReplayPage page{outbox, {}, query.after.value_or(log.size()), false, log.size()};
    if (query.from) {
      const auto first = std::find_if(log.begin(), log.end(), [&](const TopicMessage& event) {
        return event.topic == query.topics.front() && event.sequence >= *query.from;
      });
      page.cursor = first == log.end() ? log.size() : first->position - 1;
    }
    while (page.cursor < log.size() && page.events.size() < 5) {
      const TopicMessage& event = log[page.cursor++];
      if (!std::any_of(query.topics.begin(), query.topics.end(),
                       [&](const auto& prefix) { return event.topic.starts_with(prefix); }))
        continue;
      // Everything that is older than the follower is from 1970.
      if (query.since_ms && *query.since_ms > 0 && event.topic == "alert/old/") continue;
      page.events.push_back(event);
    }
    replayed += page.events.size();
    page.more = page.cursor < log.size();
    return page;
  }
  std::optional<ReplayRefusal> refuse(const ReplayQuery&) const override { return refusal; }

  std::string outbox;
  std::vector<TopicMessage> log;
  std::map<std::string, std::uint64_t> sequences;
  std::optional<TopicPublisher> publisher;
  std::optional<ReplayServer> server;
  std::optional<ReplayRefusal> refusal;
  bool answering = true;
  bool publishing = true;
  std::size_t replayed = 0;
  std::size_t asked = 0;

 private:
  const TemporaryFolder& folder_;
};

class GatewaysTest : public ::testing::Test {
 protected:
  GatewaysTest() {
    for (int i = 0; i < 300; ++i) both("alert/old/");
  }
  void both(const std::string& topic) {
    a_.commit(topic);
    b_.commit(topic);
  }
  Follower::Options options() const {
    Follower::Options options;
    options.endpoint = a_.gateway().endpoint;
    options.replay = a_.gateway().replay;
    options.others = {b_.gateway()};
    options.topics = {"alert/"};
    options.heartbeat = std::chrono::milliseconds(200);
    options.ask_again = std::chrono::milliseconds(200);
    options.patience = std::chrono::milliseconds(300);
    return options;
  }
  void step(Follower& follower) {
    a_.serve();
    b_.serve();
    while (const auto entry = follower.next(std::chrono::milliseconds(5))) {
      if (const auto* message = std::get_if<TopicMessage>(&*entry)) {
        seen_[message->topic].push_back(message->sequence);
      } else {
        notices_ += std::get<Notice>(*entry).text + '\n';
      }
      a_.serve();
      b_.serve();
    }
  }
  /// … until that is so, or 20 s are over.
  void follow_until(Follower& follower, const std::function<bool()>& done) {
    for (int i = 0; i < 4000 && !done(); ++i) step(follower);
    EXPECT_TRUE(done());
  }
  void follow_to(Follower& follower, const std::string& topic, std::uint64_t sequence) {
    follow_until(follower, [&] { return !seen_[topic].empty() && seen_[topic].back() >= sequence; });
  }
  void expect_all(const std::string& topic, std::uint64_t first, std::uint64_t last) {
    std::vector<std::uint64_t> numbers;
    for (std::uint64_t i = first; i <= last; ++i) numbers.push_back(i);
    EXPECT_EQ(seen_[topic], numbers) << topic;
  }

  const TemporaryFolder folder_;
  JumpingClock clock_;
  Site a_{"A", folder_};
  Site b_{"B", folder_};
  std::map<std::string, std::vector<std::uint64_t>> seen_;
  std::string notices_;
};

}  // namespace vigil::cluster::testing
