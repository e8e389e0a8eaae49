// A registry of which a test says what its watches hear.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/cluster/registry/forwarding_registry.h"

namespace vigil::cluster::testing {

/// Another registry's, whose watches hear nothing while it is deaf: as of one that was set back, and had
/// passed again what the watch knew before it was asked. Counts the changes that are asked for.
class DeafRegistry final : public ForwardingRegistry {
 public:
  using ForwardingRegistry::ForwardingRegistry;

  void commit(RegistryTransaction transaction, Done<RegistryCommit> done) override {
    ++commits;
    ForwardingRegistry::commit(std::move(transaction), std::move(done));
  }
  std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                       std::function<void(RegistryResult<RegistryNews>)> seen) override {
    return ForwardingRegistry::watch(prefix, from,
                                     [this, seen = std::move(seen)](RegistryResult<RegistryNews> news) {
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
};

}  // namespace vigil::cluster::testing
