// A whole node under the deterministic scheduler, in a system of its own: the actors of `vigil node`, with
// cameras and an engine that answer at once.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/all.hpp>

#include "actors/supervisor/supervisor_actor.h"
#include "cluster/bulk/memory_bulk.h"
#include "fleet/dock/dock_actor.h"
#include "fleet/events/gateway_actor.h"
#include "fleet/node/node_actor.h"
#include "tests/fleet/sim/audit.h"
#include "tests/fleet/sim/disk.h"
#include "tests/fleet/sim/events_audit.h"
#include "tests/fleet/sim/mistakes.h"
#include "tests/fleet/sim/sim_node.h"
#include "tests/fleet/sim/wire.h"

namespace vigil::fleet::sim {

/// What all nodes of a fleet of actors have in common.
struct ActorCommons {
  World& world;
  Network& network;
  RegistryHost& registry;
  cluster::MemoryBulkNetwork& bulk;
  Audit& audit;
  EventsAudit& events;
  std::string fleet;
  std::vector<config::CameraSettings> cameras;
  const Mistakes& mistakes;
  /// That gateways had.
  std::uint64_t tokens = 0;
};

class ActorNode final : public SimNode {
 public:
  /// What outlives it: of the events that it makes, and of those that it keeps.
  struct Disks {
    Disk& made;
    Disk& kept;
  };
  /// For one life of its host.
  ActorNode(ActorCommons& commons, Host& host, const Disks& disks, const std::set<cluster::NodeRole>& roles,
            const std::string& incarnation);
  /// Whatever is left of it ends without any effect.
  ~ActorNode() override;
  ActorNode(const ActorNode&) = delete;
  ActorNode& operator=(const ActorNode&) = delete;

  bool run() override;
  void drain(std::function<void()> done) override;
  void tell() override;
  std::string describe() const override;

  std::uint64_t jobs() const { return jobs_; }

 private:
  struct Parts;

  void enter_gateway();

  ActorCommons& commons_;
  Host& host_;
  std::unique_ptr<Parts> parts_;
  std::optional<Micros> wake_;
  std::uint64_t jobs_ = 0;
  std::uint64_t tells_ = 0;
  /// Jobs by the last look at what they have changed.
  std::uint64_t told_ = 0;
  /// What was told of the dock: fences and generations, by camera.
  std::map<std::string, std::pair<std::uint64_t, std::uint32_t>> guests_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::fleet::sim
