// A registry in memory: for a single process, for tests, and for simulations in which answers are late, lost
// or in another order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "cluster/registry/memory_store.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// One client of a store; a simulation has one for each node. Has no thread.
class MemoryRegistry final : public Registry {
 public:
  /// Steps of a call: what is done at the store, what is done with its answer, and what is done with news of
  /// a watch.
  enum class Leg : std::uint8_t { request, answer, news };

  struct Options {
    /// Has the step run: now or later, on any thread, in any order, or never, but no more than once. Must not
    /// run it before it returns if it is called from a step. Without one, steps run on the thread of whoever
    /// calls, at once or, if it is called from a step, when that one is over.
    std::function<void(Leg leg, std::function<void()> step)> post;
    /// What a call is answered in by `expire`, and after which it asks again for news that did not come.
    base::Duration time_limit{5000};
  };

  /// The clock has to outlive it.
  MemoryRegistry(std::shared_ptr<MemoryStore> store, const base::Clock& clock)
      : MemoryRegistry(std::move(store), clock, Options()) {}
  MemoryRegistry(std::shared_ptr<MemoryStore> store, const base::Clock& clock, Options options);
  ~MemoryRegistry() override;
  MemoryRegistry(const MemoryRegistry&) = delete;
  MemoryRegistry& operator=(const MemoryRegistry&) = delete;

  void range(const std::string& prefix, Done<RegistryRange> done) override;
  void commit(RegistryTransaction transaction, Done<RegistryCommit> done) override;
  void grant(base::Duration ttl, Done<RegistryLease> done) override;
  void keep_alive(LeaseId lease, Done<RegistryLease> done) override;
  void revoke(LeaseId lease, Done<RegistryHeader> done) override;
  std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                       std::function<void(RegistryResult<RegistryNews>)> seen) override;

  /// Answers the calls whose time is over as unreachable. To be called when the clock has moved.
  void expire();

 private:
  class Client;
  class Watch;
  class Handle;

  std::shared_ptr<Client> client_;
};

}  // namespace vigil::cluster
