// What two nodes tell each other first, and why they may not fit.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/duration.h"
#include "cluster/membership/node_record.h"

namespace vigil::cluster {

struct Greeting {
  /// The fleet's name.
  std::string fleet;
  NodeRecord node;
  /// When it was written.
  base::Clock::WallTime wall;
  /// Whether it wants to know if it is reached where it says that it is (`GreetingAnswer::not_reached`).
  bool asks_whether_reached = false;
};

std::string print(const Greeting& greeting);
/// Throws std::runtime_error.
Greeting parse_greeting(std::string_view json);

/// What a node answers to a greeting: its own, or why it refuses whoever greeted.
struct GreetingAnswer {
  std::optional<Greeting> greeting;
  std::string refusal;
  /// If that was asked: why whoever greeted is not reached at `NodeRecord::control`; empty: it is. Nothing:
  /// of a build that does not tell.
  std::optional<std::string> not_reached = {};
};
std::string print(const GreetingAnswer& answer);
/// Throws std::runtime_error.
GreetingAnswer parse_answer(std::string_view json);

/// How far two nodes' clocks may be apart: times of the one are shown beside times of the other.
inline constexpr base::Duration kClockTolerance = std::chrono::seconds(2);

/// Why these two cannot be of one fleet, for a person who has to mend it; nothing if they can. `theirs`: from
/// another node, heard at `heard` after a way there and back of `way`. The reason says which side has what,
/// so that either may log it. Of one that came unasked it is not known how long it was under way, or waited
/// here while this process stood still: without a way, no clock is found to be behind.
std::optional<std::string> misfit(const Greeting& mine, const Greeting& theirs, base::Clock::WallTime heard,
                                  std::optional<base::Duration> way);

/// Whether that is why, also as the other side has told it.
bool is_about_clocks(std::string_view misfit);

/// The newest form of messages that both speak, of two that fit.
std::uint32_t agreed_protocol(const ProtocolRange& mine, const ProtocolRange& theirs);

}  // namespace vigil::cluster
