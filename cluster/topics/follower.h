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

/// One owner at a time; not thread-safe.
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
    /// How often it asks whether it missed anything, when nothing tells that it did.
    base::Duration heartbeat = std::chrono::seconds(5);
    /// How long it waits for an answer before it asks again.
    base::Duration ask_again = std::chrono::seconds(2);
    /// How long live events wait for the replay of those before them while nobody replays.
    base::Duration patience = std::chrono::seconds(5);
  };

  using Entry = std::variant<TopicMessage, Notice>;

  /// Throws TopicError for endpoints that make no sense; where nobody listens yet is waited for. The clock
  /// has to outlive it.
  Follower(Options options, const base::Clock& clock);

  /// The next event or notice, or nothing after `timeout`.
  std::optional<Entry> next(base::Duration timeout);

  /// Whether the events' endpoint ever let it in.
  bool was_connected() const { return was_connected_; }

 private:
  std::optional<Entry> take();
  void hear_connections();
  void hear_events();
  void hear_answers();
  void ask_if_needed();
  ReplayQuery query() const;
  void lose_patience();
  void tell(bool& told, const std::string& text);

  Options options_;
  const base::Clock& clock_;
  TopicSubscriber events_;
  ReplayClient replay_;
  EventLedger ledger_;
  std::deque<Notice> notices_;
  bool connected_ = false;
  bool was_connected_ = false;
  /// Whether something may have been missed since the last query.
  bool unsure_ = true;
  /// When the query that has no answer yet was sent.
  std::optional<base::Clock::TimePoint> asked_;
  /// Not before then the next query.
  base::Clock::TimePoint ask_at_{};
  base::Clock::TimePoint answered_;
  /// Since when live events may wait for a replay in vain.
  base::Clock::TimePoint silent_since_;
  bool told_lost_ = false;
  bool told_refused_ = false;
  bool told_failed_ = false;
  bool told_silent_ = false;
  bool told_unavailable_ = false;
};

}  // namespace vigil::cluster
