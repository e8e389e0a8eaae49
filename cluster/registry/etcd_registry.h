// etcd (v3) as the registry.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "cluster/registry/etcd_tls.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Talks to one of etcd's servers at a time, and goes on to the next when that one is gone, silent, or cut
/// off from the others. Has one thread of its own, on which answers come, and gRPC's. A call that changes
/// nothing or may be repeated (`range`, `grant`, `keep_alive`) is made again at the next server while there
/// is time. Its destruction takes some milliseconds whatever the servers do, or 300 when one of them just
/// failed to prove who it is; gRPC's threads go with the last registry, or, when a server hangs, as much
/// later as an attempt may take (`etcd_patience.h`).
class EtcdRegistry final : public Registry {
 public:
  struct Options {
    /// HOST:PORT each, the host in numbers ([::1]:2379) or a name, which the server's certificate has to
    /// have. They are tried in this order.
    std::vector<std::string> endpoints = {};
    /// Either of these: nobody speaks plain text by mistake.
    std::optional<EtcdTlsFiles> tls = {};
    bool plain_text = false;
    /// Empty: none.
    std::string user = {};
    std::string password = {};
    /// Of a call, with all its attempts.
    base::Duration time_limit{5000};
    /// After how much silence the server is asked whether it is still there, while something is expected of
    /// it; as long again without an answer, and another is tried. etcd takes it ill below 5 s.
    base::Duration ping{10'000};
    /// A line when the servers are lost and when one is found, without credentials; on the registry's thread.
    /// May be empty.
    std::function<void(const std::string&)> log = {};
  };

  /// Connects when something is asked for. Throws RegistryError for options that are of no use.
  explicit EtcdRegistry(Options options);
  ~EtcdRegistry() override;
  EtcdRegistry(const EtcdRegistry&) = delete;
  EtcdRegistry& operator=(const EtcdRegistry&) = delete;

  void range(const std::string& prefix, Done<RegistryRange> done) override;
  void commit(RegistryTransaction transaction, Done<RegistryCommit> done) override;
  void grant(base::Duration ttl, Done<RegistryLease> done) override;
  void keep_alive(LeaseId lease, Done<RegistryLease> done) override;
  void revoke(LeaseId lease, Done<RegistryHeader> done) override;
  std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                       std::function<void(RegistryResult<RegistryNews>)> seen) override;

 private:
  class Client;
  class Watch;
  class Handle;

  std::shared_ptr<Client> client_;
};

}  // namespace vigil::cluster
