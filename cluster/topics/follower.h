// Follows topics: live events, and those that were missed, each once and in the order of its topic.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "cluster/topics/event_ledger.h"
#include "cluster/topics/replay.h"
#include "cluster/topics/topics.h"

namespace vigil::cluster {

/// Where the events of the past begin.
struct Since {
  /// Events of this time or later, or, of one topic, from this sequence number on.
  std::variant<base::Clock::WallTime, std::uint64_t> begin;
};

/// "10m" (before `now`, at most back to 1970), "2026-08-01T10:00:00Z" or a sequence number.
std::optional<Since> parse_since(std::string_view text, base::Clock::WallTime now);

/// Why a server would not take these beginnings of topics, of a subscriber or in a query, in a line.
std::optional<std::string> topics_fault(const std::vector<std::string>& topics);

/// Something that a person should know, in a line.
struct Notice {
  std::string text;
};

/// Where events are published, and where they are replayed.
struct Gateway {
  std::string endpoint;
  std::string replay;
  std::optional<CurveClient> curve = std::nullopt;
};

/// Follows one gateway of several that have the same events, and goes on at the next, round and round, when
/// it is gone, lets nobody in or does not answer for longer than `patience`. One on whose topics nothing
/// happens is asked every `heartbeat`, and stays as long as it answers. One owner at a time; not thread-safe.
class Follower {
 public:
  struct Options {
    /// Where events are published, and where they are replayed.
    std::string endpoint;
    std::string replay;
    /// Beginnings of topics; an empty one for all.
    std::vector<std::string> topics;
    /// Without it, the last event of each topic comes first.
    std::optional<Since> since;
    std::optional<CurveClient> curve = std::nullopt;
    /// Others that have the same events under the same numbers.
    std::vector<Gateway> others = {};
    /// How often it asks whether it missed anything, when nothing tells that it did.
    base::Duration heartbeat = std::chrono::seconds(5);
    /// How long it waits for an answer before it asks again.
    base::Duration ask_again = std::chrono::seconds(2);
    /// How long live events wait for the replay of those before them while nobody replays; and how long one
    /// of several gateways may let nobody in, or owe an answer, before the next one is followed.
    base::Duration patience = std::chrono::seconds(5);
  };

  using Entry = std::variant<TopicMessage, Notice>;

  /// Throws TopicError for endpoints that make no sense; where nobody listens yet is waited for. The clock
  /// has to outlive it.
  Follower(Options options, const base::Clock& clock);

  /// The next event or notice, or nothing after `timeout`.
  std::optional<Entry> next(base::Duration timeout);

  /// Whether an endpoint of events ever let it in.
  bool was_connected() const { return was_connected_; }

  /// The gateway that it follows now, by its place.
  std::size_t following() const { return at_; }

  /// Whether it waits for an answer of that one.
  bool is_asking() const { return asked_.has_value(); }

 private:
  std::optional<Entry> take();
  void hear_connections();
  void hear_events();
  void hear_answers();
  void ask_if_needed();
  ReplayQuery query() const;
  ReplayQuery query_of(const Gap& gap) const;
  base::Duration nap() const;
  void lose_patience();
  bool is_waiting() const { return asked_ || unsure_ || refused_ || ledger_.behind(); }
  void note_waiting();
  bool is_worth_leaving() const;
  bool tried_all() const { return left_ >= gateways_.size(); }
  void go_on();
  void connect();
  void subscribe();
  const Gateway& gateway() const { return gateways_[at_]; }
  void tell(bool& told, const std::string& text);

  Options options_;
  const base::Clock& clock_;
  std::vector<Gateway> gateways_;
  std::size_t at_ = 0;
  /// Gateways that were left in a row without an answer.
  std::size_t left_ = 0;
  /// Since when what this one was to be asked has no answer; and since when its events let nobody in, if they
  /// do not.
  std::optional<base::Clock::TimePoint> unanswered_since_;
  base::Clock::TimePoint away_since_;
  base::Clock::WallTime begun_;
  std::optional<TopicSubscriber> events_;
  std::optional<ReplayClient> replay_;
  EventLedger ledger_;
  std::deque<Notice> notices_;
  bool connected_ = false;
  bool was_connected_ = false;
  /// Whether something may have been missed since the last query.
  bool unsure_ = true;
  /// When the query that has no answer yet was sent.
  std::optional<base::Clock::TimePoint> asked_;
  /// Whether it refused the last query.
  bool refused_ = false;
  /// Whether it was subscribed to before it was known where it begins.
  bool early_ = false;
  /// Whether that was for a gap.
  bool asked_for_gap_ = false;
  /// Not before then the next query.
  base::Clock::TimePoint ask_at_{};
  base::Clock::TimePoint answered_;
  /// Since when live events may wait for a replay in vain.
  base::Clock::TimePoint silent_since_;
  /// Of a gateway, until it is as it should be.
  struct Told {
    bool lost = false;
    bool refused = false;
    bool failed = false;
    bool silent = false;
    bool unavailable = false;
    bool mute = false;
  };
  std::vector<Told> told_;
  /// Whose events came last.
  std::size_t connected_to_ = 0;
};

}  // namespace vigil::cluster
