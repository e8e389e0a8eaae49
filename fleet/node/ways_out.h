// What a node tells of the ways that it has to others, once it has been so for a while.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"

namespace vigil::fleet {

/// Whatever is seen counts once it has been so without a break for the patience, in either direction, so that
/// nothing moves to and fro with a way that breaks and stands again. Not thread-safe.
class WaysOut {
 public:
  /// At least as long as leases last: a node that is gone then is gone for all, and nobody tells of it.
  WaysOut(const base::Clock& clock, base::Duration patience) : clock_(clock), patience_(patience) {}

  struct Seen {
    /// Nodes that are there and with which this one has to do: whether there is a way to each.
    std::map<std::string, bool> ways = {};
    /// Whether there are nodes with which those of its roles deal, and whether there is a way to any.
    bool has_counterparts = false;
    bool reaches_one = false;
    bool is_clock_off = false;
  };

  /// It came, and found no way to any of those that are there: so it is apart until the first one stands.
  void came_in_vain();
  /// Returns lines for the log: what has come to count with this.
  std::vector<std::string> see(const Seen& seen);

  /// At most so many as a record has room for, the first ones by name.
  std::set<std::string> unreachable() const;
  std::set<std::string> all_unreachable() const;
  /// Also one that has more of them than a record has room for.
  bool apart() const;
  bool clock_off() const { return clock_off_.holds; }

 private:
  struct Standing {
    bool holds = false;
    /// Since when it has been seen otherwise.
    std::optional<base::Clock::TimePoint> otherwise = {};
  };
  /// Returns whether it holds otherwise than before.
  bool see(Standing& standing, bool now) const;

  const base::Clock& clock_;
  base::Duration patience_;
  std::map<std::string, Standing> nodes_;
  Standing apart_;
  bool has_come_in_vain_ = false;
  Standing clock_off_;
};

}  // namespace vigil::fleet
