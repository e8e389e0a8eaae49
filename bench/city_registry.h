// A node's client of a simulated etcd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/city_costs.h"
#include "bench/city_etcd.h"
#include "bench/virtual_thread.h"
#include "cluster/registry/registry.h"

namespace vigil::bench {

/// As `EtcdRegistry`: a connection to one server; if it breaks, one to the next, at once if it has lasted,
/// otherwise after a pause, with all watches from where they were. Ends with the node; then nothing is
/// answered. Not thread-safe.
class CityRegistry final : public cluster::Registry {
 public:
  /// All have to outlive it. What it is told costs the thread what reading it does.
  CityRegistry(CityEtcd& etcd, VirtualTime& time, VirtualThread& thread, const CityCosts& costs);
  ~CityRegistry() override;
  CityRegistry(const CityRegistry&) = delete;
  CityRegistry& operator=(const CityRegistry&) = delete;

  void range(const std::string& prefix, Done<cluster::RegistryRange> done) override;
  /// As `range`, for another thread than the node's: that one has to reckon what reading it costs.
  void range_unread(const std::string& prefix, Done<cluster::RegistryRange> done);
  void commit(cluster::RegistryTransaction transaction, Done<cluster::RegistryCommit> done) override;
  void grant(base::Duration ttl, Done<cluster::RegistryLease> done) override;
  void keep_alive(cluster::LeaseId lease, Done<cluster::RegistryLease> done) override;
  void revoke(cluster::LeaseId lease, Done<cluster::RegistryHeader> done) override;
  std::unique_ptr<cluster::RegistryWatch> watch(
      const std::string& prefix, cluster::Revision from,
      std::function<void(cluster::RegistryResult<cluster::RegistryNews>)> seen) override;

 private:
  friend class CityEtcd;
  template <class T>
  class Call;
  template <class T>
  std::shared_ptr<Call<T>> begin(Done<T> done);
  /// What happens at the server that is asked.
  using Piece = std::function<void(std::size_t server)>;
  /// What may be repeated waits for a leader.
  enum class Repeat : std::uint8_t { no, yes };
  /// Done when the request has come there, unless its time is over.
  template <class T>
  void there(const std::shared_ptr<Call<T>>& call, Repeat repeat, Piece piece);
  /// The connection is gone. A server that knows none that leads speaks for all.
  void lost(bool no_leader);
  void connect();
  void missed(bool no_leader);
  void rest(bool no_leader);
  void connected();

  CityEtcd& etcd_;
  VirtualTime& time_;
  VirtualThread& thread_;
  const CityCosts& costs_;
  const std::size_t number_;
  std::size_t server_;
  std::minstd_rand random_;
  bool is_connected_ = false;
  Nanoseconds connected_at_{0};
  /// Servers that were tried in vain since the last pause, and the next pause.
  std::size_t tried_ = 0;
  Nanoseconds pause_{0};
  /// What is asked meanwhile.
  std::vector<std::function<void()>> waiting_;
  std::vector<std::weak_ptr<CityEtcd::Watcher>> watches_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::bench
