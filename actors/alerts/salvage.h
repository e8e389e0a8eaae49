// What can still be read of a damaged database, as a new one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

struct SalvageOptions {
  /// Of the new database.
  std::string identity;
  /// Positions go on after this one, also where no event of it can be read.
  std::uint64_t position = 0;
  /// When events that have no stamp were appended at the latest.
  base::Clock::WallTime now;
  /// Events after this position are counted.
  std::uint64_t counted_after = 0;
};

struct Salvaged {
  /// Events that are in the new database, and how many of them are after `counted_after`.
  std::size_t events = 0;
  std::uint64_t counted = 0;
  std::uint64_t last_position = 0;
};

/// Reads each file of a database by itself, so that none has to be whole for another to be read, and each
/// block and each record of the log that is whole. What was acknowledged or forgotten may be there again. The
/// damaged database stays as it is. `scratch` and `next` are empty folders on the same file system; `next`
/// gets the new database, which lies on the disk when this returns. Throws OutboxError.
Salvaged salvage(const std::filesystem::path& damaged, const std::filesystem::path& scratch,
                 const std::filesystem::path& next, const SalvageOptions& options);

}  // namespace vigil::actors
