// What can be asked of a running service about the past, as the JSON text of a request, and back.
// cluster/asks/README.md is the protocol for others.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace vigil::cluster {

/// Of a request that a server reads, at most.
inline constexpr std::size_t kAskRequestBytes = 32 << 10;
/// Of each of the questions in it, at most.
inline constexpr std::size_t kAskQuestionBytes = 4 << 10;
/// Of the tag by which its answer comes, at most.
inline constexpr std::size_t kAskTagBytes = 64;

/// By what the past is searched for an answer; what each does is the answerer's to say.
enum class AskMethod : std::uint8_t { windows, compose, exhaustive, clusters, rekv };
inline constexpr std::array kAskMethods{AskMethod::windows, AskMethod::compose, AskMethod::exhaustive,
                                        AskMethod::clusters, AskMethod::rekv};
/// As it is written, such as "windows".
std::string_view name_of(AskMethod method);

/// What a camera has seen between two times, both in milliseconds since 1970.
struct AskQuestion {
  std::string camera;
  /// Whose camera is meant; nothing for whosever it is.
  std::optional<std::string> tenant = std::nullopt;
  std::string question;
  /// The yes/no question by which windows are found; nothing for one that is made of `question`.
  std::optional<std::string> about = std::nullopt;
  std::int64_t from_ms = 0;
  std::int64_t to_ms = 0;
  std::optional<AskMethod> method = std::nullopt;
  /// Of the answer, at most.
  std::optional<int> max_tokens = std::nullopt;
  /// How long the asker waits; nothing for as long as the server lets it.
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  bool operator==(const AskQuestion&) const = default;
};

/// What is remembered: of one camera, or of all that the asker may ask about, or of those of a tenant.
struct MemoryList {
  std::optional<std::string> camera = std::nullopt;
  std::optional<std::string> tenant = std::nullopt;
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  bool operator==(const MemoryList&) const = default;
};

/// Whether all of that can be read.
struct MemoryVerify {
  std::optional<std::string> camera = std::nullopt;
  std::optional<std::string> tenant = std::nullopt;
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  bool operator==(const MemoryVerify&) const = default;
};

/// Forgets what a camera has seen: between two times, since one, until one, or all of it.
struct MemoryErase {
  std::string camera;
  /// As a question's.
  std::optional<std::string> tenant = std::nullopt;
  std::optional<std::int64_t> from_ms = std::nullopt;
  std::optional<std::int64_t> to_ms = std::nullopt;
  std::optional<std::chrono::milliseconds> timeout = std::nullopt;
  bool operator==(const MemoryErase&) const = default;
};

using AskRequest = std::variant<AskQuestion, MemoryList, MemoryVerify, MemoryErase>;

/// The camera that it names, if it names one.
std::optional<std::string_view> camera_of(const AskRequest& request);
/// How long the asker waits, if he says so.
std::optional<std::chrono::milliseconds> timeout_of(const AskRequest& request);
/// The tenant that it names, if it names one.
std::optional<std::string_view> tenant_of(const AskRequest& request);

/// Withdraws the request of this tag.
struct AskCancel {
  std::string tag;
  bool operator==(const AskCancel&) const = default;
};

/// Why a text is no request: one line that names the key.
struct BadRequest {
  std::string reason;
};

/// On one line.
std::string to_text(const AskRequest& request);
std::string to_text(const AskCancel& cancel);

/// Takes whatever comes over the wire. A function of the text alone: whether there is such a camera, and who
/// asks, others decide.
std::variant<AskRequest, AskCancel, BadRequest> parse_request(std::string_view text);

}  // namespace vigil::cluster
