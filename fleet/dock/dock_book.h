// Which cameras of other nodes are let in, by whom, and who had them before.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/watch.h"
#include "base/clock.h"
#include "base/duration.h"
#include "fleet/messages/known_fences.h"

namespace vigil::fleet {

/// The way of cameras through the fleet: the node that owns them, the one that encodes them, and the one that
/// has their streams. The last two are mostly one.
struct Passage {
  std::string owner;
  std::string vision;
  std::string stream;
  friend auto operator<=>(const Passage&, const Passage&) = default;
};

/// Every camera has one owner: the one with the highest fence that has come. What others send of it is
/// refused. Where its stream goes on, the one before may bring it until the new one does: nothing of it is
/// missing between the two. Of one owner, whoever came last brings it. A camera whose bringer is away is kept
/// for a while, in case it comes back. Not thread-safe.
class DockBook {
 public:
  /// `most`: cameras whose fences are kept one by one.
  explicit DockBook(std::size_t most = KnownFences::kMost) : fences_(most) {}

  /// The owner before, as it brings the camera.
  struct Former {
    Passage passage;
    std::uint64_t fence = 0;
    /// As `Guest`'s.
    std::uint32_t generation = 0, own_generation = 0;
  };

  struct Guest {
    Passage passage;
    /// Who sends it here: its owner, or the node that encodes it.
    std::string from;
    std::uint64_t fence = 0;
    /// The newest that its owner has told. Not null.
    actors::WatchPtr watch;
    /// Counted here, over all cameras and owners: each of these has incarnations of its own.
    std::uint32_t generation = 0;
    /// The owner's; or the session of whoever brings its visual tokens.
    std::uint32_t own_generation = 0;
    /// Since when whoever brings it is away.
    std::optional<base::Clock::TimePoint> away = {};
    /// As long as its owner has brought nothing.
    std::optional<Former> former = {};
  };

  struct Joined {
    bool admitted = false;
    /// The highest fence that is known.
    std::uint64_t fence = 0;
    std::uint32_t generation = 0;
    /// The passage of its owner until now, if that was another node.
    std::optional<Passage> before;
  };
  /// `watch` is not null. `goes_on`: what is here of the camera does, with the same stream.
  Joined join(const std::string& from, const Passage& passage, const actors::WatchPtr& watch,
              std::uint32_t own_generation, bool goes_on);

  /// Whether what is of this version comes from whoever brings the camera; null otherwise.
  const Guest* brought(const std::string& from, const actors::WatchRef& watch) const;
  /// As `brought`, of new settings: its owner may have been given a higher fence with nobody between, as all
  /// are when a registry was set back.
  const Guest* renew(const std::string& from, const actors::WatchPtr& watch);
  /// Whether this comes from the owner before, which may bring it still; null otherwise. Until the next
  /// change.
  const Former* brought_before(const std::string& from, const actors::WatchRef& watch,
                               std::uint32_t own_generation) const;
  /// Its owner brings it from now on; or this node, which had it before, lets it go.
  void drop_former(const std::string& camera);
  void drop_former(const std::string& from, const std::string& camera);
  /// The window as the camera's owner can take it. One that was asked while another node had the camera is
  /// the next owner's, by its settings, where the stream goes on (`goes_on`) and is asked the same: what the
  /// one before would tell of it could come behind what this one has told already. Null: there is no owner,
  /// or it is not for this one.
  actors::WindowAnswersPtr of_owner(const actors::WindowAnswersPtr& window, bool goes_on) const;
  const Guest* find(const std::string& camera) const;
  /// Whether another node has it by the fence of this version: the registry was set back, and gave it twice.
  bool is_contested(const std::string& owner, const actors::WatchRef& watch) const;

  /// Whether something of an owner with this fence may come: there was none with a higher one.
  bool admits(const std::string& camera, std::uint64_t fence);

  /// All that it sent has come out, and nothing more is expected. Its fence is not forgotten.
  void end(const std::string& camera) { guests_.erase(camera); }
  /// This way of cameras broke; all that a node brings is cut off; this camera is.
  void leave(const std::string& from, const Passage& passage, base::Clock::TimePoint now);
  void leave(const std::string& from, base::Clock::TimePoint now);
  void lose(const std::string& camera, base::Clock::TimePoint now);
  /// Cameras whose bringers have been away for longer than this.
  std::vector<std::string> overdue(base::Clock::TimePoint now, base::Duration patience) const;

  const std::map<std::string, Guest>& guests() const { return guests_; }
  /// The highest of all that have come; of one camera, 0 if it never came (`KnownFences`).
  std::uint64_t highest_fence() const { return highest_; }
  std::uint64_t highest_fence(const std::string& camera) const { return fences_.of(camera); }

 private:
  void saw(const std::string& camera, std::uint64_t fence);

  std::map<std::string, Guest> guests_;
  KnownFences fences_;
  /// Of whoever came last.
  std::uint32_t generation_ = 0;
  std::uint64_t highest_ = 0;
};

}  // namespace vigil::fleet
