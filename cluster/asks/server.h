// Requests about the past reach a running service: a ROUTER socket that takes them, and sends what whoever
// answers them has to say, when he has it. cluster/asks/README.md is the protocol for others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <zmq.hpp>

#include "base/clock.h"
#include "cluster/asks/answer.h"
#include "cluster/asks/ask_error.h"
#include "cluster/asks/request.h"
#include "cluster/asks/tickets.h"
#include "cluster/sockets/curve.h"
#include "cluster/sockets/gate.h"
#include "cluster/sockets/socket_monitor.h"

namespace vigil::cluster {

/// Logs nothing of what is asked: of that, who, which camera and which times are the answerer's to log. One
/// owner at a time; not thread-safe.
class AskServer {
 public:
  struct Options {
    /// "tcp://127.0.0.1:5558"; port 0 takes any free one. Off loopback only with `curve`.
    std::string endpoint;
    /// Its keys are who asks: `allow` is of those that `Permissions` knows.
    std::optional<CurveServer> curve = std::nullopt;
    /// Each may have answers of 3 MiB waiting in ZeroMQ.
    GateOptions gate = {.connections = 64, .connections_of_address = 16};
    AskLimits limits = {};
    /// A client that says nothing for so long is disconnected (TCP only): longer than any request may take,
    /// since who waits for an answer has nothing to say.
    std::chrono::milliseconds silence{900'000};
    /// Outlives the server. The machine's, if there is none.
    const base::Clock* clock = nullptr;
  };

  /// Throws AskError: when the port is in use, or an endpoint off loopback has no keys.
  explicit AskServer(const Options& options);

  const std::string& endpoint() const { return entrance_.endpoint(); }

  /// Takes up what has come, each client's in turn, and not more than some of all; tells those whose time is
  /// over. To be called regularly; does not block.
  void serve();

  /// Requests that are to be answered. Whether the asker may (`rights_of`) is the answerer's to judge.
  std::vector<AskedRequest> take_requests() { return tickets_.take_untaken(); }

  /// Those of them that are not to be answered any more: late, withdrawn, or of a client that has gone. To be
  /// called regularly.
  std::vector<GivenUpAsk> take_given_up() { return tickets_.take_given_up(); }

  /// Questions that were told to come back, since as many requests as may be were under way, since this was
  /// asked last.
  std::size_t take_refused_questions() { return std::exchange(refused_questions_, 0); }

  /// Sends a word on a request; unless it is a progress, the last one. False if nobody waits for it any more.
  /// A last word that its client has no room for waits until the deadline of the request, a progress is left
  /// out. An answer of more than 1 MiB is told as `unavailable`.
  bool reply(AskTicket ticket, AskReply reply);

 private:
  enum class Sent : std::uint8_t { yes, no_room, nobody };

  void hear_connections();
  void send_held();
  void take_up(std::vector<zmq::message_t> parts);
  std::optional<AskReply> answer_at_once(const AskRoute& route, const Asker& who, const std::string& text);
  Sent send(const AskRoute& route, const AskReply& reply);

  const base::Clock& clock_;
  AskTickets tickets_;
  std::size_t refused_questions_ = 0;
  bool keys_;
  // Outlives the context, which may still send.
  Entrance entrance_;
  zmq::context_t context_;
  std::optional<AllowList> allowed_;
  zmq::socket_t socket_;
  SocketMonitor connections_;
  /// Descriptors of the connections that stand.
  std::set<int> open_;
};

}  // namespace vigil::cluster
