// Joins the two rooms that may not know each other: what the alerts actor publishes goes to a socket.
#pragma once

#include "actors/alerts/publisher.h"
#include "cluster/topics.h"

namespace vigil::services {

class TopicPublisher final : public actors::Publisher {
 public:
  explicit TopicPublisher(const cluster::TopicPublisher::Options& options) : socket_(options) {}

  bool publish(const actors::OutboxEvent& event) override {
    return socket_.publish({event.topic, event.sequence, event.body});
  }
  void remember(const actors::OutboxEvent& event) override {
    socket_.remember({event.topic, event.sequence, event.body});
  }
  void serve() override { socket_.serve(); }
  std::uint64_t take_dropped() override { return socket_.take_dropped(); }
  const std::string& endpoint() const { return socket_.endpoint(); }

 private:
  cluster::TopicPublisher socket_;
};

}  // namespace vigil::services
