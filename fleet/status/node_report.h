// What a node tells of itself, again and again: to its metrics, and to its page and probes.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "actors/status/fleet_series.h"
#include "actors/status/status_board.h"
#include "cluster/bulk/bulk.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/membership/node_record.h"
#include "cluster/planning/plan_keeper.h"

namespace vigil::fleet {

actors::FleetFigures figures_of(const cluster::FleetMember& member, const cluster::PlanKeeper& plan);

/// One that was let in once stays ready while it is cut off: it goes on with what it has, and with the
/// registry gone, all nodes are. One that waits for the fleet's configuration is not, nor is one that ends.
actors::FleetStanding standing_of(const std::string& fleet, const cluster::FleetMember& member);

/// Of every other node that is there and with which this one deals: links to those that are not known are
/// down.
std::map<std::string, actors::LinkFigures> links_of(
    const std::map<std::string, cluster::NodeRecord>& nodes,
    const std::function<bool(const std::string& node)>& deals_with,
    const std::map<std::string, cluster::BulkCounters>& bulk);

/// Not thread-safe.
class NodeReport {
 public:
  struct Options {
    std::string fleet;
    /// Nobody else tells in which phase this process is: it reads no cameras.
    bool tells_phase = false;
  };

  /// `series`: may be null. Both have to outlive it.
  NodeReport(actors::StatusBoard& board, actors::FleetSeries* series, Options options)
      : board_(board), series_(series), options_(std::move(options)) {}

  /// It is alive. To be called several times within `kPatience`.
  void tell(const cluster::FleetMember& member, const cluster::PlanKeeper& plan);
  /// Whether links are due, which are many.
  bool wants_links() { return series_ != nullptr && calls_++ % 4 == 0; }
  void links(const std::map<std::string, actors::LinkFigures>& links) { series_->links(links); }
  /// It ends.
  void end();

  static constexpr base::Duration kPatience = std::chrono::seconds(10);

 private:
  void tell_phase(const actors::FleetStanding& standing);

  actors::StatusBoard& board_;
  actors::FleetSeries* const series_;
  const Options options_;
  bool was_member_ = false;
  actors::RunPhase phase_ = actors::RunPhase::starting;
  std::size_t calls_ = 0;
};

}  // namespace vigil::fleet
