// Puts events that come live and events that are replayed into one order, without gaps.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "cluster/topics/replay.h"
#include "cluster/topics/seen_ids.h"

namespace vigil::cluster {

/// Events of a topic that will not come: they were forgotten before they could be replayed, or nobody
/// replays.
struct Missed {
  std::string topic;
  std::uint64_t count = 0;
};

/// The server has another outbox than before: its events are counted anew.
struct Restarted {};

using LedgerEntry = std::variant<TopicMessage, Missed, Restarted>;

/// Events of one topic that have to be asked for by their numbers.
struct Gap {
  std::string topic;
  /// The first that is wanted. Without it, nothing is known of the topic: it may be new.
  std::optional<std::uint64_t> from;
  /// Where the next query goes on, after the first one.
  std::optional<std::uint64_t> after;
  /// Of the last one that is wanted.
  std::uint64_t to = 0;
};

/// Each event of the topics that are followed comes out once, and in the order of its topic; also of another
/// outbox, which is read from its beginning, only what did not come out before, as far as that is remembered.
/// What begins is a query for the newest position, or for events of the past (the first pages); from then on
/// everything after `cursor` has to come out. Live events come out at once unless events before them are
/// missing; then they wait, and `behind` says that the pages after `cursor` are needed.
///
/// Servers of one fleet have the same events under the same numbers, each in an order of its own. Who goes on
/// at another one (`move`) knows of each topic what came out last, and begins there at the newest position:
/// what each topic has beyond, its last event tells, which a server gives to a new subscriber, and those
/// between are asked for by their numbers (`gap`). So neither clocks nor positions have to agree, and nothing
/// that is known is read again. Not thread-safe.
class EventLedger {
 public:
  struct Options {
    /// Whether a topic's last event from before the beginning comes out.
    bool last_values = true;
    /// Live events that wait at most; those beyond come with a page.
    std::size_t waiting = 10'000;
    /// Events that are remembered by their `source` and `id`.
    std::size_t remembered = 65'536;
    /// Another outbox has the same events under the same numbers.
    bool fleet = false;
  };

  explicit EventLedger(const Options& options) : options_(options), seen_(options.remembered) {}

  void live(TopicMessage message);

  /// The answer to a query for the events after `cursor`, or to the first one. Whether it has moved by
  /// itself, since in a fleet that is another outbox.
  bool page(const ReplayPage& page);

  /// Another server is followed from now on. If the first pages had not come, they are needed again;
  /// otherwise live events, and first the last one of each topic, have to come from after its first page.
  void move();
  /// Whether it was one at first, so that what begins here is a query for the newest position.
  bool moved() const { return moved_; }
  /// What is to be asked for before all else, and the answer to that.
  const Gap* gap() const { return gaps_.empty() ? nullptr : &gaps_.begin()->second; }
  bool gap_page(const ReplayPage& page);

  /// Nobody replays: from now on, until a page comes, events come out although others are missing.
  void give_up();

  bool behind() const { return behind_ || !gaps_.empty(); }
  /// Whether the first pages have come, of this outbox.
  bool begun() const { return begun_; }
  /// Live events that wait for those before them.
  std::size_t waiting() const { return waiting_.size(); }
  /// Nothing before the first page.
  std::optional<std::uint64_t> cursor() const { return cursor_; }

  std::optional<LedgerEntry> take();

 private:
  bool try_live(const TopicMessage& message);
  void show(const TopicMessage& message);
  void settle();
  bool is_replaced(const ReplayPage& page) const;
  bool replaced(const ReplayPage& page);
  void restart(const std::string& outbox);
  bool opens_gap(const TopicMessage& message);
  void know(const TopicMessage& message);

  Options options_;
  std::map<std::string, std::uint64_t> last_;
  /// Of each topic, the number with which it began here.
  std::map<std::string, std::uint64_t> first_;
  SeenIds seen_;
  std::deque<TopicMessage> waiting_;
  std::deque<LedgerEntry> out_;
  std::string outbox_;
  std::optional<std::uint64_t> cursor_;
  bool begun_ = false;
  bool blind_ = false;
  bool behind_ = true;
  bool moved_ = false;
  /// Since it moved: topics that are known to have nothing missing before what comes next, and those that
  /// may.
  std::set<std::string> checked_;
  std::map<std::string, Gap> gaps_;
};

}  // namespace vigil::cluster
