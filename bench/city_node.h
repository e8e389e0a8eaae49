// A node of a simulated city: the classes of a real one, over a simulated etcd, network and cameras.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/camera/backoff.h"
#include "actors/supervisor/dialer.h"
#include "bench/city_cameras.h"
#include "bench/city_costs.h"
#include "bench/city_etcd.h"
#include "bench/city_registry.h"
#include "bench/virtual_thread.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/planning/plan_keeper.h"
#include "fleet/node/node_desk.h"
#include "fleet/node/plan_progress.h"

namespace vigil::bench {

class CityNode;

/// What a node has to do with beside etcd. Outlives all nodes.
struct CitySurroundings {
  VirtualTime& time;
  const CityCosts& costs;
  CityEtcd& etcd;
  CityCameras& cameras;
  /// All that are wanted, for whoever plans.
  std::function<std::vector<cluster::WantedCamera>()> wanted;
  /// The living node with this name, or null.
  std::function<CityNode*(const std::string&)> find;
  /// A number that is never given twice, and random.
  std::function<std::uint64_t()> random;
  /// Events that a node makes.
  std::function<void(std::size_t)> tell;
  /// How long a window is: a stream that has moved is full after it.
  base::Duration window;
  /// How many there are now.
  std::function<std::size_t()> gateways;
  CityMeter greetings, plannings, planner;
};

/// What `fleet/node/node_actor` and `actors/supervisor` do with these classes. Gone with the object, as when
/// its power is cut. Not thread-safe.
class CityNode {
 public:
  CityNode(CitySurroundings& surroundings, cluster::NodeRecord record, base::Duration lease,
           std::uint64_t seed);
  ~CityNode();
  CityNode(const CityNode&) = delete;
  CityNode& operator=(const CityNode&) = delete;

  const cluster::NodeRecord& record() const { return member_.record(); }
  bool is_planner() const { return member_.is_planner(); }
  bool is_member() const { return member_.state() == cluster::Membership::member; }
  std::size_t nodes_seen() const { return member_.nodes().size(); }
  /// Connections of messages, one for each node that it knows.
  std::size_t links() const { return desk_.known().size(); }
  const VirtualThread& thread() const { return thread_; }
  Nanoseconds take_longest_wait() { return thread_.take_longest_wait(); }

  /// Of those that are there, as this node knows them.
  const std::map<std::string, cluster::NodeRecord>& nodes() const { return member_.nodes(); }
  bool has_way(const std::string& node) const { return node == record().name || desk_.knows(node); }
  CityRegistry& registry() { return registry_; }
  bool registry_answers() const { return member_.registry_answers(); }
  /// Cameras that are on their way, and streams that are answered where they were, if it plans.
  std::size_t under_way() const { return keeper_.handovers() + keeper_.fillings(); }
  /// Says of itself what a page shows, once it has done what came before.
  void answer(std::function<void()> done) {
    thread_.post([this, done = std::move(done)] {
      thread_.spend(around_.costs.status_answer);
      done();
    });
  }

  /// As on SIGTERM: hands its cameras and streams over, then gives its lease back.
  void drain(std::function<void()> left);
  /// The power of a site's cameras has changed.
  void power_changed(std::size_t site, bool on);
  /// The fleet is to watch others.
  void want_anew();

 private:
  struct Camera {
    cluster::Fence fence = 0;
    std::string stream = {};
    /// Answers it while its windows fill; empty: nobody.
    std::string former = {};
    cluster::Fence stream_fence = 0;
    bool fills = false, full = false;
    bool delivers = false;
    /// Delivers, and there is a way to where it is computed, and to where it was.
    bool reaches_stream = false, reaches_former = false;
    bool tried = false;
    actors::Backoff backoff;
  };

  cluster::Planning plan(const cluster::PlanningInput& input, const cluster::PlannerOptions& options);
  void members_changed();
  void plan_changed();
  void greet_those_due();
  void greet(const cluster::NodeRecord& node);
  /// A node that fits greets this one.
  void hear(const cluster::NodeRecord& node);
  void judge(const std::string& name, Camera& camera);
  void judge_all();
  void tick();
  void settle();
  void begin_to_fill(const std::string& name, Camera& camera);
  void fill();
  void leave_if_drained();
  void turn();
  void turn_soon();
  void apply(const actors::Dialer::Turn& turn);
  void open(const actors::SourceId& id);
  void delivers(const std::string& name, Camera& camera);
  void fails(const actors::SourceId& id, Camera& camera);
  void wake();

  CitySurroundings& around_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  const std::uint64_t seed_;
  VirtualThread thread_;
  CityRegistry registry_;
  fleet::NodeDesk desk_;
  actors::Dialer dialer_;
  std::map<std::string, Camera> own_;
  /// Nothing was done until the constructor is over.
  bool is_made_ = false;
  bool has_wanted_ = false;
  bool unsettled_ = false;
  /// A stream's windows have become full.
  bool fills_ = false;
  bool turns_ = false;
  /// Until when others may be to be greeted.
  base::Clock::TimePoint greets_until_;
  std::optional<base::Clock::TimePoint> wakes_;
  std::function<void()> left_;
  cluster::FleetMember member_;
  cluster::PlanKeeper keeper_;
};

}  // namespace vigil::bench
