// Asks a running service about the past: a DEALER socket, and which requests are under way on it.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include <zmq.hpp>

#include "base/clock.h"
#include "cluster/asks/answer.h"
#include "cluster/asks/ask_error.h"
#include "cluster/asks/request.h"
#include "cluster/sockets/connection.h"
#include "cluster/sockets/curve.h"

namespace vigil::cluster {

/// Reconnects by itself; a request belongs to the connection by which it went, and is told as `unavailable`
/// when that is lost. One owner at a time; not thread-safe.
class AskClient {
 public:
  struct Options {
    std::string endpoint;
    std::optional<CurveClient> curve = std::nullopt;
    /// Outlives the client. The machine's, if there is none.
    const base::Clock* clock = nullptr;
  };

  using Tag = std::uint64_t;

  /// What came of a request: of the server's, or the refusal that there is instead when none came in time.
  struct Arrival {
    Tag tag = 0;
    AskReply reply;
  };

  /// Throws AskError for an endpoint that makes no sense; one where nobody listens yet is waited for.
  explicit AskClient(const Options& options);

  /// Asks, and waits so long at most. Nothing while there is no connection, or while it takes no more.
  std::optional<Tag> ask(const AskRequest& request, std::chrono::milliseconds timeout);

  /// Withdraws a request: nothing comes of it any more. Of one that is not under way, nothing becomes.
  void cancel(Tag tag);

  /// The next reply to a request that is under way, if there is one. Does not block.
  std::optional<Arrival> take();

  /// Returns when something may have come, or become of the connection, or after so long.
  void wait(std::chrono::milliseconds longest);

  /// What last became of the connection; nothing before anything has.
  std::optional<ConnectionEvent> connection();

 private:
  struct Asked {
    base::Clock::TimePoint deadline{};
    std::chrono::milliseconds timeout{};
  };

  void hear_connection();
  std::optional<Arrival> next_from_server();
  bool send(Tag tag, const std::string& text);
  void end(Tag tag, AskRefusal refusal);

  const base::Clock& clock_;
  std::string endpoint_;
  zmq::context_t context_;
  zmq::socket_t socket_;
  ConnectionMonitor connection_;
  std::optional<ConnectionEvent> last_event_;
  std::map<Tag, Asked> asked_;
  /// Of requests of which nothing will come.
  std::deque<Arrival> ended_;
  Tag last_ = 0;
};

}  // namespace vigil::cluster
