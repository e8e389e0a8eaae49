// From a series' books to what its new maker goes on with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/alerts/books.h"
#include "actors/alerts/closing.h"
#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// An episode that somebody has begun, and not ended, or whose evidence is still promised.
struct OpenEpisode {
  /// Its own first.
  std::vector<std::string> topics;
  /// What was told last of it.
  AlertRecord record;
  std::string body;
};

/// What this process's own outbox has of a series.
struct OwnPart {
  /// The fence of the tenure under which it was written; 0 if that is not known.
  std::uint64_t tenure = 0;
  /// That was this very process's: what it remembers is right even if its outbox is another one now.
  bool lived = false;
  /// What was not acknowledged of it, in the order of positions; of others, which are left alone, too.
  std::span<const OutboxEvent> unacknowledged;
  /// Of these, events up to this position are a former process's: nobody publishes them as they are.
  std::uint64_t left_behind = 0;
  const std::map<std::string, std::string>& notes;
  /// The last event of each topic, of all series, acknowledged or not.
  std::span<const OutboxEvent> last;
  /// Of a topic; may throw OutboxError.
  std::function<std::uint64_t(const std::string& topic)> last_sequence;
};

struct Handover {
  /// Nobody had the series since this process's last tenure, and nothing of that is missing: what it knows of
  /// it counts.
  bool goes_on = false;
  /// What is to be done with the outbox, at once: `Outbox::continue_from`.
  std::vector<Continuation> topics;
  std::vector<OutboxEvent> events;
  std::vector<OutboxNote> notes;
  /// Positions of what gateways have already.
  std::vector<std::uint64_t> committed;
  /// Events that are forgotten.
  std::size_t dropped = 0;
  /// As it will be then.
  std::vector<OpenEpisode> open;
  /// The last event of each topic, by topic.
  std::map<std::string, std::string> last;
};

/// Numbers go on behind the books'. Events of this process that are not in them go on, too, if nobody else
/// had the series meanwhile and no event before them is missing; otherwise they are forgotten. What is in the
/// books of other series, or cannot be read, is left alone.
Handover hand_over(const SeriesBooks& books, const OwnPart& own);

/// The note in the outbox that says under which fence events of a series were written.
std::string tenure_key(const std::string& camera);
/// The tenures in these notes, by camera.
std::map<std::string, std::uint64_t> tenures_in(const std::map<std::string, std::string>& notes);

}  // namespace vigil::actors
