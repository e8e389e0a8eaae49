// What is to be done on the cache's disk, a turn at a time.
#pragma once

#include <vector>

#include "actors/cache/disk.h"
#include "base/clock.h"
#include "engine/kv/history/history_store.h"
#include "engine/memory/part_queue.h"

namespace vigil::actors {

/// Blocks. In one thread.
class DiskWriting {
 public:
  /// They have to outlive it.
  DiskWriting(history::HistoryStore& store, memory::PartQueue& queue, const base::Clock& clock)
      : store_(store), queue_(queue), clock_(clock) {}

  /// These hours are over, and go with the next turn.
  void retire(std::vector<history::Expiry> expiries) { expiries_ = std::move(expiries); }
  /// Of these erasures a note is left with the next turn.
  void forget(std::vector<std::uint64_t> erasures) { forgotten_ = std::move(erasures); }
  /// They are written with the next turn in which the disk takes them.
  void note(const std::vector<history::Note>& notes);

  /// Removes what was erased, then what is over, then writes notes and a part that is complete. True in
  /// `goes_on`: there is more to do at once.
  DiskNews turn(bool& goes_on);
  /// All that is left is complete, and written.
  DiskNews finish();

 private:
  history::HistoryStore& store_;
  memory::PartQueue& queue_;
  const base::Clock& clock_;
  std::vector<history::Expiry> expiries_;
  std::vector<std::uint64_t> forgotten_;
  std::vector<history::Note> notes_;
};

}  // namespace vigil::actors
