// What has to hold in a fleet, looked at after every event.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cluster/membership/fleet_keys.h"
#include "cluster/planning/plan.h"
#include "tests/fleet/sim/registry.h"

namespace vigil::fleet::sim {

/// Tells the world what is wrong. Not told of by those who are looked at, but for `taken`: what a node that
/// computes takes of a camera is what counts there.
class Audit {
 public:
  /// `cameras`: those that the fleet is to watch.
  Audit(RegistryHost& registry, const std::string& fleet, std::vector<std::string> cameras);
  ~Audit();
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;

  /// A node took what another one sent of a camera.
  void taken(const Host& dock, const std::string& camera, cluster::Fence fence, const std::string& owner,
             std::uint32_t generation, std::uint64_t sequence);

  /// A node that computes lets another one send a camera.
  void guest(const Host& dock, const std::string& camera, cluster::Fence fence, const std::string& owner);

  /// Of a node that runs, after each event: what it believes.
  void believes(const Host& node, const std::string& incarnation, bool is_member);

  /// How much waits somewhere, and how much may.
  void bounded(const char* what, std::size_t waiting, std::size_t most);

  /// Looks at what changed.
  void look();

  /// Nothing has been cut, frozen or dead for so long that every camera has to be watched: of each, something
  /// was taken within `recent`, of the owner that the plan says.
  void calm(Micros recent);

  std::uint64_t patches() const { return patches_; }
  std::uint64_t moves() const { return moves_; }
  const cluster::FleetPlan& plan() const { return plan_; }

 private:
  void sends(const Host& dock, const std::string& camera, cluster::Fence fence, const std::string& owner,
             const char* what);
  std::string& record_of(const std::string& node);
  void see_plan(const std::string& node, const cluster::NodePlan& plan);
  void check_plans();

  World& world_;
  cluster::MemoryStore& store_;
  const cluster::FleetKeys keys_;
  const std::vector<std::string> cameras_;
  std::uint64_t listener_ = 0;
  bool is_changed_ = true;
  bool was_restored_ = false;
  cluster::Revision seen_ = 0;
  cluster::FleetPlan plan_;
  /// To whom each fence of a camera was given.
  std::map<std::pair<std::string, cluster::Fence>, std::string> given_;
  std::map<std::string, std::pair<cluster::Fence, std::string>> owners_;
  /// Incarnations of the records in the registry, by the numbers of hosts.
  std::vector<std::string> records_;
  /// When they were gone.
  std::vector<Micros> gone_;
  Micros restored_at_{-1'000'000'000};

  struct Taken {
    std::uint64_t life = 0;
    cluster::Fence fence = 0;
    std::string owner;
    std::uint32_t generation = 0;
    std::uint64_t sequence = 0;
  };
  /// By the host that took it, and camera.
  std::map<std::pair<int, std::string>, Taken> taken_;
  /// Who sent under which fence of a camera: to anybody, and to a dock in one of its lives.
  std::map<std::pair<std::string, cluster::Fence>, std::string> senders_;
  std::map<std::tuple<int, std::uint64_t, std::string, cluster::Fence>, std::string> senders_to_;
  /// What a registry gave before it was set back it may give once more, before anybody who has it can tell:
  /// no dock takes both then.
  cluster::Fence given_twice_ = 0;
  std::map<std::string, std::pair<Micros, cluster::Fence>> last_;

  std::uint64_t patches_ = 0;
  std::uint64_t moves_ = 0;
};

}  // namespace vigil::fleet::sim
