// What a node of a fleet tells about itself, as series of Prometheus beside those of its process.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "actors/status/metrics.h"

namespace vigil::actors {

/// A node in its fleet, as it knows it.
struct FleetFigures {
  /// Its lease holds; it plans; the registry answered when it was asked last.
  bool is_member = false;
  bool is_planner = false;
  bool registry_answers = false;
  /// Nodes that are there, by state, as the registry last told.
  std::map<std::string, std::size_t> nodes = {};
  /// Cameras that this node was given, but for those that it hands over. Of the node that plans: those of the
  /// fleet that are on their way, those that no node watches, and those of which it watches less, or that are
  /// refused, since it has no room for them.
  std::size_t owned = 0;
  std::size_t handing_over = 0;
  std::size_t unplaced = 0;
  std::size_t degraded = 0;
  std::size_t refused = 0;
  /// Names the configuration that it runs by; empty if that is not known.
  std::string configuration = {};
  friend bool operator==(const FleetFigures&, const FleetFigures&) = default;
};

/// Bulk bytes between this node and another, in one direction, since they know each other.
struct LinkFlow {
  std::uint64_t bytes = 0;
  /// Under way now.
  std::uint64_t waiting_bytes = 0;
  /// Streams that ended, by why.
  std::map<std::string, std::uint64_t> resets = {};
};

struct LinkFigures {
  /// Both directions stand.
  bool is_up = false;
  LinkFlow outgoing;
  LinkFlow incoming;
  /// How long sends have found no credit.
  std::chrono::duration<double> blocked{0};
  /// Attempts at a connection to it; and of these, those that came to nothing, by why.
  std::uint64_t dials = 0;
  std::map<std::string, std::uint64_t> failed_dials = {};
};

/// The metrics `vigil_fleet_` and `vigil_link_`, in the registry of others. What belongs to a node that is
/// gone is gone, and begins at 0 if it comes back. Thread-safe.
class FleetSeries {
 public:
  explicit FleetSeries(Metrics& metrics);
  ~FleetSeries();
  FleetSeries(const FleetSeries&) = delete;
  FleetSeries& operator=(const FleetSeries&) = delete;

  void tell(const FleetFigures& figures);
  /// Of every other node that is there, by name; those that are not in it any more are forgotten.
  void links(const std::map<std::string, LinkFigures>& links);
  /// The registry took so long for an answer.
  void registry_answered(std::chrono::duration<double> time);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace vigil::actors
