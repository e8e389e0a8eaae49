// What the cache and those who wait for its disk tell each other. Plain, and free of CAF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/kv/history/history_store.h"
#include "engine/memory/part_queue.h"

namespace vigil::actors {

/// Values that are to be read; or, without any, pages that are to be verified: of one camera, or of all.
struct PagesToRead {
  std::uint64_t id = 0;
  std::optional<history::CameraId> camera;
  std::vector<history::ValueName> names;
};

/// What came of it. Whoever takes it moves out of it.
struct ReadPages {
  std::uint64_t id = 0;
  /// In the order of the names.
  std::vector<history::Value> values;
  std::optional<history::VerifyReport> verified;
  /// Why there is nothing; empty: there is.
  std::string failure;
};

/// What there is of it where nobody could read: as far as anybody can tell, all of it is damaged.
inline ReadPages unread(const PagesToRead& wanted, std::string why) {
  ReadPages pages;
  pages.id = wanted.id;
  for (std::size_t i = 0; i < wanted.names.size(); ++i) pages.values.emplace_back(history::Missing::damaged);
  pages.failure = std::move(why);
  return pages;
}

/// What a turn of the writer came to.
struct DiskNews {
  std::vector<memory::PartQueue::Written> written;
  history::Removed retired;
  /// Erasures were finished; and why they could not be, or hours could not be retired.
  bool has_erased = false;
  std::string failure;
};

/// What is over: hours, erasures that no page can meet any more, and notes of why nothing was kept.
struct Expiries {
  std::vector<history::Expiry> expiries;
  std::vector<std::uint64_t> forgotten;
  std::vector<history::Note> notes;
};

}  // namespace vigil::actors
