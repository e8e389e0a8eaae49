// Where events are kept from before they are published until they may be forgotten.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "config/clock.h"

namespace vigil::actors {

/// A read or write that failed, with the outbox's folder and the store's own reason.
class OutboxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct OutboxEvent {
  /// The order of all events; given by `append`.
  std::uint64_t position = 0;
  std::string topic;
  /// 1, 2, 3, … for each topic, over restarts.
  std::uint64_t sequence = 0;
  config::Clock::WallTime time;
  std::string body;
};

/// Which events to read again, and how many at once.
struct ReplayQuery {
  /// Beginnings of topics; an event is wanted if one of them fits.
  std::vector<std::string> topics;
  /// Events after this position.
  std::uint64_t after = 0;
  /// Only events of this time or later.
  std::optional<config::Clock::WallTime> since;
  /// Bounds of one answer. At least one event is read, however large it is.
  std::size_t max_events = 256;
  std::size_t max_bytes = 1 << 20;
  /// Events that are looked at, wanted or not.
  std::size_t max_scanned = 4096;
};

struct Replay {
  /// In the order of their positions.
  std::vector<OutboxEvent> events;
  /// Every kept event up to this position was looked at: where the next query goes on.
  std::uint64_t cursor = 0;
  /// Whether there are events after `cursor`, wanted or not.
  bool more = false;
};

/// One owner at a time; not thread-safe. Every call may throw OutboxError; then nothing was changed, but for
/// an `append`, which the store may have kept or not: an event that is appended again has the same id.
class Outbox {
 public:
  virtual ~Outbox() = default;

  /// The last sequence number of a topic; 0 if it never had an event. Survives `prune`.
  virtual std::uint64_t last_sequence(const std::string& topic) const = 0;

  /// Keeps an event; when this returns, it survives a crash of the process and of the machine. Its position
  /// is set and returned. Throws std::invalid_argument unless its sequence follows the topic's last.
  virtual std::uint64_t append(const OutboxEvent& event) = 0;

  /// The oldest events that were not acknowledged, in the order of their positions.
  virtual std::vector<OutboxEvent> unacknowledged(std::size_t limit) const = 0;

  /// The event was published. An acknowledgement that a crash loses means that the event is published again;
  /// one that throws still holds for this object.
  virtual void acknowledge(std::uint64_t position) = 0;

  /// Forgets acknowledged events that are older than this, but for the last of each topic: a new subscriber
  /// gets it, and a new process knows by it what was left open. Returns how many.
  virtual std::size_t prune(config::Clock::WallTime before) = 0;

  /// Tells this outbox from one that took its place: positions and sequences of another mean nothing here.
  virtual const std::string& identity() const = 0;

  /// The position of the newest event; 0 if there never was one.
  virtual std::uint64_t last_position() const = 0;

  /// The position of the first kept event of a topic with this sequence or a later one.
  virtual std::optional<std::uint64_t> position_of(const std::string& topic,
                                                   std::uint64_t sequence) const = 0;

  virtual Replay replay(const ReplayQuery& query) const = 0;

  /// The last `each` events of each topic, or as many as are kept of them: in the order of topics, then of
  /// sequences.
  virtual std::vector<OutboxEvent> last_events(std::size_t each) const = 0;
};

/// Forgets all when it is destroyed: for tests.
std::unique_ptr<Outbox> make_memory_outbox();

/// In a folder that is made if it is missing. Throws OutboxError if it cannot be opened, as when another
/// process has it open. `append` throws while fewer bytes than `keep_free` are free on the disk.
std::unique_ptr<Outbox> open_rocksdb_outbox(const std::filesystem::path& folder,
                                            std::uintmax_t keep_free = 16 << 20);

}  // namespace vigil::actors
