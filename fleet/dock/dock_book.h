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
/// refused. Where its stream goes on, the next owner is its heir first, and the one before brings it until
/// that one does, or is gone: nothing of it is missing between the two. Of one owner, whoever came last
/// brings it. A camera whose bringer is away is kept for a while, in case it comes back. Not thread-safe.
class DockBook {
 public:
  /// `most`: cameras whose fences are kept one by one.
  explicit DockBook(std::size_t most = KnownFences::kMost) : fences_(most) {}

  /// Who is to be a camera's owner.
  struct Heir {
    Passage passage;
    std::string from;
    /// Not null.
    actors::WatchPtr watch;
    std::uint32_t own_generation = 0;
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
    std::optional<Heir> heir = {};
  };

  struct Joined {
    bool admitted = false;
    /// The highest fence that is known.
    std::uint64_t fence = 0;
    std::uint32_t generation = 0;
    /// The passage of its owner until now, if that was another node.
    std::optional<Passage> before = {};
    /// That of its heir until now, if that was another node.
    std::optional<Passage> heir = {};
  };
  /// `watch` is not null.
  Joined join(const std::string& from, const Passage& passage, const actors::WatchPtr& watch,
              std::uint32_t own_generation);

  /// As `join`, of a camera whose stream goes on: who comes is its heir from now on, and joins when it brings
  /// something (`brings`), or when whoever has it leaves. Nothing: it has no owner that goes on, or is
  /// refused; it is to join at once.
  std::optional<Joined> wait(const Heir& comer);
  /// Whether what is of this version comes from the camera's heir.
  bool brings(const std::string& from, const actors::WatchRef& watch) const;
  /// Other settings of the heir; false: that node's is none. It does not want the camera any more.
  bool renew_heir(const std::string& from, const actors::WatchPtr& watch);
  void drop_heir(const std::string& from, const std::string& camera);
  /// Who is to join in place of whoever has it.
  std::optional<Heir> take_heir(const std::string& camera);
  /// Cameras with heirs, whose bringers are away.
  std::vector<std::string> orphans() const;

  /// Whether what is of this version comes from whoever brings the camera; null otherwise.
  const Guest* brought(const std::string& from, const actors::WatchRef& watch) const;
  /// As `brought`, of new settings: its owner may have been given a higher fence with nobody between, as all
  /// are when a registry was set back.
  const Guest* renew(const std::string& from, const actors::WatchPtr& watch);
  /// Who hears of a window, and as what: the heir, or else the owner, by its settings, where the stream goes
  /// on
  /// (`goes_on`) and is asked the same. What the one before would tell of it may find that the next one has
  /// told something already. Nothing: there is nobody for whom it is.
  struct Heard {
    Passage passage;
    actors::WindowAnswersPtr window;
  };
  std::optional<Heard> heard(const actors::WindowAnswersPtr& window, bool goes_on) const;
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
