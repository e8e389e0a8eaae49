// A fleet's world in virtual time: one queue orders whatever happens, one seed decides it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"
#include "tests/fleet/sim/random.h"

namespace vigil::fleet::sim {

class World;

/// What may be found in the trace.
enum class Kind : std::uint8_t {
  event,
  crash,
  power_loss,
  start,
  freeze,
  thaw,
  cut,
  mend,
  delay,
  clock_step,
  connected,
  closed,
  taken,
  refused,
  plan,
  lease_over,
  write,
  published,
  calm,
  restored,
  joined,
  left,
  disk_fails
};

/// What a host does, as a crash may come before it: by its name, or before whatever it does next.
enum class Point : std::uint8_t {
  message,
  request,
  dial,
  turn,
  write,
  written,
  acknowledge,
  replace,
  publish
};
constexpr std::size_t kPoints = 9;
std::string_view name_of(Point point);

/// A machine: its clocks, and whether what is on it runs. All that was to happen on it is gone with a crash,
/// and waits while it is frozen.
class Host {
 public:
  class Clock final : public base::Clock {
   public:
    explicit Clock(const World& world) : world_(world) {}
    TimePoint now() const override;
    WallTime wall() const override;
    /// So long on this clock lasts so long in the world, or a little more.
    Micros lasting(std::chrono::nanoseconds time) const;

    /// How much faster than the world's it goes, in millionths.
    std::int64_t drift = 0;
    /// Of the wall clock alone.
    Micros step{0};

   private:
    std::chrono::nanoseconds elapsed() const;
    const World& world_;
  };

  Host(World& world, std::string its_name, int number)
      : name(std::move(its_name)), id(number), clock(world) {}

  /// Counts what it does; a crash that was planned for this moment comes true: nothing that it does from now
  /// on counts. False if it does not.
  bool does(Point point);

  const std::string name;
  const int id;
  Clock clock;
  bool up = false;
  bool frozen = false;
  /// It has crashed, and what it was doing is still on the stack.
  bool dying = false;
  /// Another one after each crash.
  std::uint64_t life = 0;
  /// Before which of the things that it does it crashes, of this name or of any; 0: it does not.
  std::uint64_t crash_in = 0;
  std::optional<Point> crash_at = {};
  /// What it has done so far, by its name.
  std::array<std::uint64_t, kPoints> done = {};
  /// How often such a crash came, and by what it came before.
  std::uint64_t crashes = 0;
  std::array<std::uint64_t, kPoints> crashes_before = {};
  /// Whether nobody is told when it does.
  bool loses_power = false;
  std::deque<std::function<void()>> held;
  /// Ends what runs on it, at once and without a word.
  std::function<void()> on_crash;
};

class World {
 public:
  explicit World(std::uint64_t its_seed) : seed(its_seed), random(its_seed) {}
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// Lives as long as the world.
  Host& add_host(const std::string& name);
  const std::vector<std::unique_ptr<Host>>& hosts() const { return hosts_; }

  Micros now() const { return now_; }
  /// What happens at the same time happens in the order of these calls. `host`: on which it happens, if it is
  /// still in the same life then; null: it is of the world.
  void at(Micros time, Host* host, std::function<void()> run);
  void after(Micros time, Host* host, std::function<void()> run) { at(now_ + time, host, std::move(run)); }

  /// Until then, or until something is found to be wrong.
  void run_until(Micros end);

  void crash(Host& host, bool power_loss);
  void freeze(Host& host);
  void thaw(Host& host);

  /// For the trace.
  void note(Kind kind, int one = -1, int other = -1, std::uint64_t detail = 0);
  /// Of all that happened: equal for equal runs.
  std::uint64_t hash() const { return hash_; }
  std::uint64_t events() const { return events_; }

  /// The first thing that is wrong counts.
  void fail(const std::string& what);
  const std::string& failure() const { return failure_; }
  /// The last things that happened, a line each.
  std::string story() const;

  const std::uint64_t seed;
  Random random;
  /// After every event. The first may make others due now.
  std::vector<std::function<void()>> after_event;
  /// A host crashed, without or with a word to those that it is connected to.
  std::function<void(Host&, bool power_loss)> crashed;
  std::function<void(Host&)> frozen, thawed;

 private:
  struct Event {
    Micros at;
    std::uint64_t order;
    Host* host;
    std::uint64_t life;
    std::function<void()> run;
  };
  struct Noted {
    Micros at;
    Kind kind;
    int one;
    int other;
    std::uint64_t detail;
  };
  struct Later {
    bool operator()(const Event& a, const Event& b) const {
      return a.at != b.at ? a.at > b.at : a.order > b.order;
    }
  };

  void bury(Host& host);

  Micros now_{0};
  std::uint64_t order_ = 0;
  std::vector<Event> queue_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::uint64_t hash_ = 0;
  std::uint64_t events_ = 0;
  std::deque<Noted> noted_;
  std::string failure_;
};

/// The thread of a host's own work.
class HostLoop final : public base::Loop {
 public:
  HostLoop(World& world, Host& host) : world_(world), host_(host) {}
  void post(std::function<void()> piece) override { world_.after(Micros(0), &host_, std::move(piece)); }
  void after(base::Duration time, std::function<void()> piece) override {
    world_.after(host_.clock.lasting(time), &host_, std::move(piece));
  }

 private:
  World& world_;
  Host& host_;
};

}  // namespace vigil::fleet::sim
