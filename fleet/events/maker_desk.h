// A maker's side of the protocol: claims, offers and commits of all series of a node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/books.h"
#include "base/clock.h"
#include "base/duration.h"
#include "fleet/events/merged_books.h"
#include "fleet/messages/event_messages.h"
#include "fleet/messages/known_fences.h"
#include "fleet/messages/shipped.h"

namespace vigil::fleet {

/// Each gateway has a lane: one request is under way, and the next has whatever is due there by then. An
/// event is offered to all gateways, committed when all have staged it, and done when all have committed it.
/// Which gateways these are, the registry says as far as it is known, and what gateways say of each other. A
/// gateway that is slow holds back what is under way here, which is bounded, and takes no more memory.
///
/// While not all gateways answer, cameras may move, and who had one before has events of it that nobody has
/// taken. It claims the series under the fence that it had, as before, and tells to its end; for so long its
/// node says that it keeps events, and whoever has cameras by now claims none that it has not claimed before.
/// So fences are claimed in their order, and what a former owner kept is numbered before what the next one
/// tells. A former owner that is gone, or does not come to an end in time, is not waited for: what comes of
/// it is refused for its fence. Not thread-safe.
class MakerDesk {
 public:
  struct Options {
    std::string node;
    /// Of this run of the program; no other one has the same. Without spaces.
    std::string session;
    /// The series of what this node tells of itself; empty: none. Its fences are the registry's revisions,
    /// which go back with a registry that is set back, and nobody else has this node's name.
    std::string own = {};
    /// Of an offer, and of claims in a request.
    std::size_t offer_events = 256;
    std::size_t offer_bytes = 256 << 10;
    std::size_t claims = 8;
    /// Events that are taken and not done, of all series, that whoever publishes here keeps to; more wait
    /// there.
    std::size_t most = 192;
    /// Until what did not work is tried again.
    base::Duration pause{200};
    /// Until a series that is another's by the plan, and has nothing to tell, is forgotten: what its outbox
    /// has not published yet comes within that.
    base::Duration farewell{60'000};
    /// Series of which it is kept one by one what was given up.
    std::size_t given_up = KnownFences::kMost;
    /// Without an answer for so long, a gateway counts as silent.
    base::Duration silence{5000};
    /// How long a claim lets former owners go first, and for how long cameras that move may have such, once
    /// all gateways answer.
    base::Duration deference{10'000};
    /// Nothing more comes of series that were left once nothing of them has been under way for so long.
    base::Duration quiet{1000};
  };

  MakerDesk(Options options, const base::Clock& clock);

  /// Gateways that hold a lease, as far as the registry told.
  void see(const GatewayView& view);

  /// `take_books` will have its books, or `take_lost` that a higher fence is known. `series`: a camera, or
  /// the topic of this process's own news.
  void claim(const std::string& series, std::uint64_t fence);

  /// This camera is this node's, by the plan; it is not any more: its series tells to its end, and is
  /// forgotten then. So does one that is claimed and never was this node's: it is what a run before left.
  void have(const std::string& camera);
  void leave(const std::string& camera);

  /// Other nodes that keep events of cameras which they do not have any more.
  void see_keepers(std::set<std::string> nodes) { keepers_ = std::move(nodes); }
  /// Whether this one does: of series that it left while not all gateways answered, or soon after. As of
  /// `take_asks`.
  bool keeps() const { return keeps_; }

  /// Copies of one event. What is of a series that is not claimed is dropped.
  void publish(const std::vector<actors::OutboxEvent>& copies);

  struct Ask {
    std::string gateway;
    MakerTalk talk;
  };
  /// Requests that are to be sent now. Each is answered by `heard` or `failed`.
  std::vector<Ask> take_asks();
  void heard(const std::string& gateway, const GatewayTalk& answer);
  void failed(const std::string& gateway, std::uint64_t number);

  /// Since the last call. `camera` of the books is the series.
  std::vector<actors::SeriesBooks> take_books() { return std::exchange(books_, {}); }
  struct Lost {
    std::string series;
    /// The one that it had, and a higher one.
    std::uint64_t fence = 0;
    std::uint64_t higher = 0;
  };
  std::vector<Lost> take_lost() { return std::exchange(lost_, {}); }

  /// Up to this position, all that was published is done or was dropped.
  std::uint64_t published() const { return under_way_.empty() ? newest_ : *under_way_.begin() - 1; }
  /// Positions begin anew, of another outbox; what is under way goes on.
  void start_over();
  /// Events that were dropped since the last call, since another owner has their series.
  std::size_t take_dropped() { return std::exchange(dropped_, 0); }

  /// Events that are under way.
  std::size_t waiting() const { return waiting_; }
  /// Claims that are not answered yet.
  std::size_t claiming() const { return claiming_; }
  /// Whether any gateway serves, as far as it is known.
  bool has_gateways() const;
  /// A gateway for which something waits here, and that has not answered for a while, whether it is gone or
  /// cannot be reached; empty: none.
  std::string waits_for() const;
  /// Series that are known, for tests.
  std::size_t series() const { return series_.size(); }

 private:
  struct Unit {
    std::uint64_t number = 0;
    std::vector<ShippedEvent> events;
    std::size_t bytes = 0;
    /// Of this process's outbox; none, or of one before it, otherwise.
    std::vector<std::uint64_t> positions;
    /// Tokens of those that have staged it, and committed it; that lack what comes before it.
    std::set<std::string> staged, committed, gaps;
    /// A gateway was told to commit it, and may have done so whatever it answers.
    bool is_to_be_committed = false;
  };
  struct Series {
    std::uint64_t fence = 0;
    /// The one under which it was open before this claim; 0 if it was not.
    std::uint64_t before = 0;
    bool is_open = false;
    std::uint64_t units = 0;
    std::deque<Unit> queue;
    /// By token.
    std::map<std::string, ClaimAnswer> answers;
    /// Where it has to be claimed again: tokens.
    std::set<std::string> again;
  };
  struct Sent {
    std::uint64_t number = 0;
    std::string token;
    /// Numbers of units, by series; 0: of one that is another by now.
    std::map<std::string, std::vector<std::uint64_t>> offers, commits;
  };
  struct Lane {
    std::string born;
    std::string token;
    std::vector<GatewayTenure> peers;
    std::optional<Sent> sent;
    base::Clock::TimePoint again{};
    /// When it was asked for its peers last.
    base::Clock::TimePoint probed{};
    /// Since when nothing that it was asked has been answered.
    std::optional<base::Clock::TimePoint> silent_since = {};
  };
  /// All that have to have everything, and whether each is known and reached.
  struct Required {
    std::set<std::string> names;
    std::vector<GatewayTenure> all;
    bool is_known = false;
  };

  Required required() const;
  std::optional<MakerTalk> next_for(Lane& lane, const Required& required);
  /// What fits of a series into a request.
  struct Room {
    std::size_t events = 0, bytes = 0, units = 0, claims = 0;
  };
  /// Whether a former owner may have to go first.
  bool defers(const std::string& name, const Series& series) const;
  /// What is still under way of series that were left, and whether all gateways answer.
  void look_at_left(const Required& required);
  void add_series(const std::string& name, const Series& series, const Required& required, MakerTalk& talk,
                  Sent& sent, Room& room) const;
  void take(const std::string& token, const ClaimAnswer& answer);
  static bool is_everywhere(const std::set<std::string>& tokens, const Required& required);
  void take(const Sent& sent, const SeriesAnswer& answer, bool is_commit, Lane& lane);
  bool publish_again(const std::string& name, Series& series, const std::vector<actors::OutboxEvent>& copies);
  /// What gateways are being offered of a unit is old.
  void offer_anew(const std::string& series, std::uint64_t unit);
  void settle();
  void open(const std::string& name, Series& series, const Required& required);
  void lose(const std::string& name, std::uint64_t higher);
  void drop(Series& series);
  void finish(Unit& unit);
  void forget_left();

  const Options options_;
  const base::Clock& clock_;
  GatewayView view_;
  std::map<std::string, Lane> lanes_;
  std::uint64_t numbers_ = 0;
  std::map<std::string, Series> series_;
  /// The highest fence under which what was in hand here was dropped: no gateway may know why any more.
  KnownFences given_up_;
  /// Cameras that this node has.
  std::set<std::string> own_;
  std::set<std::string> keepers_;
  bool keeps_ = false;
  /// When something of series that were left was under way last; when not all gateways answered.
  base::Clock::TimePoint had_left_at_{};
  base::Clock::TimePoint blocked_at_{};
  /// Of series that were left: since when, or when something of it was under way last.
  std::map<std::string, base::Clock::TimePoint> left_;
  /// When there was so much under way that some may have waited in the outbox.
  base::Clock::TimePoint full_at_{};
  /// Series with something to tell: what is asked for is less than what is there.
  std::set<std::string> busy_;
  /// Whose turn it is in the next request.
  std::string turn_;
  std::vector<actors::SeriesBooks> books_;
  std::vector<Lost> lost_;
  std::set<std::uint64_t> under_way_;
  std::uint64_t newest_ = 0;
  std::size_t waiting_ = 0;
  std::size_t claiming_ = 0;
  std::size_t dropped_ = 0;
};

}  // namespace vigil::fleet
