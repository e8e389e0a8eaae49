#include "cluster/topics.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <string_view>
#include <utility>
#include <vector>

#include <zmq_addon.hpp>

namespace vigil::cluster {
namespace {

std::string_view view_of(const zmq::message_t& part) {
  return {part.data<char>(), part.size()};
}

std::optional<TopicMessage> parse(const std::vector<zmq::message_t>& parts) {
  if (parts.size() != 3) return std::nullopt;
  TopicMessage message;
  message.topic = view_of(parts[0]);
  const std::string_view digits = view_of(parts[1]);
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), message.sequence);
  if (error != std::errc{} || rest != digits.data() + digits.size()) return std::nullopt;
  message.body = view_of(parts[2]);
  return message;
}

}  // namespace

TopicPublisher::TopicPublisher(const Options& options) : socket_(context_, zmq::socket_type::xpub) {
  try {
    socket_.set(zmq::sockopt::sndhwm, options.high_water_mark);
    socket_.set(zmq::sockopt::linger, static_cast<int>(options.linger.count()));
    // Every subscription is passed up, also one that another subscriber has already made: it wants its last
    // events, too.
    socket_.set(zmq::sockopt::xpub_verbose, true);
    socket_.set(zmq::sockopt::xpub_nodrop, true);
    socket_.set(zmq::sockopt::tcp_keepalive, 1);
    socket_.bind(options.endpoint);
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& error) {
    throw TopicError("cannot publish on " + options.endpoint + ": " + error.what());
  }
}

bool TopicPublisher::publish(const TopicMessage& message) {
  Last& last = last_[message.topic];
  last = {message.sequence, message.body};
  return send(message.topic, last);
}

void TopicPublisher::serve() {
  for (zmq::message_t request; socket_.recv(request, zmq::recv_flags::dontwait);) {
    const std::string_view bytes = view_of(request);
    if (bytes.empty() || bytes.front() != '\1') continue;
    const std::string prefix(bytes.substr(1));
    for (auto last = last_.lower_bound(prefix); last != last_.end() && last->first.starts_with(prefix);
         ++last) {
      send(last->first, last->second);
    }
  }
}

std::uint64_t TopicPublisher::take_dropped() {
  return std::exchange(dropped_, 0);
}

// The socket refuses what some subscriber has no room for. Then it is sent once more to those who have, and
// the loss of the others, of which the socket would say nothing, is known. It leaves them out by itself until
// they have read.
bool TopicPublisher::send(const std::string& topic, const Last& last) {
  if (try_send(topic, last)) return true;
  // Asking for events makes the socket hear what subscribers have read meanwhile, which it puts off
  // otherwise.
  static_cast<void>(socket_.get(zmq::sockopt::events));
  if (try_send(topic, last)) return true;
  ++dropped_;
  socket_.set(zmq::sockopt::xpub_nodrop, false);
  const bool sent = try_send(topic, last);
  socket_.set(zmq::sockopt::xpub_nodrop, true);
  return sent;
}

bool TopicPublisher::try_send(const std::string& topic, const Last& last) {
  const std::string sequence = std::to_string(last.sequence);
  const auto part = [](const std::string& bytes) { return zmq::const_buffer(bytes.data(), bytes.size()); };
  if (!socket_.send(part(topic), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
  socket_.send(part(sequence), zmq::send_flags::sndmore);
  socket_.send(part(last.body), zmq::send_flags::none);
  return true;
}

TopicSubscriber::TopicSubscriber(const std::string& endpoint, const std::string& prefix, int high_water_mark)
    : socket_(context_, zmq::socket_type::sub) {
  try {
    socket_.set(zmq::sockopt::rcvhwm, high_water_mark);
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::reconnect_ivl, 100);
    socket_.set(zmq::sockopt::reconnect_ivl_max, 2000);
    // A publisher that vanished without a word is noticed.
    socket_.set(zmq::sockopt::heartbeat_ivl, 5000);
    socket_.set(zmq::sockopt::heartbeat_timeout, 15000);
    socket_.set(zmq::sockopt::subscribe, prefix);
    socket_.connect(endpoint);
  } catch (const zmq::error_t& error) {
    throw TopicError("cannot subscribe to " + endpoint + ": " + error.what());
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
    if (auto message = parse(parts)) return message;
    if (left.count() <= 0) return std::nullopt;
  }
}

Arrival SequenceTracker::see(const std::string& topic, std::uint64_t sequence) {
  const auto [entry, first] = last_.try_emplace(topic, sequence);
  if (first) return {};
  if (sequence <= entry->second) return {Arrival::Kind::duplicate, 0};
  const std::uint64_t missing = sequence - entry->second - 1;
  entry->second = sequence;
  return {missing > 0 ? Arrival::Kind::gap : Arrival::Kind::fresh, missing};
}

}  // namespace vigil::cluster
