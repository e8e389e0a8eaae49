#include "cluster/asks/server.h"

#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>

#include <zmq_addon.hpp>

#include "cluster/process/clock.h"
#include "cluster/sockets/tcp_address.h"

namespace vigil::cluster {
namespace {

// A call of `serve` takes up no more: the rest waits for the next one.
constexpr int kRequestsAtOnce = 32;
// Replies that wait for a client in ZeroMQ, beside the one that is being sent.
constexpr int kRepliesWaiting = 2;
// Requests of one client that wait to be taken up.
constexpr int kRequestsWaiting = 16;
// Frames of a request: an identity of a proxy or two, REQ's empty one, a tag, a request.
constexpr int kRequestFrames = 8;
// What a frame has more where it is encrypted, with room to spare.
constexpr std::size_t kEncryptionBytes = 1024;

const SystemClock kMachinesClock;

/// Why an endpoint is none for questions; nothing if it is one.
std::optional<std::string> unfit(const std::string& endpoint, bool keys) {
  if (endpoint.starts_with("ipc://")) return std::nullopt;
  if (!endpoint.starts_with("tcp://")) return "expected tcp:// or ipc://";
  if (keys || parse_tcp(endpoint).address().is_loopback()) return std::nullopt;
  return "without keys, questions are for this machine alone (loopback or ipc://)";
}

AskRefusal bad_request(std::string reason) {
  return {AskRefusalType::bad_request, std::move(reason)};
}

/// What a client may be sent.
AskReply fitting(AskReply reply) {
  const auto* answer = std::get_if<AskAnswer>(&reply);
  if (answer == nullptr || answer->body.size() <= kAskAnswerBytes) return reply;
  return AskRefusal{AskRefusalType::unavailable, "the answer has " + std::to_string(answer->body.size()) +
                                                     " bytes; " + std::to_string(kAskAnswerBytes) +
                                                     " may be sent"};
}

}  // namespace

AskServer::AskServer(const Options& options)
    : clock_(options.clock == nullptr ? static_cast<const base::Clock&>(kMachinesClock) : *options.clock),
      tickets_(options.limits),
      keys_(options.curve.has_value()),
      socket_(context_, zmq::socket_type::router),
      connections_(context_, socket_, "asks", ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED) {
  const std::string cannot = "cannot take questions on " + options.endpoint + ": ";
  try {
    if (const auto reason = unfit(options.endpoint, keys_)) throw AskError(cannot + *reason);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::sndhwm, kRepliesWaiting);
    socket_.set(zmq::sockopt::rcvhwm, kRequestsWaiting);
    socket_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kAskRequestBytes + kEncryptionBytes));
    // Tells a client that has gone from one that does not read.
    socket_.set(zmq::sockopt::router_mandatory, true);
    // No heartbeat: cluster/topics/replay.cpp says why.
    if (keys_) {
      allowed_.emplace(context_, options.curve->allow);
      use_curve(socket_, *options.curve);
    }
    entrance_.open(socket_, options.endpoint, options.gate,
                   limits_of_requests(kAskRequestBytes, kRequestFrames, keys_, options.silence),
                   std::chrono::milliseconds(0));
  } catch (const zmq::error_t& error) {
    throw AskError(cannot + error.what());
  } catch (const std::system_error& error) {
    throw AskError(cannot + error.code().message());
  }
}

// An event comes before anything of the next connection that has the same descriptor, or the same identity.
void AskServer::hear_connections() {
  while (const auto event = connections_.take()) {
    if (event->kind == ZMQ_EVENT_ACCEPTED) {
      open_.insert(event->value);
    } else {
      open_.erase(event->value);
      tickets_.lost(event->value);
    }
  }
}

void AskServer::serve() {
  hear_connections();
  send_held();
  for (const AskTickets::Entry& late : tickets_.expire(clock_.now())) {
    send(late.route, AskRefusal{AskRefusalType::too_late,
                                "no answer within " + std::to_string(late.patience.count()) + " ms"});
  }
  for (int i = 0; i < kRequestsAtOnce; ++i) {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts), zmq::recv_flags::dontwait)) return;
    hear_connections();
    take_up(std::move(parts));
  }
}

void AskServer::send_held() {
  for (const AskTicket ticket : tickets_.held()) {
    const AskTickets::Entry& entry = *tickets_.find(ticket);
    if (send(entry.route, *entry.held) != Sent::no_room) tickets_.close(ticket);
  }
}

bool AskServer::reply(AskTicket ticket, AskReply reply) {
  // Or else the next client of its name could get the answer.
  hear_connections();
  AskTickets::Entry* const entry = tickets_.find(ticket);
  if (entry == nullptr || entry->held) return false;
  reply = fitting(std::move(reply));
  const Sent sent = send(entry->route, reply);
  if (is_final(reply)) {
    if (sent == Sent::no_room) {
      entry->held = std::move(reply);
    } else {
      tickets_.close(ticket);
    }
  }
  return sent != Sent::nobody;
}

// A request is the client's identity, which the socket put first, an empty part if the client is a REQ
// socket, a tag that is given back, and the JSON.
void AskServer::take_up(std::vector<zmq::message_t> parts) {
  if (parts.size() < 2) return;
  const bool delimited = parts[1].empty();
  const std::size_t head = delimited ? 2 : 1;
  const int connection = zmq_msg_get(parts[1].handle(), ZMQ_SRCFD);
  // It has left what it said behind: nobody is there to be answered.
  if (!open_.contains(connection)) return;
  const bool formed = parts.size() == head + 2;
  const AskRoute route{.routing_id = parts[0].to_string(),
                       .delimited = delimited,
                       .tag = formed ? parts[head].to_string() : "",
                       .connection = connection};
  Asker who;
  if (keys_) {
    // The property that the allow-list gave it. None cannot be; it would be nobody's key.
    const char* const user = zmq_msg_gets(parts[1].handle(), "User-Id");
    who.key = user == nullptr ? "" : user;
  }
  const char* const chosen = zmq_msg_gets(parts[1].handle(), "Identity");
  std::optional<AskReply> reply;
  if (chosen != nullptr && *chosen != '\0') {
    // By a name that can be chosen, the next one could get what this one was to be told.
    reply = bad_request("the socket's routing id: is the server's to give");
  } else if (!formed) {
    reply = bad_request("expected two parts: a tag and a request");
  } else if (route.tag.empty() || route.tag.size() > kAskTagBytes) {
    reply = bad_request("tag: expected 1 to " + std::to_string(kAskTagBytes) + " bytes");
  } else {
    reply = answer_at_once(route, who, parts[head + 1].to_string());
  }
  // Who has no room for it has asked for more than he reads.
  if (reply) send(route, *reply);
}

/// What needs nobody to be asked; nothing if it has a ticket.
std::optional<AskReply> AskServer::answer_at_once(const AskRoute& route, const Asker& who,
                                                  const std::string& text) {
  auto parsed = parse_request(text);
  if (auto* bad = std::get_if<BadRequest>(&parsed)) return bad_request(std::move(bad->reason));
  if (const auto* cancel = std::get_if<AskCancel>(&parsed)) {
    const bool found = tickets_.cancel(route.routing_id, cancel->tag);
    return AskAnswer{found ? R"({"cancelled": true})" : R"({"cancelled": false})"};
  }
  const bool is_question = std::holds_alternative<AskQuestion>(std::get<AskRequest>(parsed));
  auto opened = tickets_.open(route, who, std::get<AskRequest>(std::move(parsed)), clock_.now());
  if (auto* refusal = std::get_if<AskRefusal>(&opened)) {
    if (is_question && refusal->type == AskRefusalType::busy) ++refused_questions_;
    return std::move(*refusal);
  }
  return std::nullopt;
}

AskServer::Sent AskServer::send(const AskRoute& route, const AskReply& reply) {
  // A socket that takes the first part takes all.
  try {
    const auto first = zmq::send_flags::sndmore | zmq::send_flags::dontwait;
    if (!socket_.send(zmq::buffer(route.routing_id), first)) return Sent::no_room;
  } catch (const zmq::error_t& error) {
    if (error.num() == EHOSTUNREACH) return Sent::nobody;
    throw;
  }
  if (route.delimited) socket_.send(zmq::message_t(), zmq::send_flags::sndmore);
  socket_.send(zmq::buffer(route.tag), zmq::send_flags::sndmore);
  const std::vector<std::string> parts = to_parts(reply);
  for (const std::string& part : parts) {
    socket_.send(zmq::buffer(part),
                 &part == &parts.back() ? zmq::send_flags::none : zmq::send_flags::sndmore);
  }
  return Sent::yes;
}

}  // namespace vigil::cluster
