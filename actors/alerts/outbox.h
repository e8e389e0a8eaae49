// Where events are kept from before they are published until they may be forgotten.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
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

/// One owner at a time; not thread-safe. Every call may throw OutboxError; then nothing was changed.
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

  /// The event was published. An acknowledgement that a crash loses means that the event is published again.
  virtual void acknowledge(std::uint64_t position) = 0;

  /// Forgets acknowledged events that are older than this. Returns how many.
  virtual std::size_t prune(config::Clock::WallTime before) = 0;
};

/// Forgets all when it is destroyed: for tests.
std::unique_ptr<Outbox> make_memory_outbox();

/// In a folder that is made if it is missing. Throws OutboxError if it cannot be opened, as when another
/// process has it open.
std::unique_ptr<Outbox> open_rocksdb_outbox(const std::filesystem::path& folder);

}  // namespace vigil::actors
