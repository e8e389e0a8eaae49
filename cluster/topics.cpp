#include "cluster/topics.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <zmq_addon.hpp>

namespace vigil::cluster {
namespace {

// Bounds of one call of `serve`: a subscriber that asks again and again gets no more than its share, and last
// events do not come faster than a subscriber can read.
constexpr int kSubscriptionsAtOnce = 256;
constexpr std::size_t kGreetings = 1024;
constexpr int kLastEventsAtOnce = 500;
// Of what a subscriber sends, which is prefixes.
constexpr std::int64_t kRequestBytes = 8192;

}  // namespace

TopicPublisher::TopicPublisher(const Options& options) : socket_(context_, zmq::socket_type::xpub) {
  try {
    socket_.set(zmq::sockopt::sndhwm, options.high_water_mark);
    socket_.set(zmq::sockopt::linger, static_cast<int>(options.linger.count()));
    // Every subscription is passed up, also one that another subscriber has already made: it wants its last
    // events, too.
    socket_.set(zmq::sockopt::xpub_verbose, true);
    socket_.set(zmq::sockopt::xpub_nodrop, true);
    socket_.set(zmq::sockopt::maxmsgsize, kRequestBytes);
    socket_.set(zmq::sockopt::tcp_keepalive, 1);
    if (options.curve) {
      allowed_.emplace(context_, options.curve->allow);
      use_curve(socket_, *options.curve);
    }
    socket_.bind(options.endpoint);
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& error) {
    throw TopicError("cannot publish on " + options.endpoint + ": " + error.what());
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
  for (int i = 0; i < kSubscriptionsAtOnce && greetings_.size() < kGreetings; ++i) {
    if (!socket_.recv(request, zmq::recv_flags::dontwait)) return;
    const std::string_view bytes = view_of(request);
    if (bytes.empty() || bytes.front() != '\1') continue;
    std::string prefix(bytes.substr(1));
    // One that waits from its beginning serves both.
    const bool waits = std::any_of(greetings_.begin(), greetings_.end(), [&](const Greeting& each) {
      return each.prefix == prefix && each.next == prefix;
    });
    if (!waits) greetings_.push_back({prefix, prefix});
  }
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
