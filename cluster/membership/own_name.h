// Whether a node that comes may write under its name.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/duration.h"
#include "cluster/membership/node_record.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Nothing is written before it is known that no other process that lives has the name: a record holds as
/// long as its lease, and one that still holds after the patience is kept alive by somebody. The run before
/// this one is mostly at the same address, and is looked at there. Not thread-safe.
class OwnName {
 public:
  struct Options {
    /// How long the lease of one that is gone may hold.
    base::Duration patience{0};
    /// There is the record of another process, at this one's own address. To be looked at, until `take`, or
    /// the end of that one's lease. Null: it is taken for over at once.
    std::function<void(const NodeRecord& other)> namesake = {};
    /// One line.
    std::function<void(const std::string&)> say = {};
  };
  OwnName(const base::Clock& clock, Options options);

  enum class Verdict { may_write, waits, taken };
  /// `there`: what the registry has under the name of `own`; null: nothing.
  Verdict look(const NodeRecord& own, const RegistryEntry* there);
  /// The process that was looked at is over. Of another one it says nothing.
  void take() { over_ = namesake_; }

 private:
  const base::Clock& clock_;
  Options options_;
  std::optional<base::Clock::TimePoint> waits_since_;
  /// Incarnations: of the process that was looked at, and of one that is over.
  std::optional<std::string> namesake_;
  std::optional<std::string> over_;
};

}  // namespace vigil::cluster
