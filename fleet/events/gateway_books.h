// What a gateway keeps of each series, on disk: who makes it, which events are staged, what is committed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/outbox.h"
#include "fleet/messages/event_messages.h"

namespace vigil::fleet {

/// The last time that a gateway served: with which token, which other ones had to have everything, too, and
/// which ones it went on without, each by name, with the token that it had.
struct ServingTime {
  std::string token;
  std::map<std::string, std::string> with, without;
  friend bool operator==(const ServingTime&, const ServingTime&) = default;
};

/// A topic that went on behind events that no gateway and no maker has any more.
struct TopicGap {
  std::string topic;
  /// The last event before, and the first behind it.
  std::uint64_t after = 0;
  std::uint64_t next = 0;
  friend bool operator==(const TopicGap&, const TopicGap&) = default;
};

/// Over an outbox: committed events are its events; tenures and staged events are notes of it, beside those
/// of open episodes. Changes are gathered and written at once by `write`. When that throws, what is known
/// here is not what is kept: another one has to be made of the outbox. Not thread-safe.
class GatewayBooks {
 public:
  struct Options {
    /// Of staged events: bytes of all series, events of each.
    std::size_t staged_bytes = 64 << 20;
    std::size_t staged_of_series = 1024;
  };

  /// Reads what is kept; the outbox has to outlive it. Throws OutboxError.
  GatewayBooks(const Options& options, actors::Outbox& outbox);

  /// Null if there is none yet.
  const SeriesTenure* tenure(const std::string& series) const;
  /// Of all cameras. Those of nodes' own news are revisions of the registry, and no such fences.
  std::uint64_t highest_fence() const;
  void set_tenure(const std::string& series, const SeriesTenure& tenure);

  /// Of this outbox; one that is another by now, as after damage, has lost what it may have had.
  const ServingTime& served() const { return served_; }
  void set_served(const ServingTime& served);

  /// Whether it could be kept within the bounds. One that is committed already needs no room; one that is
  /// staged already is replaced unless its fence is lower.
  bool stage(const std::string& series, std::uint64_t fence, const ShippedEvent& event);
  /// As another gateway has it, which keeps it within its bounds: in any case.
  void stage_copy(const std::string& series, const StagedEvent& staged);

  /// Whatever was staged before this call is stale: it is kept, and not told, until it is staged again or
  /// `drop_stale`.
  void make_stale();
  void drop_stale();
  void freshen();

  /// Copies of one event: those that are not committed yet. missing, if not all of these are staged with
  /// this fence; gap, if a topic ends before.
  SeriesVerdict commit(const std::string& series, std::uint64_t fence, const CommitUnit& unit);
  /// Of commits since the last call that left something out.
  std::vector<TopicGap> take_gaps() { return std::exchange(gaps_, {}); }
  /// Copies of one event that another gateway has committed. What is missing before them nobody has any more.
  void follow(std::span<const ShippedEvent> unit);

  /// Notes of open episodes, as another gateway has them; and of what is committed here and only staged
  /// there, of which its notes do not tell yet.
  void set_notes(const SeriesCopy& copy);

  /// Writes what was gathered. Throws OutboxError. Events that were followed are acknowledged: nobody waits
  /// for them to be published.
  void write();
  bool has_changes() const;

  /// What a claim is answered with, beside tenures.
  void tell(const std::string& series, ClaimAnswer& answer) const;
  SeriesCopy copy(const std::string& series) const;
  /// Behind this one, at most so many.
  std::vector<std::string> series_after(const std::string& series, std::size_t most) const;

  /// Topics, with the sequence and the print of their last event, behind this one; 0 for a print that is not
  /// known any more.
  std::vector<EventPoint> topics_after(const std::string& topic, std::size_t most) const;
  std::uint64_t last(const std::string& topic) const;
  PointAnswer compare(const EventPoint& point) const;

  /// Of all topics, those included that are forgotten.
  std::uint64_t committed() const { return committed_; }
  std::size_t staged_bytes() const { return staged_bytes_; }
  std::size_t staged_events() const { return staged_events_; }
  /// For tests: what is staged at a place, stale or not.
  const ShippedEvent* staged(const std::string& topic, std::uint64_t sequence) const;

 private:
  struct Staged {
    std::uint64_t fence = 0;
    ShippedEvent event;
    bool stale = false;
  };
  struct Topic {
    std::uint64_t last = 0;
    std::map<std::uint64_t, Staged> staged;
  };
  struct Series {
    std::optional<SeriesTenure> tenure;
    std::map<std::string, Topic> topics;
    /// Of open episodes, by their keys in the outbox.
    std::map<std::string, std::string> notes;
    std::size_t staged = 0;
  };

  enum class Bounds : std::uint8_t { own, none };
  bool stage(const std::string& series, std::uint64_t fence, const ShippedEvent& event, Bounds bounds);
  Topic& topic_of(const std::string& topic);
  const Topic* find_topic(const std::string& topic) const;
  void read_note(const std::string& key, const std::string& value);
  std::map<std::uint64_t, Staged>::iterator unstage(Series& series, const std::string& topic,
                                                    std::map<std::uint64_t, Staged>& staged,
                                                    std::map<std::uint64_t, Staged>::iterator entry);
  void note_episode(Series& series, const std::vector<std::string>& topics, const std::string& body);
  /// Of events that another gateway has staged, those that are committed here: whoever comes may be ahead of
  /// the one that it follows.
  void note_ahead(Series& own, const std::vector<StagedEvent>& staged_there);
  void append(Series& series, Topic& topic, const ShippedEvent& event);
  std::optional<ShippedEvent> event_at(const std::string& topic, std::uint64_t sequence) const;

  const Options options_;
  actors::Outbox& outbox_;
  std::map<std::string, Series> series_;
  ServingTime served_;
  std::uint64_t committed_ = 0;
  std::size_t staged_bytes_ = 0;
  std::size_t staged_events_ = 0;
  std::vector<TopicGap> gaps_;
  /// What was gathered.
  std::vector<actors::Continuation> continuations_;
  std::vector<actors::OutboxEvent> events_;
  std::vector<actors::OutboxNote> notes_;
  /// Whether the events gathered were followed.
  bool follows_ = false;
};

}  // namespace vigil::fleet
