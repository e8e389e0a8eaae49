#include "cluster/topics/topics.h"

#include <algorithm>
#include <iterator>
#include <system_error>
#include <utility>

#include <zmq_addon.hpp>

namespace vigil::cluster {
namespace {

// Bounds of one call of `serve`: a subscriber that asks again and again gets no more than its share, and last
// events do not come faster than a subscriber can read.
constexpr int kSubscriptionsAtOnce = 4096;
constexpr std::size_t kGreetings = 256;
constexpr int kLastEventsAtOnce = 500;
constexpr std::uint64_t kSubscriptionBytes = 1024;
// Of one frame of a subscriber, a handshake's included.
constexpr std::int64_t kHandshakeBytes = 2048;

}  // namespace

// Beginnings of topics, which are what it has reason to send. Each byte of one costs some 35 bytes of memory,
// and a short one may cost 2 KiB.
PeerLimits TopicPublisher::limits(bool encrypted) {
  PeerLimits limits;
  limits.frame = kSubscriptionBytes;
  limits.parts = 1;
  limits.least_cost = 64;
  limits.allowance = 16 << 10;
  limits.encrypted = encrypted;
  // Heartbeats cannot be told from subscriptions, and go on as long as the connection: one frame a second is
  // free. A subscriber with a key may fill 2 KiB of memory a second that way, until it goes.
  limits.recovery = encrypted ? 64 : 0;
  return limits;
}

TopicPublisher::TopicPublisher(const Options& options) : socket_(context_, zmq::socket_type::xpub) {
  try {
    socket_.set(zmq::sockopt::sndhwm, options.high_water_mark);
    socket_.set(zmq::sockopt::linger, static_cast<int>(options.linger.count()));
    // Every subscription is passed up, also one that another subscriber has already made: it wants its last
    // events, too.
    socket_.set(zmq::sockopt::xpub_verbose, true);
    socket_.set(zmq::sockopt::xpub_nodrop, true);
    socket_.set(zmq::sockopt::maxmsgsize, kHandshakeBytes);
    use_heartbeat(socket_, options.heartbeat);
    // The gate bounds what subscribers send. Where this did, ZeroMQ 4.3.4 would end the process when a
    // heartbeat is due of one that went while its subscriptions waited (src/stream_engine_base.cpp,
    // out_event).
    socket_.set(zmq::sockopt::rcvhwm, 0);
    if (options.curve) {
      allowed_.emplace(context_, options.curve->allow);
      use_curve(socket_, *options.curve);
    }
    entrance_.open(socket_, options.endpoint, options.gate, limits(options.curve.has_value()),
                   options.linger);
  } catch (const zmq::error_t& error) {
    throw TopicError("cannot publish on " + options.endpoint + ": " + error.what());
  } catch (const std::system_error& error) {
    throw TopicError("cannot publish on " + options.endpoint + ": " + error.code().message());
  }
}

bool TopicPublisher::publish(const TopicMessage& message) {
  remember(message);
  return send(message);
}

void TopicPublisher::remember(const TopicMessage& message) {
  last_[message.topic] = message;
}

void TopicPublisher::serve() {
  take_subscriptions();
  int sent = 0;
  while (!greetings_.empty()) {
    Greeting& greeting = greetings_.front();
    auto last = last_.lower_bound(greeting.next);
    for (; last != last_.end() && last->first.starts_with(greeting.prefix); ++last) {
      if (sent++ == kLastEventsAtOnce) {
        greeting.next = last->first;
        return;
      }
      send(last->second);
    }
    greetings_.pop_front();
  }
}

void TopicPublisher::take_subscriptions() {
  zmq::message_t request;
  for (int i = 0; i < kSubscriptionsAtOnce; ++i) {
    if (!socket_.recv(request, zmq::recv_flags::dontwait)) return;
    const std::string_view bytes = view_of(request);
    if (bytes.empty() || bytes.front() != '\1') continue;
    std::string prefix(bytes.substr(1));
    // One that waits from its beginning serves both.
    const bool waits = std::any_of(greetings_.begin(), greetings_.end(), [&](const Greeting& each) {
      return each.prefix == prefix && each.next == prefix;
    });
    if (waits) continue;
    // What is not taken waits in ZeroMQ, without a bound. So one greeting that has all topics stands for all.
    if (greetings_.size() == kGreetings) {
      greetings_.clear();
      prefix.clear();
    }
    greetings_.push_back({prefix, prefix});
  }
}

bool TopicPublisher::has_work() {
  return !greetings_.empty() || (socket_.get(zmq::sockopt::events) & ZMQ_POLLIN) != 0;
}

std::uint64_t TopicPublisher::take_dropped() {
  return std::exchange(dropped_, 0);
}

// The socket refuses what some subscriber has no room for. Then it is sent once more to those who have, and
// the loss of the others, of which the socket would say nothing, is known. It leaves them out by itself until
// they have read.
bool TopicPublisher::send(const TopicMessage& message) {
  if (send_message(socket_, message)) return true;
  // Asking for events makes the socket hear what subscribers have read meanwhile, which it puts off
  // otherwise.
  static_cast<void>(socket_.get(zmq::sockopt::events));
  if (send_message(socket_, message)) return true;
  ++dropped_;
  socket_.set(zmq::sockopt::xpub_nodrop, false);
  const bool sent = send_message(socket_, message);
  socket_.set(zmq::sockopt::xpub_nodrop, true);
  return sent;
}

TopicSubscriber::TopicSubscriber(const Options& options)
    : socket_(context_, zmq::socket_type::sub), connection_(context_, socket_) {
  try {
    socket_.set(zmq::sockopt::rcvhwm, options.high_water_mark);
    socket_.set(zmq::sockopt::maxmsgsize, kReceivedBytes);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::reconnect_ivl, 100);
    socket_.set(zmq::sockopt::reconnect_ivl_max, 2000);
    // A publisher that vanished without a word is noticed.
    socket_.set(zmq::sockopt::heartbeat_ivl, 5000);
    socket_.set(zmq::sockopt::heartbeat_timeout, 15000);
    if (options.curve) use_curve(socket_, *options.curve);
    for (const std::string& prefix : options.prefixes) socket_.set(zmq::sockopt::subscribe, prefix);
    socket_.connect(options.endpoint);
  } catch (const zmq::error_t& error) {
    throw TopicError("cannot subscribe to " + options.endpoint + ": " + error.what());
  }
}

std::optional<TopicMessage> TopicSubscriber::receive(std::chrono::milliseconds timeout) {
  const auto until = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    socket_.set(zmq::sockopt::rcvtimeo,
                static_cast<int>(std::max(left, std::chrono::milliseconds(0)).count()));
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts))) return std::nullopt;
    if (auto message = parse_message(parts)) return message;
    if (left.count() <= 0) return std::nullopt;
  }
}

}  // namespace vigil::cluster
