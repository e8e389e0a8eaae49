// The state of a registry in memory, with etcd's rules. What nodes share in a simulation, and what a single
// process has instead of etcd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Each call is done at once; `MemoryRegistry` makes a `Registry` of it. Its headers have history 0. Has no
/// thread and does nothing by itself: leases end in `expire`. Thread-safe; throws nothing of its own.
class MemoryStore {
 public:
  struct Options {
    std::uint64_t cluster = 1;
    /// Shorter leases are made as long as this. etcd's is 1.5 times its election timeout, in whole seconds.
    base::Duration least_ttl{1000};
    /// Changes that it remembers for watches; older ones are compacted away.
    std::size_t most_changes = 10'000;
  };

  /// What a backup holds.
  struct Content;
  using Backup = std::shared_ptr<const Content>;

  /// What happened to it: keys changed; or it was set back, and whoever watches has to ask anew.
  enum class Notice : std::uint8_t { changed, restored };

  /// The clock has to outlive it.
  explicit MemoryStore(const base::Clock& clock) : MemoryStore(clock, Options()) {}
  MemoryStore(const base::Clock& clock, Options options);
  ~MemoryStore();
  MemoryStore(const MemoryStore&) = delete;
  MemoryStore& operator=(const MemoryStore&) = delete;

  // As a registry's calls.
  RegistryHeader header() const;
  RegistryRange range(const std::string& prefix) const;
  RegistryResult<RegistryCommit> commit(const RegistryTransaction& transaction);
  RegistryResult<RegistryLease> grant(base::Duration ttl);
  RegistryResult<RegistryLease> keep_alive(LeaseId lease);
  RegistryResult<RegistryHeader> revoke(LeaseId lease);
  /// What changed of the keys that begin so, from this revision on.
  RegistryResult<RegistryNews> changes(const std::string& prefix, Revision from) const;

  /// Ends the leases whose time is over, each with its keys in a revision of its own, in the order of their
  /// ends.
  void expire();
  /// Forgets all changes up to this revision, it included.
  void compact(Revision until);
  /// Whether there is room for keys and leases; without it, keys are only deleted.
  void set_full(bool full);

  /// A copy of everything, and back to it, as after `etcdctl snapshot restore`: leases begin their time anew,
  /// and the cluster may be another.
  Backup backup() const;
  void restore(const Backup& backup, std::uint64_t cluster);

  /// Calls `notice` after each change, on the thread that made it, with nothing locked. In no order.
  std::uint64_t listen(std::function<void(Notice)> notice);
  /// A call that is under way is not waited for.
  void forget(std::uint64_t listener);

 private:
  RegistryResult<RegistryCommit> commit_locked(const RegistryTransaction& transaction);
  void erase_locked(const std::string& key, Revision at);
  void end_lease_locked(LeaseId lease);
  void compact_locked(Revision until);
  RegistryHeader header_locked() const;
  void tell(Notice notice) const;

  const base::Clock& clock_;
  const Options options_;
  mutable std::mutex mutex_;
  std::unique_ptr<Content> content_;
  std::uint64_t cluster_;
  // Of no backup: a lease that was granted after it is not granted again.
  LeaseId last_lease_ = 0;
  bool full_ = false;
  std::map<std::uint64_t, std::shared_ptr<const std::function<void(Notice)>>> listeners_;
  std::uint64_t last_listener_ = 0;
};

}  // namespace vigil::cluster
