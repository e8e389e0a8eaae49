// Events on their way into the outbox: what goes first, what waits for what, and how much goes at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "actors/alerts/outbox.h"
#include "base/clock.h"

namespace vigil::actors {

/// All that is known only when an event is written.
struct EventDraft {
  /// Of the topic that this copy is for.
  std::uint64_t sequence = 0;
  base::Clock::TimePoint now;
  /// What it waited for, if that came.
  std::optional<std::string> text;
};

/// One thing to tell. All topics get it, or none: each a copy under its own sequence.
struct WaitingEvent {
  /// The first is its own.
  std::vector<std::string> topics;
  base::Clock::WallTime time;
  std::function<std::string(const EventDraft&)> body;
  /// What has to be known of it when this process is killed, made of the body on its own topic. May be empty;
  /// without topics, it is all that is written.
  std::function<OutboxNote(const std::string& body)> note = {};
  /// Goes ahead of those that are not, which have other topics.
  bool urgent = true;
  /// Of the explanation that it waits for, until then at most.
  std::optional<std::uint64_t> ticket = {};
  base::Clock::TimePoint until = {};
  std::string camera = {};
  std::optional<std::string> text = {};
};

/// The order of a topic's events is the order in which they came. An event that waits for its explanation
/// holds back those that follow it on one of its topics, and no others. Not thread-safe.
class EventQueue {
 public:
  struct Options {
    /// Copies of events that wait at most; beyond, the oldest are lost.
    std::size_t most = 4096;
    /// What goes into the outbox at once, at most; one event at least, whatever its size.
    std::size_t batch_events = 256;
    std::size_t batch_bytes = 1 << 20;
    /// Whether events of this camera, or without a name of none, may be written now; absent: always.
    std::function<bool(const std::string& camera)> may_write = {};
  };

  /// What goes into the outbox at once.
  struct Batch {
    std::vector<OutboxEvent> events;
    std::vector<OutboxNote> notes;
    /// Of what it was made of; for `written`.
    std::set<std::uint64_t> parts;
    /// Whether it is not all that may be written now.
    bool more = false;
    bool empty() const { return parts.empty(); }
  };

  explicit EventQueue(Options options) : options_(std::move(options)) {}

  /// Returns how many copies of the oldest events are lost to make room: an urgent one only for another, and
  /// when no other is left. One that is not finds no room among urgent ones, and is lost itself.
  std::size_t push(WaitingEvent event);

  /// Before all others, in this order.
  void push_front(std::vector<WaitingEvent> events);

  /// The explanation has come, or will not come.
  void explained(std::uint64_t ticket, const std::optional<std::string>& text);

  /// Nothing waits for an explanation any more.
  void let_go();

  /// Forgets the events of this camera; returns how many copies.
  std::size_t drop(const std::string& camera);

  /// Whether an event of this camera waits for its explanation.
  bool explains(const std::string& camera) const;

  /// What may be written now; it stays here until it is `written`. `last_sequence` is asked once a topic, and
  /// what it throws comes through.
  Batch next(base::Clock::TimePoint now,
             const std::function<std::uint64_t(const std::string& topic)>& last_sequence) const;

  void written(const Batch& batch);

  /// Copies of events that wait.
  std::size_t size() const { return copies_; }
  bool empty() const { return urgent_.empty() && others_.empty(); }

 private:
  struct Part {
    std::uint64_t number = 0;
    WaitingEvent event;
  };
  using Parts = std::list<Part>;

  /// Returns whether there is room for all of it.
  bool add(Batch& batch, const Parts& parts, base::Clock::TimePoint now,
           const std::function<std::uint64_t(const std::string& topic)>& last_sequence,
           std::map<std::string, std::uint64_t>& sequences) const;

  Options options_;
  /// Each in the order of its coming.
  Parts urgent_;
  Parts others_;
  std::uint64_t numbers_ = 0;
  std::size_t copies_ = 0;
};

}  // namespace vigil::actors
