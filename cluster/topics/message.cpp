#include "cluster/topics/message.h"

#include <charconv>

namespace vigil::cluster {

std::optional<std::uint64_t> parse_number(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || rest != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<TopicMessage> parse_message(std::span<const zmq::message_t> parts) {
  if (parts.size() != kMessageParts) return std::nullopt;
  const auto sequence = parse_number(view_of(parts[1]));
  const auto position = parse_number(view_of(parts[2]));
  if (!sequence || !position) return std::nullopt;
  return TopicMessage{std::string(view_of(parts[0])), *sequence, std::string(view_of(parts[3])), *position};
}

bool send_message(zmq::socket_t& socket, const TopicMessage& message, bool more) {
  const std::string sequence = std::to_string(message.sequence);
  const std::string position = std::to_string(message.position);
  const auto part = [](const std::string& bytes) { return zmq::const_buffer(bytes.data(), bytes.size()); };
  // A socket that takes the first part takes all.
  if (!socket.send(part(message.topic), zmq::send_flags::sndmore | zmq::send_flags::dontwait)) return false;
  socket.send(part(sequence), zmq::send_flags::sndmore);
  socket.send(part(position), zmq::send_flags::sndmore);
  socket.send(part(message.body), more ? zmq::send_flags::sndmore : zmq::send_flags::none);
  return true;
}

}  // namespace vigil::cluster
