// What worlds are made of: for their own sources alone.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include "tests/fleet/events/events_world.h"

namespace vigil::fleet::testing {

inline constexpr std::int64_t kPatience = 300;
inline constexpr std::size_t kMost = 24;
inline constexpr std::size_t kStagedBytes = 1 << 20;

inline std::string body_of(const std::string& unit, std::uint64_t fence, std::uint64_t sequence, bool ends) {
  const std::size_t dash = unit.rfind('-');
  return nlohmann::json{{"type", "dev.vigil.alert.v1"},
                        {"id", unit},
                        {"time", "2026-01-01T00:00:00Z"},
                        {"sequence", sequence},
                        {"fence", fence},
                        {"data", {{"episode", unit.substr(0, dash)}, {"phase", ends ? "end" : "new"}}}}
      .dump();
}

inline std::uint64_t fence_in(const std::string& body) {
  return nlohmann::json::parse(body).at("fence");
}
inline std::string unit_in(const std::string& body) {
  return nlohmann::json::parse(body).at("id");
}

struct World::Gateway {
  std::string name;
  bool alive = false;
  /// Whether it hears of the registry, and the registry of it.
  bool cut_off = false;
  std::string incarnation;
  std::unique_ptr<actors::Outbox> disk;
  std::unique_ptr<GatewayDesk> desk;
  std::unique_ptr<GatewayJoining> joining;
  std::size_t view = 0;
  std::uint64_t runs = 0;
  /// Of its joinings.
  std::uint64_t generation = 0;
  std::uint64_t looked = 0;
  std::string looked_of;
  std::string traced;
  bool was_true = false;
};

struct World::Maker {
  std::string name;
  std::size_t number = 0;
  bool alive = false;
  std::unique_ptr<MakerDesk> desk;
  std::size_t view = 0;
  std::uint64_t runs = 0;
  std::unique_ptr<actors::Outbox> disk;
  /// What is on it of a run before this one: up to this position.
  std::uint64_t left_behind = 0;
  /// Series that this run has taken over.
  std::set<std::string> lived;
  /// As far as it knows.
  std::map<std::string, std::uint64_t> owned;
  std::set<std::string> open;
  std::map<std::string, std::deque<std::string>> waiting;
  std::uint64_t published = 0;
};

}  // namespace vigil::fleet::testing
