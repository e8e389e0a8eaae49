// People who look at a simulated city's page at a gateway, again and again.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bench/city_meter.h"
#include "bench/city_node.h"
#include "cluster/membership/fleet_keys.h"

namespace vigil::bench {

/// Of all gateways, in one phase.
struct CityStatusMeters {
  explicit CityStatusMeters(const VirtualTime& time) : pages(time), processor(time) {}
  void reset();
  CityMeter pages;
  /// Seconds of one gateway's processor.
  CityMeter processor;
  Nanoseconds longest{0};
  /// Pages on which something is missing: a node that did not answer in time, or the registry.
  std::size_t incomplete = 0;
};

/// As `fleet_status_actor` does it: the registry's plans are read, if they are older than a second, then
/// every node is asked, and each of the two may take 2 s. Ends with the object. Not thread-safe.
class CityStatus {
 public:
  /// A page after each `pause` that the gateway's cache does not have. All have to outlive it.
  CityStatus(CitySurroundings& around, CityNode& gateway, CityStatusMeters& meters, Nanoseconds pause);
  CityStatus(const CityStatus&) = delete;
  CityStatus& operator=(const CityStatus&) = delete;

 private:
  struct Page;
  using PagePtr = std::shared_ptr<Page>;
  void ask();
  void plans_came(const cluster::RegistryResult<cluster::RegistryRange>& result);
  void read(const cluster::RegistryRange& range);
  /// `has_plans`: the registry's, and not what nodes say that they were given.
  void ask_nodes(const PagePtr& page, bool has_plans);
  void answered(const PagePtr& page);
  void spend(Nanoseconds cost);
  void after(Nanoseconds time, std::function<void()> piece);

  CitySurroundings& around_;
  CityNode& gateway_;
  CityStatusMeters& meters_;
  const Nanoseconds pause_;
  const cluster::FleetKeys keys_;
  /// An actor of its own, beside the node's.
  VirtualThread thread_;
  /// By keys, the revisions of plans that were read; their bytes; and when that was.
  std::map<std::string, cluster::Revision> read_;
  std::size_t plan_bytes_ = 0;
  std::optional<Nanoseconds> read_at_;
  /// Those that wait for the one request of the registry that is under way, if one is.
  std::vector<PagePtr> waiting_;
  bool is_reading_ = false;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::bench
