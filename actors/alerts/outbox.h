// Where events are kept from before they are published until they may be forgotten.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "config/running/retention_clock.h"

namespace vigil::actors {

/// A read or write that failed, with the outbox's folder and the store's own reason.
class OutboxError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An outbox that somebody else has: another process, or a newer program by its layout. Waiting for the disk
/// does not help.
class OutboxLocked : public OutboxError {
 public:
  using OutboxError::OutboxError;
};

/// Something that people should know of the outbox.
struct OutboxNotice {
  /// For programs. The outbox has a new identity: outbox_behind (it ends before what was kept),
  /// outbox_incomplete (events in the middle are missing), outbox_unreadable, outbox_missing,
  /// outbox_watermark (nothing vouches for it), outbox_foreign (the database is another one's). Others:
  /// outbox_memory and outbox_disk (where events are kept now), outbox_space (damaged files that were kept
  /// are gone), outbox_mode (others may read it), clock (what the retention clock tells).
  std::string reason;
  std::string text;
};

struct OutboxEvent {
  /// The order of all events; given by `append`.
  std::uint64_t position = 0;
  std::string topic;
  /// 1, 2, 3, … for each topic, over restarts.
  std::uint64_t sequence = 0;
  base::Clock::WallTime time;
  std::string body;
};

/// What has to be known of events when nobody knows of them any more: what is begun and not over.
struct OutboxNote {
  std::string key;
  /// Nothing: there is no such note from now on.
  std::optional<std::string> value;
};

/// Where a topic goes on whose numbers others give, too.
struct Continuation {
  std::string topic;
  /// The next event has the sequence after this one.
  std::uint64_t last = 0;
  /// Of what is here, events up to this sequence stay. None behind `last` does.
  std::uint64_t stays = std::numeric_limits<std::uint64_t>::max();
};

/// Which events to read again, and how many at once.
struct ReplayQuery {
  /// Beginnings of topics; an event is wanted if one of them fits.
  std::vector<std::string> topics;
  /// Events after this position.
  std::uint64_t after = 0;
  /// Only events of this time or later.
  std::optional<base::Clock::WallTime> since;
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
/// an `append`, which the store may have kept or not: events that are appended again have the same ids.
class Outbox {
 public:
  virtual ~Outbox() = default;

  /// To be called between two turns of work: opens again what failed, so that afterwards it is known what an
  /// `append` that threw has kept, and goes over to a better place for events if there is one now. Only here
  /// and in a call that throws can it become another outbox (`identity`).
  virtual void refresh() = 0;

  /// What will be gone with the process: so many events, for this reason.
  struct Passing {
    std::size_t events = 0;
    std::string reason;
  };
  /// As `refresh`, for the last time, without regard to when it was tried last; what is passing after it.
  virtual Passing finish() {
    refresh();
    return {};
  }

  /// The last sequence number of a topic; 0 if it never had an event. Survives `prune`.
  virtual std::uint64_t last_sequence(const std::string& topic) const = 0;

  /// Keeps events and changes notes, all or none of them; when this returns, they survive a crash of the
  /// process and of the machine. The events' positions follow each other in the order given; returns the
  /// first, or 0 if there is no event. Of notes with one key the last one counts. Throws
  /// std::invalid_argument unless the sequence of each event follows the last of its topic.
  virtual std::uint64_t append(std::span<const OutboxEvent> events, std::span<const OutboxNote> notes) = 0;
  std::uint64_t append(std::span<const OutboxEvent> events) { return append(events, {}); }
  std::uint64_t append(const OutboxEvent& event) { return append(std::span(&event, 1)); }

  /// These topics go on where somebody else says, above or below what is here: what does not stay is
  /// forgotten, acknowledged or not. Then events are appended and notes are changed as `append` does. All of
  /// it or nothing, and durable when it returns; returns as `append`. Forgetting, and doing it again, is no
  /// error. A topic that is named more than once, further up each time, has its events go on there one time
  /// after the other. Throws std::logic_error if this outbox gives all numbers itself.
  virtual std::uint64_t continue_from(std::span<const Continuation> topics,
                                      std::span<const OutboxEvent> events, std::span<const OutboxNote> notes);
  void continue_from(const std::string& topic, std::uint64_t last) {
    const Continuation one{topic, last};
    continue_from(std::span(&one, 1), {}, {});
  }

  /// All notes by their keys. They survive `prune`.
  virtual std::map<std::string, std::string> notes() const = 0;

  /// The oldest events that were not acknowledged, in the order of their positions.
  virtual std::vector<OutboxEvent> unacknowledged(std::size_t limit) const = 0;
  /// The oldest of these after a position.
  virtual std::vector<OutboxEvent> unacknowledged_after(std::uint64_t position, std::size_t limit) const;

  /// These events were published. An acknowledgement that a crash loses means that the event is published
  /// again; one that throws still holds for this object.
  virtual void acknowledge(std::span<const std::uint64_t> positions) = 0;
  void acknowledge(std::uint64_t position) { acknowledge(std::span(&position, 1)); }

  /// Forgets acknowledged events that were appended longer ago than this, by the retention clock, from the
  /// front of the order of positions, but for the last of each topic: a new subscriber gets it, and a new
  /// process knows by it what was left open. Returns how many; `kPruneAtOnce` at most, the rest with the next
  /// calls.
  virtual std::size_t prune(base::Duration older_than) = 0;

  /// Tells this outbox from one that took its place: positions and sequences of another mean nothing here.
  virtual const std::string& identity() const = 0;

  /// What the ids of events have to carry that continue from what is kept here, since those that would follow
  /// may have been given out and lost: its identity if it ever was rebuilt after damage, otherwise nothing.
  virtual std::string mark_of_loss() const { return {}; }

  /// What people should know since the last call.
  virtual std::vector<OutboxNotice> take_notices() { return {}; }

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

/// Whether an outbox has this event, with this sequence and body: after `refresh` or on one that was just
/// opened, it tells what an `append` that threw has kept, since that is all of it or none.
bool has_event(const Outbox& outbox, const OutboxEvent& event);

/// Events that one call of `prune` forgets at most: no alert waits for long.
inline constexpr std::size_t kPruneAtOnce = 20'000;

/// Forgets all when it is destroyed. Without a clock, which has to outlive it, nothing grows old. When its
/// events would exceed `max_bytes`, the oldest that were acknowledged go first, but for the last of each
/// topic; if that is not enough, `append` throws.
std::unique_ptr<Outbox> make_memory_outbox(config::RetentionClock* ages = nullptr,
                                           std::size_t max_bytes = std::numeric_limits<std::size_t>::max());

/// In a folder that is made if it is missing, and is the owner's alone. The clock, which has to outlive it,
/// goes on from the time that the outbox knew last. What the watermark beside the database says was kept, and
/// is not there any more, or what cannot be read, makes it another outbox: the damaged files are set aside in
/// `damaged-TIME` within the folder, what can be read goes on under a new identity, and a notice says so.
/// Throws OutboxLocked if another process or a newer program has it, and OutboxError if the disk does not
/// allow it now. `append` throws while fewer bytes than `keep_free` are free on the disk.
std::unique_ptr<Outbox> open_rocksdb_outbox(const std::filesystem::path& folder, config::RetentionClock& ages,
                                            std::uintmax_t keep_free = 16 << 20);

}  // namespace vigil::actors
