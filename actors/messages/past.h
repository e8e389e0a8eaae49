// What is asked of what cameras remember, and what comes back. Plain, and free of CAF.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>

#include "base/clock.h"
#include "engine/kv/history/page_info.h"
#include "engine/memory/search.h"

namespace vigil::actors {

/// What who asks may.
struct PastRights {
  /// Whose cameras are there for him; nothing: everybody's.
  std::optional<std::set<std::string>> tenants;
  /// Whether he may erase what they remember.
  bool erase = false;
  friend bool operator==(const PastRights&, const PastRights&) = default;
};

struct PastCamera {
  std::string name;
  /// Nothing: whosever it is, if that is one of those that are there for who asks.
  std::optional<std::string> tenant;
  friend bool operator==(const PastCamera&, const PastCamera&) = default;
};

struct PastQuestion {
  PastCamera camera;
  std::string question;
  /// The yes/no question that tells whether a window has anything to do with it; empty: it is made of
  /// `question`.
  std::string about;
  history::WallRange wall;
  memory::Method method = memory::Method::windows;
  /// Of the answer, at most.
  int max_tokens = 64;
};

/// What is remembered of one camera, or of all that are there for who asks.
struct PastList {
  std::optional<PastCamera> camera;
};

/// Whether all that is remembered can be read.
struct PastVerify {
  std::optional<PastCamera> camera;
};

struct PastErasure {
  PastCamera camera;
  history::WallRange wall;
};

struct PastRequest {
  /// The asker's name for it, which comes back with its answer.
  std::uint64_t ticket = 0;
  PastRights rights;
  std::variant<PastQuestion, PastList, PastVerify, PastErasure> what;
  /// When nobody waits for it any more.
  base::Clock::TimePoint deadline = base::Clock::TimePoint::max();
};
using PastRequestPtr = std::shared_ptr<const PastRequest>;

/// answer: the last word, JSON; progress: how far it has come, JSON, and more follows; the others are last
/// words in a line, as the protocol has them (cluster/asks/README.md).
enum class PastOutcome : std::uint8_t {
  answer,
  progress,
  bad_request,
  forbidden,
  unavailable,
  busy,
  too_late
};

struct PastReply {
  std::uint64_t ticket = 0;
  PastOutcome outcome = PastOutcome::answer;
  std::string text;
  /// Of `busy`: when it is worth asking again.
  std::chrono::milliseconds retry_after{};
  /// Of a refusal: nothing is remembered here of a camera that is so called, or nothing that was asked for.
  bool is_unknown = false;
};

}  // namespace vigil::actors
