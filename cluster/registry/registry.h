// A few keys that all nodes of a fleet see in the same order: who is there, who owns what. The API of etcd
// (v3), as much of it as a fleet needs, so that a fake can stand in for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/duration.h"

namespace vigil::cluster {

/// Grows with every change of any key; the same for all who ask.
using Revision = std::int64_t;
/// 0: none.
using LeaseId = std::int64_t;

struct RegistryEntry {
  std::string key;
  std::string value;
  /// Of the change that made the key, and of its last one.
  Revision created = 0;
  Revision modified = 0;
  LeaseId lease = 0;
  friend bool operator==(const RegistryEntry&, const RegistryEntry&) = default;
};

struct RegistryFailure {
  /// unreachable: nobody answered in time, so that a change may have been made or not; refused: it does not
  /// let us, or does not understand; no_lease: there is no such lease (any more); compacted: revisions that
  /// a watch asked for are forgotten; full: it takes no change for want of space; replaced: the registry has
  /// another history than the one that a watch began with (a restored backup, another cluster). After all
  /// but the first, nothing was changed.
  enum class Kind : std::uint8_t { unreachable, refused, no_lease, compacted, full, replaced };
  Kind kind = Kind::unreachable;
  /// One line, with the address and the registry's own reason; no credential.
  std::string text;
};

/// What every answer tells of the registry itself.
struct RegistryHeader {
  std::uint64_t cluster = 0;
  /// Of the registry when it answered; of one that has several members, answers of `keep_alive` and news may
  /// come from one that is behind.
  Revision revision = 0;
  /// Grows when this client notices that the registry was replaced or set back (`registry_history.h`): what
  /// was known before is void then. `registry_guard.h` says so once. A smaller one than another answer's is
  /// an answer from before.
  std::uint64_t history = 0;
};

template <class T>
using RegistryResult = std::variant<T, RegistryFailure>;

/// Holds if the key was last changed at this revision; 0: if there is no such key.
struct RegistryCondition {
  std::string key;
  Revision modified = 0;
};

struct RegistryPut {
  std::string key;
  std::string value;
  /// The key goes with it.
  LeaseId lease = 0;
};

struct RegistryDelete {
  std::string key;
};

using RegistryChange = std::variant<RegistryPut, RegistryDelete>;

/// All changes are made in one revision if all conditions hold, otherwise none. A key is changed once at
/// most. If nothing is changed (no key to be deleted is there), there is no new revision.
struct RegistryTransaction {
  std::vector<RegistryCondition> conditions;
  std::vector<RegistryChange> changes;
  /// Of conditions, and of changes, at most: what etcd takes unless it is told otherwise.
  static constexpr std::size_t kMost = 128;
  /// Of all keys and values, at most; etcd takes 1.5 MiB with all that is around them.
  static constexpr std::size_t kMostBytes = std::size_t{1} << 20;
};

/// Why no registry takes this transaction: more than it may have, a key that is empty or is changed twice.
std::optional<RegistryFailure> why_not(const RegistryTransaction& transaction);

struct RegistryRange {
  RegistryHeader header;
  /// In the order of their keys.
  std::vector<RegistryEntry> entries;
};

struct RegistryCommit {
  /// Its revision is that of the changes, if there were any.
  RegistryHeader header;
  /// Whether the conditions held.
  bool made = false;
};

struct RegistryLease {
  RegistryHeader header;
  LeaseId id = 0;
  /// From when the request was sent, at least; what was asked for or more.
  base::Duration ttl{0};
};

struct RegistryEvent {
  /// Of a key that is gone: its name and the revision at which it went.
  bool deleted = false;
  RegistryEntry entry;
  friend bool operator==(const RegistryEvent&, const RegistryEvent&) = default;
};

/// A batch of what a watch saw; all of a revision comes in one batch, and revisions ascend.
struct RegistryNews {
  RegistryHeader header;
  std::vector<RegistryEvent> events;
};

/// Ends with the object; then nothing is called any more (a call that is under way is waited for).
class RegistryWatch {
 public:
  virtual ~RegistryWatch() = default;
};

/// Nothing here blocks. Each call is answered once, by calling `done` on a thread of the registry's, in any
/// order, before its time limit is over; with the object, what was not answered is not answered any more.
/// What is called back must not block, and must not destroy the registry. Thread-safe.
class Registry {
 public:
  virtual ~Registry() = default;

  template <class T>
  using Done = std::function<void(RegistryResult<T>)>;

  /// All keys that begin so.
  virtual void range(const std::string& prefix, Done<RegistryRange> done) = 0;

  virtual void commit(RegistryTransaction transaction, Done<RegistryCommit> done) = 0;

  /// A new lease; at least a second. Keys that are put with it go when it is not kept alive.
  virtual void grant(base::Duration ttl, Done<RegistryLease> done) = 0;
  virtual void keep_alive(LeaseId lease, Done<RegistryLease> done) = 0;
  virtual void revoke(LeaseId lease, Done<RegistryHeader> done) = 0;

  /// What changes of the keys that begin so from this revision on (it included), until the watch is destroyed
  /// or `seen` gets a failure (compacted, replaced, refused), which is the last that it gets. When the
  /// connection breaks, the watch goes on by itself at the next revision. A revision that is more than one
  /// ahead of the registry's is one of another history. A watch may outlive the registry, and sees nothing
  /// more then.
  virtual std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                               std::function<void(RegistryResult<RegistryNews>)> seen) = 0;
};

}  // namespace vigil::cluster
