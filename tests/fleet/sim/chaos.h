// What goes wrong in a world, and when: decided by its seed.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/fleet/sim/network.h"
#include "tests/fleet/sim/registry.h"

namespace vigil::fleet::sim {

/// Storms of faults, and calms after them, in which everything has to find its way again. A crash comes
/// before the n-th thing that a host does (sends, asks the registry, writes), n by the seed, so that no place
/// in the code has to be named.
class Chaos {
 public:
  struct Options {
    Micros least_between{1'000'000};
    Micros most_between{20'000'000};
    Micros storm{120'000'000};
    /// Until all has to be well.
    Micros calm{50'000'000};
    /// How long only the registry is away, now and then, at the end of a calm.
    Micros away{40'000'000};
    /// Whether the registry is set back to a backup now and then, of this storm or of one before it.
    bool restores = false;
    /// Whether nodes write to disks, which may fail for a while.
    bool disks = false;
  };

  struct Hands {
    /// Starts what runs on a host; lets it end in order, `done` then.
    std::function<void(Host&)> start;
    std::function<void(Host&, std::function<void()> done)> drain;
    /// Its disks fail from now on, or do not any more.
    std::function<void(Host&, bool fails)> disks_fail;
    /// Whether enough of the fleet runs without it.
    std::function<bool(const Host&)> is_spare;
    /// Whether it is a gateway that serves, and the registry knows.
    std::function<bool(const Host&)> serves;
    /// At the end of a calm.
    std::function<void()> check;
  };

  /// `hosts`: those of nodes; `gateways`: those of them that keep events. What was published survives that
  /// one of these is gone, or all at once where each serves; so never is another one hit before the first is
  /// back and serves.
  Chaos(RegistryHost& registry, std::vector<Host*> hosts, std::set<const Host*> gateways, Options options,
        Hands hands);

  void begin() { storm(); }
  /// So often was each fault done: a crash counts once the host has come to it, a drain once it is over, a
  /// power cut if all gateways have come to it.
  const std::map<std::string, int>& counts() const { return counts_; }
  bool registry_is_away() const { return is_away_; }

 private:
  void storm();
  void next(Micros end);
  void fault();
  /// `end` is done once: after this time, or when it grows calm.
  void last(Micros time, std::function<void()> end);
  void finish(std::uint64_t id);
  void calm();
  void storm_again();
  void cut_from_registry(Host& host);
  void mend_registry(Host& host);
  Host& any_host();
  /// Whether these may be hit, if they are gateways.
  bool may_hit(const std::set<const Host*>& hosts) const;
  /// They are, until `healed`.
  void hit(const std::set<const Host*>& hosts);
  void healed(const std::set<const Host*>& hosts);
  // Each: whether it was done. Crashes and drains are counted when they are.
  bool cut(const std::vector<std::pair<Host*, Host*>>& ways);
  bool cut_some();
  void crash();
  /// All gateways at once, or nearly.
  void power_cut();
  void drain();
  bool freeze();
  bool delay();
  bool step_clock();
  bool fail_disks();
  bool restore();

  RegistryHost& registry_;
  Network& network_;
  World& world_;
  Random& random_;
  const std::vector<Host*> hosts_;
  const std::set<const Host*> gateways_;
  const Options options_;
  const Hands hands_;
  /// By how many faults that are not over.
  std::map<const Host*, int> hit_;
  std::map<std::uint64_t, std::function<void()>> under_way_;
  std::uint64_t last_ = 0;
  bool is_calm_ = false;
  bool is_away_ = false;
  cluster::MemoryStore::Backup backup_;
  bool will_back_up_ = false;
  std::map<std::string, int> counts_;
};

}  // namespace vigil::fleet::sim
