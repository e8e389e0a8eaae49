// Erasures of what cameras remember, as the registry has them: which this node has to do, and which nodes
// have not done which.
//
// An erasure is done when each node that may have anything of it has said that no byte is left: one that was
// away finds it at its return. A node with a disk counts from when it first said that it remembers, whether
// it is there or not; one without a disk as long as it is there, since nothing of it outlives it. What is
// done stays for an hour, for nodes that were cut off and come back as they were, and for other gateways.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "cluster/membership/fleet_keys.h"
#include "cluster/registry/registry.h"
#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"

namespace vigil::fleet {

struct FleetErasure {
  history::CameraId camera;
  history::WallRange wall;
  friend bool operator==(const FleetErasure&, const FleetErasure&) = default;
};

/// JSON of one line, as the registry has it. `parse_erasure` throws std::runtime_error: one line.
std::string print(const FleetErasure& erasure);
FleetErasure parse_erasure(std::string_view json);

/// Not thread-safe.
class ErasureBook {
 public:
  using Entries = std::map<std::string, cluster::RegistryEntry>;
  /// `node`: this one.
  ErasureBook(std::string_view fleet, std::string node) : keys_(fleet), node_(std::move(node)) {}

  static constexpr base::Duration kKept = std::chrono::hours(1);

  /// All keys below `FleetKeys::past` from now on. What is not what it should be is passed over; a line each
  /// comes back.
  std::vector<std::string> see(const Entries& entries);
  /// Erasures that were not there when this was asked last.
  std::vector<FleetErasure> take_new();
  /// Nodes that are there; those without a disk that are not have nothing.
  void present(std::set<std::string> nodes) { present_ = std::move(nodes); }

  struct Due {
    std::string id;
    FleetErasure what;
  };
  /// Those that this node has not done, and was not told before.
  std::vector<Due> take_due();
  /// It could not be done: it is due again.
  void again(const std::string& id) { told_.erase(id); }
  /// What says that this node has done it, with so many pages; holds only as long as the erasure is there.
  cluster::RegistryTransaction done(const std::string& id, std::size_t pages) const;

  /// What says that this node remembers, on a disk or not; empty if the registry has it already. Who once had
  /// a disk has it until somebody removes what the registry says: what is on it does not go with a setting.
  cluster::RegistryTransaction begin(bool has_disk) const;
  /// Whether this node has, or had, a disk.
  bool had_disk() const;
  /// Orders it. `id`: one that no other has.
  cluster::RegistryTransaction order(const std::string& id, const FleetErasure& what) const;

  /// Nodes that have yet to do it; nothing is left of one that the registry does not have any more.
  std::vector<std::string> left(const std::string& id) const;
  /// How many some node has yet to do.
  std::size_t waiting() const;
  /// Whether there is anything that may be over.
  bool has_erasures() const { return !erasures_.empty() || !done_.empty(); }
  bool knows(const std::string& id) const { return erasures_.contains(id); }
  /// Pages that were erased, of nodes that have said so.
  std::size_t pages(const std::string& id) const;
  /// Removes what no node has had to do for so long (`kKept`), as much as goes at once; empty if there is
  /// nothing.
  cluster::RegistryTransaction clean_up(base::Clock::TimePoint now);

  /// Nodes with a disk that have ever remembered.
  std::set<std::string> with_disk() const;

 private:
  struct Ordered {
    FleetErasure what;
    cluster::Revision modified = 0;
  };
  struct Done {
    std::size_t pages = 0;
  };

  bool has_done(const std::string& id, const std::string& node) const;

  const cluster::FleetKeys keys_;
  const std::string node_;
  std::map<std::string, Ordered> erasures_;
  /// Whether they have, or had, a disk.
  std::map<std::string, bool> nodes_;
  /// By erasure, by node.
  std::map<std::string, std::map<std::string, Done>> done_;
  std::set<std::string> present_;
  /// Of those that are there: that this node was told; that it has done; that are new.
  std::set<std::string> told_, done_here_;
  std::set<std::string> known_;
  std::vector<FleetErasure> new_;
  /// Since when nobody has to do them.
  std::map<std::string, base::Clock::TimePoint> over_since_;
};

}  // namespace vigil::fleet
