// Events on topics, over ZeroMQ: a publisher that knows each topic's last event, and a plain subscriber.
// `message.h` has the form of a message.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <zmq.hpp>

#include "cluster/sockets/connection.h"
#include "cluster/sockets/curve.h"
#include "cluster/sockets/gate.h"
#include "cluster/topics/message.h"

namespace vigil::cluster {

/// Publishes events and gives new subscribers the last one of each of their topics. One owner at a time; not
/// thread-safe.
class TopicPublisher {
 public:
  struct Options {
    /// "tcp://127.0.0.1:5556"; port 0 takes any free one.
    std::string endpoint;
    /// Events that wait for one slow subscriber at most.
    int high_water_mark = 1000;
    /// How long events that were sent may still go out when this is destroyed.
    std::chrono::milliseconds linger{1000};
    /// Without it, everybody who reaches the endpoint may read.
    std::optional<CurveServer> curve = std::nullopt;
    GateOptions gate = {};
    Heartbeat heartbeat = {};
  };

  /// Throws TopicError, as when the port is in use.
  explicit TopicPublisher(const Options& options);

  /// What a subscriber may send.
  static PeerLimits limits(bool encrypted);

  /// Where it really listens.
  const std::string& endpoint() const { return entrance_.endpoint(); }

  /// False if the event cannot be taken now. A subscriber that reads too slowly holds nobody up: it misses
  /// events until it has read some.
  bool publish(const TopicMessage& message);

  /// Has this event be its topic's last one, without sending it.
  void remember(const TopicMessage& message);

  /// Answers new subscriptions with the last event of each topic that they match; others who match get it
  /// again, with the same sequence number. To be called regularly: a call sends a bounded number of events
  /// and does not block.
  void serve();

  /// Whether `serve` would do something now.
  bool has_work();

  /// How often a subscriber began to miss events since the last call. How many it missed, its sequence
  /// numbers tell it.
  std::uint64_t take_dropped();

  /// To be polled: it is readable when a subscription has come.
  zmq::socket_t& socket() { return socket_; }

 private:
  /// A new subscription that gets last events, from the topic `next` on.
  struct Greeting {
    std::string prefix;
    std::string next;
  };

  void take_subscriptions();
  bool send(const TopicMessage& message);

  // Outlives the context, which sends what is left.
  Entrance entrance_;
  zmq::context_t context_;
  std::optional<AllowList> allowed_;
  zmq::socket_t socket_;
  std::map<std::string, TopicMessage> last_;
  std::deque<Greeting> greetings_;
  std::uint64_t dropped_ = 0;
};

/// Receives events of topics with some prefixes; reconnects by itself. One owner at a time; not thread-safe.
class TopicSubscriber {
 public:
  struct Options {
    std::string endpoint;
    /// An empty one subscribes to all.
    std::vector<std::string> prefixes;
    /// Events that wait to be received at most.
    int high_water_mark = 10'000;
    std::optional<CurveClient> curve = std::nullopt;
  };

  /// Throws TopicError for an endpoint that makes no sense; one where nobody listens yet is waited for.
  explicit TopicSubscriber(const Options& options);

  /// The next event, or nothing after `timeout`. What is not of the form is passed over.
  std::optional<TopicMessage> receive(std::chrono::milliseconds timeout);

  /// To be polled.
  zmq::socket_t& socket() { return socket_; }
  ConnectionMonitor& connection() { return connection_; }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  ConnectionMonitor connection_;
};

}  // namespace vigil::cluster
