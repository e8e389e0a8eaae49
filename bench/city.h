// A city's control plane in a simulation: nodes that come, go and fail, the registry, the gateways, and the
// cameras that all of it is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/duration.h"
#include "bench/city_cameras.h"
#include "bench/city_costs.h"
#include "bench/city_etcd.h"
#include "bench/city_gateways.h"
#include "bench/city_node.h"
#include "bench/city_status.h"
#include "bench/virtual_thread.h"

namespace vigil::bench {

struct CityOptions {
  std::size_t cameras = 100'000;
  /// Of these, so many are gateways, and this part of the others reads cameras; the rest computes.
  std::size_t nodes = 1'000;
  std::size_t gateways = 3;
  double camera_nodes = 0.4;
  base::Duration lease{5000};
  /// Of a camera, in a minute; and the events of one (begun, explained, ended).
  double alerts = 0.1;
  std::size_t events_of_alert = 3;
  /// Of each gateway's topics.
  std::size_t subscribers = 10;
  /// Pages of the fleet that each gateway makes in a second: those that its cache does not have.
  double pages = 1;
  /// How many there are; one of them loses its power.
  std::size_t sites = 10;
  /// Cameras that leave the configuration in a day, as a share; as many come.
  double churn = 0.1;
  /// Of a rolling upgrade: nodes at once, and in all.
  std::size_t upgrades_at_once = 10;
  std::size_t upgrades = 50;
  base::Duration steady = std::chrono::minutes(10);
  /// Of a camera.
  base::Duration window = std::chrono::seconds(40);
  /// How long a phase goes on at most until all is in its place.
  base::Duration patience = std::chrono::minutes(15);
  std::uint64_t seed = 1;
  CityCosts costs = {};
};

/// The nodes of a city, as they tell of themselves.
std::vector<cluster::NodeRecord> city_records(const CityOptions& options);

/// What happened in one phase.
struct CityPhase {
  struct Figure {
    std::string name;
    std::string unit;
    double value = 0;
    /// What there can be of it; 0: no limit is known.
    double capacity = 0;
  };
  std::string name;
  std::vector<Figure> figures;
  /// Of a figure; throws std::out_of_range.
  double at(const std::string& figure) const;
};

/// The same for the same options. Not thread-safe.
class City {
 public:
  /// At least two nodes more than gateways, and a camera.
  explicit City(const CityOptions& options);
  ~City();
  City(const City&) = delete;
  City& operator=(const City&) = delete;

  /// Phases, in this order: start, steady, node_lost, computing_node_lost, planner_lost, etcd_leader_lost,
  /// etcd_server_lost (if there are three), power_cut, power_back, gateway_lost, upgrade.
  void run(const std::function<void(const CityPhase&)>& done);

  /// What is wrong at the end: cameras without an owner, or with two. Empty if nothing is.
  std::vector<std::string> faults() const;

 private:
  struct Place {
    cluster::NodeRecord record;
    std::size_t site = 0;
    std::uint64_t incarnation = 0;
    std::unique_ptr<CityNode> node;
    /// Of a gateway.
    std::unique_ptr<CityStatus> status = {};
  };

  void make_places();
  void start(Place& place);
  void stop(Place& place);
  void begin(const std::string& name);
  CityPhase end();
  void look();
  void observe();
  void tell_alerts();
  void churn();
  bool is_settled() const;
  /// Until everything is where it should be, or for so long; in seconds.
  double settle(Nanoseconds most);
  void upgrade_next();
  void upgrade(Place& place);
  Place& any(cluster::NodeRole role);
  Place* planner();
  void power(std::size_t site, bool on);

  const CityOptions options_;
  std::mt19937_64 random_;
  VirtualTime time_;
  CityEtcd etcd_;
  CityCameras cameras_;
  CityGateways gateways_;
  CitySurroundings around_;
  CityStatusMeters status_;
  std::map<std::string, Place> places_;
  std::vector<std::size_t> left_out_;
  // Of the phase.
  std::string phase_;
  Nanoseconds phase_began_{0};
  double settled_in_ = 0;
  std::size_t most_links_ = 0;
  std::size_t all_links_ = 0;
  std::size_t most_watchers_ = 0;
  Nanoseconds longest_wait_{0};
  std::string waited_;
  bool steady_ = false;
  std::vector<std::string> to_upgrade_;
  std::size_t upgrading_ = 0;
};

}  // namespace vigil::bench
