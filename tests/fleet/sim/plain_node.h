// A node made of the plain classes, without actors: cheap enough for a thousand hours. Who is a member,
// plans, is greeted, and is let in by a dock is the product's (`FleetMember`, `PlanKeeper`, `NodeDesk`,
// `DockBook`); what moves between them is written here anew, and stands for
// - `node_state` (fleet/node): when greetings are sent and answered, which way to a node counts, what is
// settled;
// - `link_state` (fleet/link): a join, then patches in order, and both anew when the way broke;
// - `dock_state` (fleet/dock): whose patches are taken, and when what is away is over;
// - a supervisor whose cameras open after two seconds.
// A mistake that is made in those shells alone is found by nodes of actors. Plain ones do not tell which
// windows are full, and are no gateways.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cluster/membership/fleet_member.h"
#include "cluster/planning/plan_keeper.h"
#include "fleet/dock/dock_book.h"
#include "fleet/node/node_desk.h"
#include "fleet/node/plan_progress.h"
#include "fleet/node/refusal_book.h"
#include "tests/fleet/sim/audit.h"
#include "tests/fleet/sim/mistakes.h"
#include "tests/fleet/sim/network.h"
#include "tests/fleet/sim/registry.h"
#include "tests/fleet/sim/sim_node.h"

namespace vigil::fleet::sim {

/// What all nodes of a fleet have in common.
struct Commons {
  World& world;
  Network& network;
  RegistryHost& registry;
  Audit& audit;
  const Mistakes& mistakes;
  std::string fleet;
  std::vector<std::string> cameras;
  /// Between two patches of a camera.
  Micros patches{5'000'000};
};

class PlainNode final : public SimNode {
 public:
  /// One run of the program `incarnation`; it ends with the object, or `leave`.
  PlainNode(Commons& commons, Host& host, std::set<cluster::NodeRole> roles, const std::string& incarnation);
  ~PlainNode() override;
  PlainNode(const PlainNode&) = delete;
  PlainNode& operator=(const PlainNode&) = delete;

  void drain(std::function<void()> done) override;
  void tell() override;
  std::string describe() const override;

 private:
  struct Peer {
    ConnectionPtr connection;
    int side = 0;
  };
  /// A camera of this node.
  struct Camera {
    cluster::Fence fence = 0;
    std::string stream;
    Micros opened{0};
    Micros sent{0};
    std::uint32_t generation = 0;
    std::uint64_t sequence = 0;
    bool has_joined = false;
  };
  struct Join {
    std::string node;
    actors::WatchRef watch;
    std::uint32_t generation = 0;
    std::uint64_t sequence = 0;
    /// The connection by which it comes.
    std::uint64_t link = 0;
  };
  using Answered = std::function<void(const std::optional<std::string>&)>;

  cluster::NodeRecord record(const std::set<cluster::NodeRole>& roles, const std::string& incarnation) const;
  cluster::Greeting greeting() const;
  void own(const ConnectionPtr& connection, int side);
  /// The way to a peer, unless there is one that stands: what is sent keeps its order.
  void adopt(const std::string& peer, const ConnectionPtr& connection, int side);
  void connect(const std::string& node, std::function<void(ConnectionPtr, int)> found);
  void request(const ConnectionPtr& connection, int side, std::function<std::string(PlainNode&, int side)> at,
               Answered answered);
  /// Null: it is over.
  Answered take_request(std::uint64_t number);
  void greet(const cluster::NodeRecord& node);
  std::string answer(const std::string& greeting, const ConnectionPtr& connection, int side);
  void lost(std::uint64_t connection);
  void members_changed();
  void plan_changed();
  void tick();
  void send_of(const std::string& name, Camera& camera);
  void settle();

  // Of a node that computes.
  void dock_join(const Join& join);
  void dock_patch(const Join& patch);
  /// What another one says of a camera of this node: it knows such a fence of it.
  void refused(const std::string& camera, cluster::Fence fence);

  Commons& commons_;
  Host& host_;
  HostLoop loop_;
  const bool reads_;
  const bool computes_;
  std::unique_ptr<base::Clock> slow_;
  std::unique_ptr<cluster::Registry> registry_;
  NodeDesk desk_;
  std::optional<cluster::FleetMember> member_;
  std::optional<cluster::PlanKeeper> plan_;
  std::map<std::string, Peer> peers_;
  /// All that stand, by themselves and known or not.
  std::map<std::uint64_t, std::pair<ConnectionPtr, int>> connections_;
  std::set<std::string> dialing_;
  std::map<std::uint64_t, Answered> requests_;
  std::uint64_t last_request_ = 0;
  std::map<std::string, Camera> cameras_;
  std::uint32_t generations_ = 0;
  RefusalBook refusals_;
  DockBook dock_;
  /// By which connection each node sends its cameras.
  std::map<std::string, std::uint64_t> links_;
  std::function<void()> drained_;
  const std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::fleet::sim
