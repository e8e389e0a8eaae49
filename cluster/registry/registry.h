// A few keys that all nodes of a fleet see in the same order: who is there, who owns what. The API of etcd
// (v3), as much of it as a fleet needs, so that a fake can stand in for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  /// a watch asked for are forgotten; full: it takes no change for want of space.
  enum class Kind : std::uint8_t { unreachable, refused, no_lease, compacted, full };
  Kind kind = Kind::unreachable;
  /// One line, with the address and the registry's own reason; no credential.
  std::string text;
};

/// What every answer tells of the registry itself, by which one that was restored or replaced is noticed
/// (`registry_guard.h`).
struct RegistryHeader {
  std::uint64_t cluster = 0;
  Revision revision = 0;
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
/// most.
struct RegistryTransaction {
  std::vector<RegistryCondition> conditions;
  std::vector<RegistryChange> changes;
  /// Of conditions, and of changes, at most: what etcd takes unless it is told otherwise.
  static constexpr std::size_t kMost = 128;
};

struct RegistryRange {
  RegistryHeader header;
  /// In the order of their keys.
  std::vector<RegistryEntry> entries;
};

struct RegistryCommit {
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
/// Thread-safe.
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
  /// or `seen` gets a failure, which is the last that it gets. When the connection breaks, the watch goes on
  /// by itself at the next revision.
  virtual std::unique_ptr<RegistryWatch> watch(const std::string& prefix, Revision from,
                                               std::function<void(RegistryResult<RegistryNews>)> seen) = 0;
};

}  // namespace vigil::cluster
