// What travels on topics: four parts, the topic, the sequence number and the position in decimal digits, and
// the body. docs/topics.md is the form for others.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include <zmq.hpp>

namespace vigil::cluster {

/// A socket that cannot be opened: one line with its endpoint and the reason.
class TopicError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct TopicMessage {
  /// Ends in a delimiter, since subscriptions match prefixes.
  std::string topic;
  /// 1, 2, 3, … for each topic, over restarts.
  std::uint64_t sequence = 0;
  std::string body;
  /// The place in the order of all topics' events; ascending, with gaps.
  std::uint64_t position = 0;
};

inline constexpr std::size_t kMessageParts = 4;

inline std::string_view view_of(const zmq::message_t& part) {
  return {part.data<char>(), part.size()};
}

/// Nothing unless these are the parts of a message.
std::optional<TopicMessage> parse_message(std::span<const zmq::message_t> parts);

/// Sends it, or nothing of it if the socket cannot take it now; `more`: parts of the same message follow.
bool send_message(zmq::socket_t& socket, const TopicMessage& message, bool more = false);

/// Digits alone; nothing if they are none, or too many.
std::optional<std::uint64_t> parse_number(std::string_view digits);

}  // namespace vigil::cluster
