// etcd in a simulation: `MemoryStore` has its rules, and what it takes is modelled.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/city_costs.h"
#include "bench/city_meter.h"
#include "bench/virtual_thread.h"
#include "cluster/registry/memory_store.h"
#include "cluster/registry/registry.h"

namespace vigil::bench {

/// Servers with their disks (one sync for all writes that wait) and their processors (a station each, as many
/// times as fast as it has cores). The first one leads; every write is work for all. Not thread-safe.
class CityEtcd {
 public:
  /// All have to outlive it.
  CityEtcd(VirtualTime& time, const CityCosts& costs);

  /// No leader for so long: what is asked comes to nothing. The next leader gives every lease its time anew.
  void lose_leader(Nanoseconds time);

  /// Of one phase of a simulation.
  struct Meters {
    Meters(const VirtualTime& time, std::size_t servers);
    void reset();
    CityMeter writes, written_bytes, keep_alives, reads, events, event_bytes;
    /// Seconds of the disk.
    CityMeter disk;
    struct Server {
      /// Seconds of one core.
      CityMeter processor;
      CityStation cores;
    };
    std::vector<Server> servers;
    /// Of the busiest server: seconds of one core in the worst second and in all; the longest that any work
    /// waited.
    double processor_peak() const;
    double processor() const;
    Nanoseconds longest_queue() const;
    /// From a put until the last watcher was sent it, at most.
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
    std::size_t server = 0;
    cluster::Revision next = 0;
    bool ended = false;
    std::function<void(cluster::RegistryResult<cluster::RegistryNews>)> seen;
  };
  using WatcherPtr = std::shared_ptr<Watcher>;
  struct Write {
    std::size_t bytes = 0;
    std::function<void()> apply;
  };

  bool is_up() const { return time_.elapsed() >= up_at_; }
  void write(std::size_t bytes, std::function<void()> apply);
  void sync();
  /// Processor time of a server; how long until it is done.
  Nanoseconds compute(std::size_t server, Nanoseconds work);
  /// Of all servers; until the leader has done it.
  Nanoseconds compute_everywhere(Nanoseconds work);
  void begin_watch(const std::string& prefix, cluster::Revision from, const WatcherPtr& watcher);
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
  std::size_t clients_ = 0;
  Nanoseconds up_at_{0};
};

/// A node's client. Ends with the node; then nothing is answered. Not thread-safe.
class CityRegistry final : public cluster::Registry {
 public:
  CityRegistry(CityEtcd& etcd, VirtualTime& time, VirtualThread& thread, const CityCosts& costs);
  ~CityRegistry() override;
  CityRegistry(const CityRegistry&) = delete;
  CityRegistry& operator=(const CityRegistry&) = delete;

  void range(const std::string& prefix, Done<cluster::RegistryRange> done) override;
  void commit(cluster::RegistryTransaction transaction, Done<cluster::RegistryCommit> done) override;
  void grant(base::Duration ttl, Done<cluster::RegistryLease> done) override;
  void keep_alive(cluster::LeaseId lease, Done<cluster::RegistryLease> done) override;
  void revoke(cluster::LeaseId lease, Done<cluster::RegistryHeader> done) override;
  std::unique_ptr<cluster::RegistryWatch> watch(
      const std::string& prefix, cluster::Revision from,
      std::function<void(cluster::RegistryResult<cluster::RegistryNews>)> seen) override;

 private:
  template <class T>
  class Call;
  template <class T>
  std::shared_ptr<Call<T>> begin(Done<T> done);
  /// Done at the server when the request has come there; what may be repeated waits for a leader.
  enum class Repeat : std::uint8_t { no, yes };
  void there(Repeat repeat, std::function<void()> piece);

  CityEtcd& etcd_;
  VirtualTime& time_;
  VirtualThread& thread_;
  const CityCosts& costs_;
  const std::size_t server_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::bench
