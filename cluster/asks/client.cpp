#include "cluster/asks/client.h"

#include <array>
#include <charconv>
#include <iterator>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <zmq_addon.hpp>

#include "cluster/process/clock.h"

namespace vigil::cluster {
namespace {

const SystemClock kClientsClock;

// What a frame has more where it is encrypted, with room to spare.
constexpr std::size_t kEncryption = 1024;

/// The number in a tag, if it is written as ours are.
std::optional<AskClient::Tag> tag_of(std::string_view digits) {
  AskClient::Tag tag = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), tag);
  return std::to_string(tag) == digits ? std::optional(tag) : std::nullopt;
}

}  // namespace

AskClient::AskClient(const Options& options)
    : clock_(options.clock == nullptr ? static_cast<const base::Clock&>(kClientsClock) : *options.clock),
      endpoint_(options.endpoint),
      socket_(context_, zmq::socket_type::dealer),
      connection_(context_, socket_) {
  try {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::maxmsgsize, static_cast<std::int64_t>(kAskAnswerBytes + kEncryption));
    // A request belongs to a connection that stands.
    socket_.set(zmq::sockopt::immediate, true);
    socket_.set(zmq::sockopt::reconnect_ivl, 100);
    socket_.set(zmq::sockopt::reconnect_ivl_max, 2000);
    socket_.set(zmq::sockopt::heartbeat_ivl, 5000);
    socket_.set(zmq::sockopt::heartbeat_timeout, 15000);
    if (options.curve) use_curve(socket_, *options.curve);
    socket_.connect(options.endpoint);
  } catch (const zmq::error_t& error) {
    throw AskError("cannot ask " + options.endpoint + ": " + error.what());
  }
}

void AskClient::wait(std::chrono::milliseconds longest) {
  std::array<zmq::pollitem_t, 2> items = {
      {{socket_.handle(), 0, ZMQ_POLLIN, 0}, {connection_.socket().handle(), 0, ZMQ_POLLIN, 0}}};
  if (ended_.empty()) zmq::poll(items, longest);
}

std::optional<ConnectionEvent> AskClient::connection() {
  hear_connection();
  return last_event_;
}

// Before anything is sent, so that what a connection lost is not what goes by the next one.
void AskClient::hear_connection() {
  while (const auto event = connection_.take()) {
    // Why it was not let in, although it is tried again and again.
    const bool known = last_event_ == ConnectionEvent::refused || last_event_ == ConnectionEvent::failed;
    if (event != ConnectionEvent::lost || !known) last_event_ = event;
    if (event == ConnectionEvent::up) continue;
    while (!asked_.empty()) {
      end(asked_.begin()->first,
          {AskRefusalType::unavailable, "the connection to " + endpoint_ + " was lost"});
    }
  }
}

void AskClient::end(Tag tag, AskRefusal refusal) {
  asked_.erase(tag);
  ended_.push_back({tag, std::move(refusal)});
}

bool AskClient::send(Tag tag, const std::string& text) {
  const std::string digits = std::to_string(tag);
  if (!socket_.send(zmq::buffer(digits), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
  socket_.send(zmq::buffer(text), zmq::send_flags::none);
  return true;
}

std::optional<AskClient::Tag> AskClient::ask(const AskRequest& request, std::chrono::milliseconds timeout) {
  hear_connection();
  if (last_event_ != ConnectionEvent::up) return std::nullopt;
  if (!send(last_ + 1, to_text(request))) return std::nullopt;
  ++last_;
  asked_[last_] = {clock_.now() + timeout, timeout};
  return last_;
}

void AskClient::cancel(Tag tag) {
  if (asked_.erase(tag) == 0) return;
  // Its answer is nobody's. A server that does not hear of it hears of the deadline, or of the connection.
  if (send(last_ + 1, to_text(AskCancel{std::to_string(tag)}))) ++last_;
}

std::optional<AskClient::Arrival> AskClient::next_from_server() {
  for (;;) {
    std::vector<zmq::message_t> parts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts), zmq::recv_flags::dontwait))
      return std::nullopt;
    const auto tag = tag_of(parts[0].to_string_view());
    const auto asked = tag ? asked_.find(*tag) : asked_.end();
    if (asked == asked_.end()) continue;
    auto reply = parse_reply(std::span(parts).subspan(1));
    if (!reply)
      reply = AskRefusal{AskRefusalType::unavailable, "what came from " + endpoint_ + " is no reply"};
    // However much is told of how far it has come: its time is over.
    if (!is_final(*reply) && clock_.now() >= asked->second.deadline) return std::nullopt;
    if (is_final(*reply)) asked_.erase(asked);
    return Arrival{*tag, std::move(*reply)};
  }
}

std::optional<AskClient::Arrival> AskClient::take() {
  // What has come counts, also of a connection that was lost since, and of a request whose time is over.
  if (auto arrival = next_from_server()) return arrival;
  hear_connection();
  const auto now = clock_.now();
  for (auto each = asked_.begin(); each != asked_.end();) {
    const auto [tag, asked] = *each++;
    if (now < asked.deadline) continue;
    end(tag, {AskRefusalType::too_late, "no answer within " + std::to_string(asked.timeout.count()) + " ms"});
    if (send(last_ + 1, to_text(AskCancel{std::to_string(tag)}))) ++last_;
  }
  if (ended_.empty()) return std::nullopt;
  Arrival arrival = std::move(ended_.front());
  ended_.pop_front();
  return arrival;
}

}  // namespace vigil::cluster
