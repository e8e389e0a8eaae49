// Events on topics, over ZeroMQ. A message has three parts: the topic, the sequence number in decimal digits,
// and the body. Topics end in a delimiter, since subscriptions match prefixes.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>

#include <zmq.hpp>

namespace vigil::cluster {

/// A socket that cannot be opened: one line with its endpoint and the reason.
class TopicError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TopicMessage {
  std::string topic;
  std::uint64_t sequence = 0;
  std::string body;
};

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
  };

  /// Throws TopicError, as when the port is in use.
  explicit TopicPublisher(const Options& options);

  /// Where it really listens.
  const std::string& endpoint() const { return endpoint_; }

  /// False if the event cannot be taken now. A subscriber that reads too slowly holds nobody up: it misses
  /// events until it has read some.
  bool publish(const TopicMessage& message);

  /// Has this event be its topic's last one, without sending it.
  void remember(const TopicMessage& message) { last_[message.topic] = {message.sequence, message.body}; }

  /// Answers new subscriptions with the last event of each topic that they match. Others who match get it
  /// again, with the same sequence number. To be called regularly; does not block.
  void serve();

  /// How often a subscriber began to miss events since the last call. How many it missed, its sequence
  /// numbers tell it.
  std::uint64_t take_dropped();

 private:
  struct Last {
    std::uint64_t sequence = 0;
    std::string body;
  };

  bool send(const std::string& topic, const Last& last);
  bool try_send(const std::string& topic, const Last& last);

  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string endpoint_;
  std::map<std::string, Last> last_;
  std::uint64_t dropped_ = 0;
};

/// Receives events of topics with a prefix; reconnects by itself. One owner at a time; not thread-safe.
class TopicSubscriber {
 public:
  /// An empty prefix subscribes to all. Throws TopicError for an endpoint that makes no sense; one where
  /// nobody listens yet is waited for.
  TopicSubscriber(const std::string& endpoint, const std::string& prefix, int high_water_mark = 10'000);

  /// The next event, or nothing after `timeout`. What is not of the form above is passed over.
  std::optional<TopicMessage> receive(std::chrono::milliseconds timeout);

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

/// What a sequence number says, of one topic.
struct Arrival {
  enum class Kind : std::uint8_t {
    fresh,      ///< the next, or the first that is seen
    duplicate,  ///< seen before: a resend
    gap,        ///< `missing` events before this one did not arrive
  };
  Kind kind = Kind::fresh;
  std::uint64_t missing = 0;
};

/// Finds gaps and resends by the sequence numbers of each topic.
class SequenceTracker {
 public:
  Arrival see(const std::string& topic, std::uint64_t sequence);

 private:
  std::map<std::string, std::uint64_t> last_;
};

}  // namespace vigil::cluster
