// The registry as nodes reach it: one store on a host of its own, a client on each host of a node.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "cluster/registry/memory_registry.h"
#include "tests/fleet/sim/network.h"

namespace vigil::fleet::sim {

/// Time of the world: leases run by it.
class WorldClock final : public base::Clock {
 public:
  explicit WorldClock(const World& world) : world_(world) {}
  TimePoint now() const override { return TimePoint(std::chrono::hours(1)) + world_.now(); }
  WallTime wall() const override { return WallTime(std::chrono::seconds(1785578400)) + world_.now(); }

 private:
  const World& world_;
};

class RegistryHost {
 public:
  explicit RegistryHost(Network& network);

  Host& host() { return host_; }
  cluster::MemoryStore& store() { return *store_; }
  const std::shared_ptr<cluster::MemoryStore>& shared_store() { return store_; }
  Network& network() { return network_; }

 private:
  void tick();

  Network& network_;
  WorldClock clock_;
  Host& host_;
  std::shared_ptr<cluster::MemoryStore> store_;
};

/// A client on a node's host, for one life of it.
std::unique_ptr<cluster::Registry> make_registry_client(RegistryHost& registry, Host& host);

/// A mistake, or several: looks at what a client asks, and may alter it.
class MeddledRegistry final : public cluster::Registry {
 public:
  struct Meddling {
    /// May be null.
    std::function<void(cluster::RegistryTransaction&)> transaction = {};
    /// Every answer is of the history that there was first, whatever became of the registry, and a watch of
    /// what was before waits for what will not come.
    bool has_one_history = false;
  };
  MeddledRegistry(std::unique_ptr<cluster::Registry> inner, Meddling meddling)
      : inner_(std::move(inner)), meddling_(std::move(meddling)) {}

  void range(const std::string& prefix, Done<cluster::RegistryRange> done) override {
    inner_->range(prefix, spoilt<cluster::RegistryRange>(std::move(done)));
  }
  void commit(cluster::RegistryTransaction transaction, Done<cluster::RegistryCommit> done) override {
    if (meddling_.transaction) meddling_.transaction(transaction);
    inner_->commit(std::move(transaction), spoilt<cluster::RegistryCommit>(std::move(done)));
  }
  void grant(base::Duration ttl, Done<cluster::RegistryLease> done) override {
    inner_->grant(ttl, spoilt<cluster::RegistryLease>(std::move(done)));
  }
  void keep_alive(cluster::LeaseId lease, Done<cluster::RegistryLease> done) override {
    inner_->keep_alive(lease, spoilt<cluster::RegistryLease>(std::move(done)));
  }
  void revoke(cluster::LeaseId lease, Done<cluster::RegistryHeader> done) override {
    inner_->revoke(lease, std::move(done));
  }
  std::unique_ptr<cluster::RegistryWatch> watch(
      const std::string& prefix, cluster::Revision from,
      std::function<void(cluster::RegistryResult<cluster::RegistryNews>)> seen) override {
    return inner_->watch(prefix, from, spoilt<cluster::RegistryNews>(std::move(seen)));
  }

 private:
  template <class T>
  Done<T> spoilt(Done<T> done) const {
    if (!meddling_.has_one_history) return done;
    return [done = std::move(done)](cluster::RegistryResult<T> result) {
      if (T* const answer = std::get_if<T>(&result)) {
        answer->header.history = 1;
      } else if (std::get<cluster::RegistryFailure>(result).kind ==
                 cluster::RegistryFailure::Kind::replaced) {
        return;
      }
      done(std::move(result));
    };
  }

  const std::unique_ptr<cluster::Registry> inner_;
  const Meddling meddling_;
};

}  // namespace vigil::fleet::sim
