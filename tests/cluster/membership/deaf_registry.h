// A registry of which a test says what its watches hear.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cluster/registry/registry.h"

namespace vigil::cluster::testing {

/// Another registry's, whose watches hear nothing while it is deaf: as of one that was set back, and had
/// passed again what the watch knew before it was asked. Counts the changes that are asked for.
class DeafRegistry final : public Registry {
 public:
  explicit DeafRegistry(Registry& own) : own_(own) {}

  void range(const std::string& prefix, Done<RegistryRange> done) override {
    own_.range(prefix, std::move(done));
  }
  void commit(RegistryTransaction transaction, Done<RegistryCommit> done) override {
    ++commits;
    own_.commit(std::move(transaction), std::move(done));
  }
  void grant(base::Duration ttl, Done<RegistryLease> done) override { own_.grant(ttl, std::move(done)); }
  void keep_alive(LeaseId lease, Done<RegistryLease> done) override {
    own_.keep_alive(lease, std::move(done));
  }
  void revoke(LeaseId lease, Done<RegistryHeader> done) override { own_.revoke(lease, std::move(done)); }
  std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                       std::function<void(RegistryResult<RegistryNews>)> seen) override {
    return own_.watch(prefix, from, [this, seen = std::move(seen)](RegistryResult<RegistryNews> news) {
      if (is_late) {
        late.push_back([seen, news = std::move(news)] { seen(news); });
      } else if (!is_deaf) {
        seen(std::move(news));
      }
    });
  }

  bool is_deaf = false;
  /// News wait here.
  bool is_late = false;
  std::vector<std::function<void()>> late;
  int commits = 0;

 private:
  Registry& own_;
};

}  // namespace vigil::cluster::testing
