// An outbox on a disk that may not be there: alerts go out all the same.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <spdlog/logger.h>

#include "actors/alerts/outbox.h"
#include "actors/status/metrics.h"
#include "base/clock.h"

namespace vigil::actors {

struct FallbackOptions {
  /// Opens the one on the disk; throws OutboxError.
  std::function<std::unique_ptr<Outbox>()> open;
  /// What events that are kept in memory take at most (`make_memory_outbox`).
  std::size_t memory_bytes = 16 << 20;
  /// How often the disk is tried again.
  base::Duration retry = std::chrono::seconds(5);
  /// Topics go on where others say (`continue_from`): what moves keeps its numbers, and what a former process
  /// left open is not for this one to end.
  bool given_numbers = false;
};

/// The outbox that `open` gives; while it throws, one in memory, with an identity of its own, and the disk is
/// tried again and again. Once it opens, what the one in memory holds is appended to it: with the sequences
/// that follow there, in the bodies as well, and under the identity of the one on the disk from then on.
/// Episodes that the disk's last process left open are ended by that. Of each topic the last event that was
/// moved waits to be published again, so that its number is known. With `given_numbers`, sequences stay what
/// they are, topics have gone on there where they did in memory, and what the disk has of them from where
/// they first did so is forgotten. Notices go to the log and the metrics, too; so does what the retention
/// clock tells. Throws OutboxLocked if that is why it cannot be opened at first. What it is given has to
/// outlive it.
std::unique_ptr<Outbox> make_fallback_outbox(FallbackOptions options, config::RetentionClock& ages,
                                             const base::Clock& clock, Metrics& metrics,
                                             spdlog::logger& logger);

}  // namespace vigil::actors
