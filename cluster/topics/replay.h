// Events that are asked for again: a ROUTER socket that answers from wherever events are kept, and the
// client's side. docs/topics.md is the protocol for others.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <zmq.hpp>

#include "base/clock.h"
#include "cluster/sockets/connection.h"
#include "cluster/sockets/curve.h"
#include "cluster/sockets/gate.h"
#include "cluster/topics/message.h"

namespace vigil::cluster {

/// Of a query, at most.
inline constexpr std::size_t kQueryTopics = 64;

struct ReplayQuery {
  /// Beginnings of topics, at least one.
  std::vector<std::string> topics;
  /// Events after this position; nothing for none at all, which tells where the newest is.
  std::optional<std::uint64_t> after = 0;
  /// Only events of this time or later, in milliseconds since 1970.
  std::optional<std::int64_t> since_ms;
  /// With a single whole topic: from this sequence number on.
  std::optional<std::uint64_t> from;
  /// Events in one answer at most.
  std::size_t limit = 256;
};

struct ReplayPage {
  /// Tells one outbox from another: positions and sequences of another mean nothing here.
  std::string outbox;
  /// In the order of their positions.
  std::vector<TopicMessage> events;
  /// Everything up to here was looked at: the `after` of the next query.
  std::uint64_t cursor = 0;
  /// Whether there is more after `cursor`.
  bool more = false;
  /// The position of the newest event of all topics; 0 if there never was one.
  std::uint64_t newest = 0;
};

/// Why a query was not answered.
struct ReplayRefusal {
  std::string reason;
};

/// A query as the JSON text of a request, and back. `parse_query` takes whatever comes over the wire: what is
/// no query is refused with the reason.
std::string query_text(const ReplayQuery& query);
std::variant<ReplayQuery, ReplayRefusal> parse_query(std::string_view text);

/// The parts of an answer without its tag: a header, and four for each event. Takes whatever comes over the
/// wire: nothing unless it is an answer.
std::optional<std::variant<ReplayPage, ReplayRefusal>> parse_answer(std::span<const zmq::message_t> parts);

/// Where events are kept.
class ReplaySource {
 public:
  virtual ~ReplaySource() = default;
  /// Why this is not what can be asked for here; `replay` is asked for nothing of that.
  virtual std::optional<ReplayRefusal> refuse(const ReplayQuery&) const { return std::nullopt; }
  /// May throw when it cannot be read now.
  virtual ReplayPage replay(const ReplayQuery& query) = 0;
};

/// Answers queries. One owner at a time; not thread-safe.
class ReplayServer {
 public:
  struct Options {
    /// "tcp://127.0.0.1:5557"; port 0 takes any free one.
    std::string endpoint;
    std::optional<CurveServer> curve = std::nullopt;
    GateOptions gate = {};
    /// A client that asks nothing for so long is disconnected (TCP only).
    std::chrono::milliseconds silence{300'000};
    /// A call of `serve` begins no further answer when it has taken so long.
    std::chrono::milliseconds at_once{5};
    /// Tells that time; outlives the server. The machine's, if there is none.
    const base::Clock* clock = nullptr;
  };

  /// Throws TopicError, as when the port is in use. The source has to outlive it.
  ReplayServer(const Options& options, ReplaySource& source);

  const std::string& endpoint() const { return entrance_.endpoint(); }

  /// Answers the queries that have come, each client's in turn, and not more than some of all, nor for longer
  /// than some time. To be called regularly; does not block. A client that does not read its answers loses
  /// them.
  void serve();

 private:
  void answer(std::vector<zmq::message_t> request);

  ReplaySource& source_;
  const base::Clock& clock_;
  std::chrono::milliseconds at_once_;
  // Outlives the context, which may still send.
  Entrance entrance_;
  zmq::context_t context_;
  std::optional<AllowList> allowed_;
  zmq::socket_t socket_;
};

/// Sends queries and receives their answers; reconnects by itself. One owner at a time; not thread-safe.
class ReplayClient {
 public:
  struct Options {
    std::string endpoint;
    std::optional<CurveClient> curve = std::nullopt;
  };

  /// Throws TopicError for an endpoint that makes no sense.
  explicit ReplayClient(const Options& options);

  /// Asks; the answer of an earlier query is not waited for any more. False while there is no connection.
  bool ask(const ReplayQuery& query);

  /// The answer to the last query, if it has come.
  std::optional<std::variant<ReplayPage, ReplayRefusal>> take_answer();

  /// To be polled.
  zmq::socket_t& socket() { return socket_; }
  ConnectionMonitor& connection() { return connection_; }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  ConnectionMonitor connection_;
  std::uint64_t asked_ = 0;
};

}  // namespace vigil::cluster
