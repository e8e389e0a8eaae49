// Which cameras of other nodes are let in, by whom, and who had them before.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/watch.h"
#include "base/clock.h"
#include "base/duration.h"

namespace vigil::fleet {

/// Every camera has one node that sends it: the one with the highest fence that has come. What others send
/// of it is refused. A camera whose node is away is kept for a while, in case it comes back. Not thread-safe.
class DockBook {
 public:
  struct Guest {
    std::string node;
    std::uint64_t fence = 0;
    /// Counted here over all its owners: each has incarnations of its own.
    std::uint32_t generation = 0;
    /// The owner's.
    std::uint32_t own_generation = 0;
    /// Since when its node is away.
    std::optional<base::Clock::TimePoint> away = {};
  };

  struct Joined {
    bool admitted = false;
    /// The highest fence that is known.
    std::uint64_t fence = 0;
    std::uint32_t generation = 0;
    /// Who had it until now, if that was another node.
    std::string before;
  };
  Joined join(const std::string& node, const actors::WatchSettings& watch, std::uint32_t own_generation);

  /// Whether what is of this version comes from the camera's own node; null otherwise.
  const Guest* owner(const std::string& node, const actors::WatchRef& watch) const;
  const Guest* find(const std::string& camera) const;

  /// All that it sent has come out, and nothing more is expected. Its fence is not forgotten.
  void end(const std::string& camera) { guests_.erase(camera); }
  /// The link of a node broke.
  void leave(const std::string& node, base::Clock::TimePoint now);
  /// Cameras whose nodes have been away for longer than this.
  std::vector<std::string> overdue(base::Clock::TimePoint now, base::Duration patience) const;

  const std::map<std::string, Guest>& guests() const { return guests_; }
  /// The highest of all that have come.
  std::uint64_t highest_fence() const { return highest_; }

 private:
  std::map<std::string, Guest> guests_;
  /// Of every camera that ever came.
  std::map<std::string, std::uint64_t> fences_;
  std::map<std::string, std::uint32_t> generations_;
  std::uint64_t highest_ = 0;
};

}  // namespace vigil::fleet
