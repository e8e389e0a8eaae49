// etcd in a simulation: `MemoryStore` has its rules, and what it takes is modelled.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/city_costs.h"
#include "bench/city_meter.h"
#include "bench/virtual_thread.h"
#include "cluster/registry/memory_store.h"
#include "cluster/registry/registry.h"

namespace vigil::bench {

class CityRegistry;

/// Of key and value.
std::size_t bytes_of(const cluster::RegistryEntry& entry);

/// Servers with their disks (one sync for all writes that wait) and their processors (a station each, as many
/// times as fast as it has cores). The first one leads; every write is work for all. Not thread-safe.
class CityEtcd {
 public:
  /// All have to outlive it.
  CityEtcd(VirtualTime& time, const CityCosts& costs);

  /// No leader for so long: what is asked comes to nothing, and watches break. The next leader gives every
  /// lease its time anew.
  void lose_leader(Nanoseconds time);
  /// One that does not lead: its clients go to others, at once, and stay there when it is back. Throws
  /// std::invalid_argument.
  void lose_server(std::size_t server);
  void restore_server(std::size_t server);

  /// Of one phase of a simulation.
  struct Meters {
    Meters(const VirtualTime& time, std::size_t servers);
    void reset();
    CityMeter writes, written_bytes, keep_alives, reads, read_bytes, events, event_bytes, connections;
    /// Seconds of the disk.
    CityMeter disk;
    struct Server {
      /// Seconds of one core.
      CityMeter processor;
      CityStation cores;
      bool lost = false;
    };
    std::vector<Server> servers;
    /// Of the busiest server: seconds of one core in the worst second and in all; the longest that any work
    /// waited.
    double processor_peak() const;
    double processor() const;
    Nanoseconds longest_queue() const;
    /// Of a request, and of a value.
    std::size_t largest = 0;
    std::size_t largest_value = 0;
  };
  Meters& meters() { return meters_; }
  std::size_t watchers() const;
  /// All keys and values.
  std::size_t bytes() const;
  cluster::MemoryStore& store() { return *store_; }

 private:
  friend class CityRegistry;
  struct Watcher {
    std::string prefix;
    std::size_t server = 0;
    cluster::Revision next = 0;
    bool ended = false;
    /// Its connection is there; another one each time.
    bool attached = false;
    std::uint64_t connection = 0;
    /// What is sent on it comes to this, of which `next` has not come yet.
    cluster::Revision sent = 0;
    std::function<void(cluster::RegistryResult<cluster::RegistryNews>)> seen;
  };
  using WatcherPtr = std::shared_ptr<Watcher>;
  struct Write {
    std::size_t bytes = 0;
    std::function<void()> apply;
  };

  bool is_up() const { return time_.elapsed() >= up_at_; }
  bool is_lost(std::size_t server) const { return meters_.servers[server].lost; }
  /// Of one server, or of all.
  void break_connections(std::optional<std::size_t> server);
  void write(std::size_t bytes, std::function<void()> apply);
  void sync();
  /// Processor time of a server; how long until it is done.
  Nanoseconds compute(std::size_t server, Nanoseconds work);
  /// Of all servers; until the leader has done it.
  Nanoseconds compute_everywhere(Nanoseconds work);
  void attach(const WatcherPtr& watcher);
  /// Sends what has changed to those who watch it.
  void publish();
  void send(const WatcherPtr& watcher, const std::shared_ptr<const cluster::RegistryNews>& news,
            std::size_t bytes);
  void expire();

  VirtualTime& time_;
  const CityCosts& costs_;
  std::unique_ptr<cluster::MemoryStore> store_;
  Meters meters_;
  std::vector<Write> waiting_;
  bool syncing_ = false;
  cluster::Revision published_ = 0;
  std::map<std::string, std::vector<WatcherPtr>, std::less<>> watchers_;
  std::vector<cluster::LeaseId> leases_;
  /// By number: in the order in which they came.
  std::map<std::size_t, CityRegistry*> clients_;
  std::size_t clients_ever_ = 0;
  Nanoseconds up_at_{0};
};

}  // namespace vigil::bench
