// Joins the two rooms that may not know each other: what the alerts actor publishes goes to a socket, and
// what is asked for again comes from its outbox.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "actors/alerts/outbox.h"
#include "actors/alerts/publisher.h"
#include "actors/messages/topic.h"
#include "actors/status/metrics.h"
#include "cluster/topics/publishing_thread.h"
#include "cluster/topics/replay.h"
#include "cluster/topics/topics.h"

namespace vigil::services {

/// Of the events of an answer, at most, unless it is a single one: a few answers wait for each client.
inline constexpr std::size_t kAnswerBytes = 256 << 10;

class OutboxReplay final : public cluster::ReplaySource {
 public:
  explicit OutboxReplay(const actors::Outbox& outbox) : outbox_(outbox) {}

  /// A beginning of topics has no numbers of its own: it would only look like a topic without events.
  std::optional<cluster::ReplayRefusal> refuse(const cluster::ReplayQuery& query) const override {
    if (!query.from || actors::read_topic(query.topics.front())) return std::nullopt;
    return cluster::ReplayRefusal{
        "from: expected a single whole topic, such as alert/<tenant>/<camera>/<rule>/"};
  }

  cluster::ReplayPage replay(const cluster::ReplayQuery& query) override {
    const std::uint64_t newest = outbox_.last_position();
    actors::ReplayQuery wanted;
    wanted.topics = query.topics;
    wanted.after = query.after.value_or(newest);
    wanted.max_events = query.limit;
    wanted.max_bytes = kAnswerBytes;
    if (query.since_ms) {
      wanted.since = base::Clock::WallTime(std::chrono::milliseconds(*query.since_ms));
    }
    if (query.from) {
      const auto first = outbox_.position_of(query.topics.front(), *query.from);
      wanted.after = first ? *first - 1 : newest;
    }
    actors::Replay found = outbox_.replay(wanted);
    cluster::ReplayPage page{outbox_.identity(), {}, found.cursor, found.more, newest};
    for (actors::OutboxEvent& event : found.events) {
      page.events.push_back({std::move(event.topic), event.sequence, std::move(event.body), event.position});
    }
    return page;
  }

 private:
  const actors::Outbox& outbox_;
};

/// Tells the metrics what becomes of the connections of one socket.
class ConnectionMetrics final : public cluster::GateObserver {
 public:
  /// `listener`: events, replay. The metrics outlive it.
  ConnectionMetrics(std::string listener, actors::Metrics& metrics)
      : listener_(std::move(listener)), metrics_(metrics) {
    connections(0);
    // So that the first refusal is an increase.
    for (const cluster::Refusal reason : cluster::kRefusals) count(reason, 0);
  }
  void connections(int open) override { metrics_.topic_connections(listener_, open); }
  void refused(cluster::Refusal reason) override { count(reason, 1); }

 private:
  void count(cluster::Refusal reason, std::uint64_t times) {
    metrics_.connections_refused(listener_, std::string(name_of(reason)), times);
  }

  std::string listener_;
  actors::Metrics& metrics_;
};

/// Publishes on a thread of its own, and replays on the one that calls `serve`.
class TopicPublisher final : public actors::Publisher {
 public:
  TopicPublisher(const cluster::TopicPublisher::Options& options,
                 const cluster::ReplayServer::Options& replay_options, const actors::Outbox& outbox)
      : events_(options), outbox_(outbox), replay_(replay_options, outbox_) {}

  bool publish(const actors::OutboxEvent& event) override { return events_.publish(message_of(event)); }
  std::uint64_t published() const override { return events_.published(); }
  void drain() override { events_.drain(); }
  void start_over() override { events_.start_over(); }
  void remember(const actors::OutboxEvent& event) override { events_.remember(message_of(event)); }
  void serve() override { replay_.serve(); }
  std::uint64_t take_dropped() override { return events_.take_dropped(); }
  const std::string& endpoint() const { return events_.endpoint(); }
  const std::string& replay_endpoint() const { return replay_.endpoint(); }

 private:
  static cluster::TopicMessage message_of(const actors::OutboxEvent& event) {
    return {event.topic, event.sequence, event.body, event.position};
  }

  cluster::PublishingThread events_;
  OutboxReplay outbox_;
  cluster::ReplayServer replay_;
};

}  // namespace vigil::services
