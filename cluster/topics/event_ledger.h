// Puts events that come live and events that are replayed into one order, without gaps.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
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

/// Each event of the topics that are followed comes out once, and in the order of its topic; also of another
/// outbox, which is read from its beginning, only what did not come out before, as far as that is remembered.
/// What begins is a query for the newest position, or for events of the past (the first pages); from then on
/// everything after `cursor` has to come out. Live events come out at once unless events before them are
/// missing; then they wait, and `behind` says that the pages after `cursor` are needed. Not thread-safe.
class EventLedger {
 public:
  struct Options {
    /// Whether a topic's last event from before the beginning comes out.
    bool last_values = true;
    /// Live events that wait at most; those beyond come with a page.
    std::size_t waiting = 10'000;
    /// Events that are remembered by their `source` and `id`.
    std::size_t remembered = 65'536;
  };

  explicit EventLedger(const Options& options) : options_(options), seen_(options.remembered) {}

  void live(TopicMessage message);

  /// The answer to a query for the events after `cursor`, or to the first one.
  void page(const ReplayPage& page);

  /// Nobody replays: from now on, until a page comes, events come out although others are missing.
  void give_up();

  bool behind() const { return behind_; }
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

  Options options_;
  std::map<std::string, std::uint64_t> last_;
  SeenIds seen_;
  std::deque<TopicMessage> waiting_;
  std::deque<LedgerEntry> out_;
  std::string outbox_;
  std::optional<std::uint64_t> cursor_;
  bool begun_ = false;
  bool blind_ = false;
  bool behind_ = true;
};

}  // namespace vigil::cluster
