// What people ask of a fleet.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <variant>

namespace vigil::fleet {

/// Nodes and counts; and, if they are asked for, cameras by name, a page at a time, or one of them.
struct FleetQuery {
  bool cameras = false;
  /// Those behind this name, so many at most.
  std::string after = {};
  std::size_t limit = kMost;
  /// This one alone, explained; empty: none.
  std::string camera = {};

  static constexpr std::size_t kMost = 1000;
  friend auto operator<=>(const FleetQuery&, const FleetQuery&) = default;
};

/// Of a URL: "", "cameras", "cameras&after=NAME&limit=N", "camera=NAME". Or one line that says what is wrong.
std::variant<FleetQuery, std::string> parse_fleet_query(std::string_view text);
/// What is read back as the same.
std::string print(const FleetQuery& query);

}  // namespace vigil::fleet
