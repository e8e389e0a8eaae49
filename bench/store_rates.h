// How fast a history writes and reads large values beside plain files and `fio`, with the same bytes on the
// same disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "bench/disk_rates.h"
#include "bench/figures.h"
#include "engine/kv/history/history_store.h"

namespace vigil::bench {

// Bytes a second of a history in `layout.folder`/store, a part for each of the layout's files: as
// `write_plain` and `read_plain`. They throw history::HistoryError, and std::runtime_error for a value that
// is not there.
double write_store(const DiskLayout& layout, std::span<const std::byte> value,
                   const std::optional<history::SecretKey>& master, const base::Clock& clock);
double read_store(const DiskLayout& layout, int threads, const std::optional<history::SecretKey>& master,
                  const base::Clock& clock);

/// So many bytes, which do not get smaller if somebody packs them.
std::vector<std::byte> random_bytes(std::size_t bytes, std::uint64_t seed = 1);

struct StoreRatesOptions {
  /// What is written there is gone afterwards; it has to be there.
  std::filesystem::path folder;
  std::size_t value_bytes = std::size_t{1} << 20U;
  /// Of 64 MiB each.
  std::size_t files = 16;
  int rounds = 5;
  /// Who read at once.
  std::vector<int> threads = {1, 4};
  bool has_fio = false;
};

/// Bytes a second, once a round, in turns: `write_fio`, `write_store`, `write_plain`, `write_sealed`
/// (encrypted), and for each number of threads `read_fio_N` and the like.
Figures store_rates(const StoreRatesOptions& options, const base::Clock& clock);

}  // namespace vigil::bench
