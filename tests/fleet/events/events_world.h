// Makers and gateways over a net that loses, delays, reorders and repeats, with a registry whose news comes
// late, in virtual time: the same seed gives the same run. What must hold is looked at after every step.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "actors/alerts/outbox.h"
#include "fleet/events/gateway_desk.h"
#include "fleet/events/gateway_joining.h"
#include "fleet/events/maker_desk.h"

namespace vigil::fleet::testing {

/// Planted: what the protocol must not do, done to its messages.
enum class Mistake : std::uint8_t {
  none,
  /// Gateways commit what one of them has staged.
  commits_early,
  /// Fences and sessions of offers and commits are not looked at.
  no_fences,
  /// Books do not tell what is staged.
  books_without_staged,
  /// Gateways do not name those whom they have admitted, and take what these are not given.
  peers_not_named,
  /// One that comes does not copy what is staged.
  staged_not_copied,
  /// One that comes serves before it has read what was committed meanwhile.
  serves_too_soon,
  /// A gateway has the same token when it comes again.
  tokens_last,
  /// One whose record was gone for a while is taken for the same.
  records_are_alike,
  /// Of those that start anew, the one that has the most is the first, whoever went on without it.
  first_has_the_most,
};

class TestClock final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(std::chrono::milliseconds(ms)); }
  WallTime wall() const override { return WallTime(std::chrono::milliseconds(ms)); }
  std::int64_t ms = 1;
};

class World {
 public:
  struct Options {
    std::uint64_t seed = 1;
    Mistake mistake = Mistake::none;
    int gateways = 3;
    int makers = 3;
    int series = 3;
    int steps = 400;
  };

  explicit World(const Options& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  /// All of it; nothing if all that must hold did, otherwise what did not.
  std::optional<std::string> run();

  /// How much happened, so that a test can tell that something did.
  struct Counts {
    std::uint64_t events = 0, visible = 0, crashes = 0, moves = 0, joined = 0, messages = 0;
    /// Of events of a maker that stayed the owner.
    std::uint64_t given_up = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Gateway;
  struct Maker;
  struct Later {
    std::int64_t at = 0;
    std::uint64_t order = 0;
    std::function<void()> what;
    bool operator<(const Later& other) const {
      return std::pair(other.at, other.order) < std::pair(at, order);
    }
  };

  std::uint64_t dice(std::uint64_t sides) { return random_() % sides; }
  bool chance(double share) { return static_cast<double>(random_() % 1'000'000) < share * 1e6; }
  void after(std::int64_t ms, std::function<void()> what);
  void fail(const std::string& what);
  void trace(const std::string& what);

  // The registry.
  void put(const std::string& gateway, const GatewaySeen& seen);
  void remove(const std::string& gateway);
  const GatewayView& truth() const { return history_.back(); }
  bool is_true(const Gateway& gateway) const;

  // The net: `ask` arrives or not, then `back` does or not, each perhaps twice.
  bool is_cut(const std::string& one, const std::string& other);
  void carry(const std::string& from, const std::string& to, const std::function<void()>& what);

  GatewayView view_of(const Gateway& gateway) const;
  void start(Gateway& gateway);
  void stop(Gateway& gateway, bool with_disk);
  void lose_lease(Gateway& gateway);
  void poke(Gateway& gateway);
  GatewayTalk ask(Gateway& gateway, MakerTalk talk);
  PeerAnswer ask(Gateway& gateway, PeerQuestion question);
  void start(Maker& maker);
  bool may_stop(const Maker& maker) const;
  void stop(Maker& maker, bool with_disk);
  void poke(Maker& maker);
  void take_over(Maker& maker, const actors::SeriesBooks& books);
  void make(Maker& maker, const std::string& series);
  void write(Maker& maker);
  void assign(const std::string& series, std::size_t maker, std::uint64_t fence);
  void mischief();
  void settle_down();
  bool is_quiet() const;
  void look(Gateway& gateway);
  void look_at_all(const Gateway& gateway);
  bool has(const Gateway& gateway, const std::string& topic, std::uint64_t sequence,
           const std::string& body) const;
  std::size_t serving() const;

  const Options options_;
  std::mt19937_64 random_;
  TestClock clock_;
  std::priority_queue<Later> later_;
  std::uint64_t order_ = 0;
  std::vector<GatewayView> history_ = {{}};
  std::uint64_t revision_ = 0;
  std::vector<std::unique_ptr<Gateway>> gateways_;
  std::vector<std::unique_ptr<Maker>> makers_;
  std::set<std::pair<std::string, std::string>> cuts_;
  double loss_ = 0.05, twice_ = 0.05;
  std::int64_t delay_ = 40;
  bool calm_ = false;
  std::uint64_t names_ = 0;
  std::uint64_t tokens_ = 0;
  /// Who owns which series, in truth.
  struct Owner {
    std::size_t maker = 0;
    std::uint64_t fence = 0;
  };
  std::map<std::string, Owner> owners_;
  std::uint64_t fences_ = 0;
  /// What subscribers saw.
  struct Seen {
    std::string body;
    std::uint64_t fence = 0;
  };
  std::map<std::pair<std::string, std::uint64_t>, Seen> visible_;
  /// The last claim of a series that was answered: its fence, and where its topics were.
  struct Claimed {
    std::uint64_t fence = 0;
    /// What it made itself since then goes on.
    std::uint64_t since = 0;
    std::map<std::string, std::uint64_t> last;
  };
  std::map<std::string, Claimed> claimed_;
  /// Events, by their units, that have to be published in the end.
  std::map<std::string, std::string> owed_;
  std::set<std::string> seen_units_;
  std::optional<std::string> failure_;
  Counts counts_;
};

}  // namespace vigil::fleet::testing
