// A registry whose answers are timed.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Hands everything on to another registry, and tells how long that took for each answer. What was not
/// answered (`unreachable`) tells nothing of that; a watch is no question. Thread-safe.
class TimedRegistry final : public Registry {
 public:
  using Answered = std::function<void(std::chrono::duration<double>)>;

  /// Both have to outlive it, and the clock what is not answered yet; `answered` is called on the registry's
  /// threads, before the answer is passed on.
  TimedRegistry(Registry& registry, const base::Clock& clock, Answered answered)
      : registry_(registry), clock_(clock), answered_(std::move(answered)) {}

  void range(const std::string& prefix, Done<RegistryRange> done) override;
  void commit(RegistryTransaction transaction, Done<RegistryCommit> done) override;
  void grant(base::Duration ttl, Done<RegistryLease> done) override;
  void keep_alive(LeaseId lease, Done<RegistryLease> done) override;
  void revoke(LeaseId lease, Done<RegistryHeader> done) override;
  std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                       std::function<void(RegistryResult<RegistryNews>)> seen) override;

 private:
  template <class T>
  Done<T> timed(Done<T> done) const;

  Registry& registry_;
  const base::Clock& clock_;
  const Answered answered_;
};

}  // namespace vigil::cluster
