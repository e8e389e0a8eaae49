// What comes back to who asks: an answer, how far one has come, or why there is none.
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

namespace vigil::cluster {

/// Of the body of an answer, at most.
inline constexpr std::size_t kAskAnswerBytes = 1 << 20;

enum class AskRefusalType : std::uint8_t {
  /// It makes no sense, or there is no such camera.
  bad_request,
  /// The asker may not.
  forbidden,
  /// It cannot be answered here now.
  unavailable,
  /// Too much is being asked at once.
  busy,
  /// The asker's time, or the server's, is over.
  too_late
};
/// As it is written, such as "bad_request".
std::string_view name_of(AskRefusalType type);

/// The last word on a request: JSON of the answerer's, of which nothing is known here.
struct AskAnswer {
  std::string body;
  bool operator==(const AskAnswer&) const = default;
};

/// How far an answer has come; more follows. JSON as well.
struct AskProgress {
  std::string body;
  bool operator==(const AskProgress&) const = default;
};

/// The last word, too.
struct AskRefusal {
  AskRefusalType type = AskRefusalType::unavailable;
  /// One line.
  std::string message;
  /// When it is worth asking again.
  std::optional<std::chrono::milliseconds> retry_after = std::nullopt;
  bool operator==(const AskRefusal&) const = default;
};

using AskReply = std::variant<AskAnswer, AskProgress, AskRefusal>;

/// Whether nothing follows it.
inline bool is_final(const AskReply& reply) {
  return !std::holds_alternative<AskProgress>(reply);
}

/// The parts of a reply without its tag: a header, and the body if it has one.
std::vector<std::string> to_parts(const AskReply& reply);

/// Takes whatever comes over the wire: nothing unless it is a reply, whose body is JSON and not too long.
std::optional<AskReply> parse_reply(std::span<const zmq::message_t> parts);

}  // namespace vigil::cluster
