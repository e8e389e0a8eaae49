// Joins the two rooms that may not know each other: what the alerts actor publishes goes to a socket, and
// what is asked for again comes from its outbox.
#pragma once

#include <chrono>
#include <utility>

#include "actors/alerts/outbox.h"
#include "actors/alerts/publisher.h"
#include "cluster/replay.h"
#include "cluster/topics.h"

namespace vigil::services {

class OutboxReplay final : public cluster::ReplaySource {
 public:
  explicit OutboxReplay(const actors::Outbox& outbox) : outbox_(outbox) {}

  cluster::ReplayPage replay(const cluster::ReplayQuery& query) override {
    const std::uint64_t newest = outbox_.last_position();
    actors::ReplayQuery wanted;
    wanted.topics = query.topics;
    wanted.after = query.after.value_or(newest);
    wanted.max_events = query.limit;
    if (query.since_ms) {
      wanted.since = config::Clock::WallTime(std::chrono::milliseconds(*query.since_ms));
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

class TopicPublisher final : public actors::Publisher {
 public:
  TopicPublisher(const cluster::TopicPublisher::Options& options,
                 const cluster::ReplayServer::Options& replay_options, const actors::Outbox& outbox)
      : events_(options), outbox_(outbox), replay_(replay_options, outbox_) {}

  bool publish(const actors::OutboxEvent& event) override { return events_.publish(message_of(event)); }
  void remember(const actors::OutboxEvent& event) override { events_.remember(message_of(event)); }
  void serve() override {
    events_.serve();
    replay_.serve();
  }
  std::uint64_t take_dropped() override { return events_.take_dropped(); }
  const std::string& endpoint() const { return events_.endpoint(); }
  const std::string& replay_endpoint() const { return replay_.endpoint(); }

 private:
  static cluster::TopicMessage message_of(const actors::OutboxEvent& event) {
    return {event.topic, event.sequence, event.body, event.position};
  }

  cluster::TopicPublisher events_;
  OutboxReplay outbox_;
  cluster::ReplayServer replay_;
};

}  // namespace vigil::services
