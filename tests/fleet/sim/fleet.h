// A fleet in a world of its own: of nodes that are made of the plain classes, or of actors.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/fleet/sim/actor_node.h"
#include "tests/fleet/sim/chaos.h"
#include "tests/fleet/sim/plain_node.h"

namespace vigil::fleet::sim {

class Fleet {
 public:
  struct Options {
    std::uint64_t seed = 1;
    /// Otherwise of plain classes.
    bool of_actors = false;
    /// What nodes do. apart: one thing each, vision, stream and generate being one; stages: these are things
    /// of their own, too, with one node alone that generates; gate: of two gateways, one reads cameras, too;
    /// alike: three nodes do everything. Plain nodes are no gateways, and their layout is never stages.
    enum class Layout : std::uint8_t { apart, stages, gate, alike };
    Layout layout = Layout::apart;
    int camera_nodes = 3;
    int computing_nodes = 2;
    /// Of fleets of actors.
    int gateways = 2;
    int cameras = 6;
    Mistakes mistakes = {};
    Chaos::Options chaos = {};
    /// Nothing goes wrong by itself.
    bool is_quiet = false;
  };

  /// A fleet as the seed says, which of the layouts it has and whether its registry is set back included.
  static Options of_seed(std::uint64_t seed, bool of_actors);

  explicit Fleet(const Options& options);
  ~Fleet();

  /// False if something is wrong.
  bool run(Micros time);

  /// Of every camera something was taken of late, of the owner that the plan says; every gateway serves, and
  /// tells of every camera.
  void check();

  /// All that is known of what went wrong.
  std::string story() const;

  World& world() { return world_; }
  Network& network() { return network_; }
  Host& host_of(const std::string& name);
  const Audit& audit() const { return audit_; }
  const EventsAudit& events() const { return events_; }
  const Chaos& chaos() const { return *chaos_; }
  /// Time in which nodes ran.
  double node_hours() const;

 private:
  struct Place {
    Host& host;
    std::set<cluster::NodeRole> roles;
    std::unique_ptr<Disk> made, kept;
    std::unique_ptr<SimNode> node;
    int runs = 0;
  };

  void add_nodes();
  void add(const std::string& name, std::set<cluster::NodeRole> roles);
  void start(Host& host);
  void drain(Host& host, std::function<void()> done);
  bool is_spare(const Host& host) const;
  void carry(const std::string& from, const std::string& to, const cluster::Frames& frames,
             const cluster::MemoryBulkNetwork::Arrive& arrive);
  void after_event();

  static Network::Options network_of(const Mistakes& mistakes);
  static std::vector<std::string> names(int cameras);

  const Options options_;
  World world_;
  Network network_;
  RegistryHost registry_;
  Audit audit_;
  EventsAudit events_;
  Commons commons_;
  WorldClock clock_;
  cluster::MemoryBulkNetwork bulk_;
  /// When the bulk network has something to do.
  Micros bulk_due_{0};
  ActorCommons actor_commons_;
  std::map<int, Place> places_;
  std::unique_ptr<Chaos> chaos_;
};

}  // namespace vigil::fleet::sim
