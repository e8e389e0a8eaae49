// Who waits for the cache's disk, so that the cache does not: readers, and one writer.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/cache/disk.h"
#include "actors/cache/disk_writing.h"
#include "actors/messages/cache.h"
#include "actors/status/status_board.h"
#include "base/clock.h"
#include "base/duration.h"
#include "engine/kv/history/history_store.h"

namespace vigil::actors {

/// How long a reader may be silent over the pages of a question, and the writer over a turn: a slow disk
/// takes minutes to remove what was erased, one that hangs for longer does not come back by itself.
constexpr base::Duration kReadingPatience = std::chrono::minutes(2);
constexpr base::Duration kWritingPatience = std::chrono::minutes(10);

struct ReaderDeps {
  /// They have to outlive it.
  const history::HistoryStore& store;
  StatusBoard& board;
  spdlog::logger& logger;
  /// On the board, on which whoever spawned it tells its end.
  std::string name;
};

struct reader_state {
  explicit reader_state(reader_actor::pointer self_pointer) : self(self_pointer) {}

  void idle();
  void read(const PagesToRead& wanted);
  void tick();

  reader_actor::pointer self;
  std::optional<ReaderDeps> deps;
  static inline const char* name = "cache_reader";
};

reader_actor::behavior_type reader(reader_actor::stateful_pointer<reader_state> self, ReaderDeps deps);

struct WriterDeps {
  /// They have to outlive it.
  history::HistoryStore& store;
  memory::PartQueue& queue;
  const base::Clock& clock;
  StatusBoard& board;
  spdlog::logger& logger;
  /// As of a reader.
  std::string name;
};

struct writer_state {
  explicit writer_state(writer_actor::pointer self_pointer) : self(self_pointer) {}

  void idle();
  void work();
  void finish();
  void tell(DiskNews news);
  void tick();

  writer_actor::pointer self;
  std::optional<WriterDeps> deps;
  std::optional<DiskWriting> writing;
  cache_actor cache;
  static inline const char* name = "cache_writer";
};

writer_actor::behavior_type writer(writer_actor::stateful_pointer<writer_state> self, WriterDeps deps,
                                   cache_actor cache);

}  // namespace vigil::actors
