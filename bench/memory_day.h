// A day of cameras that remember, in virtual time on a real disk: what is written of what is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "bench/disk_rates.h"
#include "bench/made_pages.h"
#include "engine/kv/forms.h"
#include "engine/kv/history/history_store.h"
#include "engine/memory/memory.h"

namespace vigil::bench {

struct MemoryDayOptions {
  /// Is made; what the day leaves stays there.
  std::filesystem::path folder;
  MadeShape shape;
  std::uint16_t layers = 1;
  int cameras = 16;
  /// How long pages are kept, and for how long the cameras go on then, while what is older goes.
  int hours = 24, more_hours = 6;
  /// Of a camera each, of five minutes, spread over the time.
  int erasures = 5;
  /// The disk is encrypted with it.
  std::optional<history::SecretKey> master = std::nullopt;
  std::uint64_t seed = 1;

  /// A share of a day of a model, whole hours: at least one, and one more in which pages go.
  static MemoryDayOptions of_share(double share);
};

struct MemoryDayFigures {
  /// In the process, by the system's count, from before the folder was opened until it was closed.
  WrittenBytes written;
  struct OfForm {
    std::uint64_t pages = 0, bytes = 0;
  };
  /// That were written to the disk, and counted once. Bytes are those of the pages' values alone.
  std::map<kv::Form, OfForm> kept;
  /// That went because they were too old.
  history::Removed retired;
  std::size_t erasures = 0, erased_pages = 0;
  /// Of what is there at the end: pages in all their forms, and of these the ones with keys.
  std::uint64_t pages_there = 0, form_pages_there = 0, bytes_there = 0, index_bytes = 0, folder_bytes = 0;
  /// That the simulation took.
  double seconds = 0;
  /// Wall time of the last patch, in nanoseconds.
  std::int64_t end = 0;

  std::uint64_t kept_bytes() const;
  double written_per_kept() const {
    return static_cast<double>(written.storage) / static_cast<double>(kept_bytes());
  }
};

/// What the cameras of the demo configuration keep on the disk for so many hours.
memory::Memory::Options day_memory(const MemoryDayOptions& options);
history::CameraId day_camera(int number);

/// Throws history::HistoryError, and std::runtime_error with the reason where a page was not kept that should
/// have been. `real`: for what it takes; its own time is virtual.
MemoryDayFigures simulate_day(const MemoryDayOptions& options, const base::Clock& real);

}  // namespace vigil::bench
