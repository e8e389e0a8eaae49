// A registry that a test stands before another one.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "cluster/registry/registry.h"

namespace vigil::cluster::testing {

/// Passes all on to another registry, which outlives it; who derives from it does some of that otherwise.
class ForwardingRegistry : public Registry {
 public:
  explicit ForwardingRegistry(Registry& own) : own_(own) {}

  void range(const std::string& prefix, Done<RegistryRange> done) override {
    own_.range(prefix, std::move(done));
  }
  void commit(RegistryTransaction transaction, Done<RegistryCommit> done) override {
    own_.commit(std::move(transaction), std::move(done));
  }
  void grant(base::Duration ttl, Done<RegistryLease> done) override { own_.grant(ttl, std::move(done)); }
  void keep_alive(LeaseId lease, Done<RegistryLease> done) override {
    own_.keep_alive(lease, std::move(done));
  }
  void revoke(LeaseId lease, Done<RegistryHeader> done) override { own_.revoke(lease, std::move(done)); }
  std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                       std::function<void(RegistryResult<RegistryNews>)> seen) override {
    return own_.watch(prefix, from, std::move(seen));
  }

 private:
  Registry& own_;
};

}  // namespace vigil::cluster::testing
