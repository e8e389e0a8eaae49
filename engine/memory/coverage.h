// How much of a stretch of time is remembered, and why the rest is not.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/kv/history/page_info.h"

namespace vigil::memory {

/// down: nobody saw anything, or nobody knows why nothing is there; evicted: others wanted the room, or its
/// time was over; late: the disk, or the host's memory, was too slow for it or had no room; keyless: keys
/// were not kept, and nothing else was wanted; erased: by somebody's order; other_model: what is there was
/// seen by another one; damaged: what is there cannot be read; coming: it is so new, or lies behind
/// now, that it has still to come, if the camera goes on. Where several are known, the later one in this
/// order is told. Notes on a disk have their numbers.
enum class Gap : std::uint8_t { down, evicted, late, keyless, other_model, damaged, erased, coming };
constexpr std::array<std::string_view, 8> kGapNames{"down",        "evicted", "late",   "keyless",
                                                    "other_model", "damaged", "erased", "coming"};
constexpr std::string_view name_of(Gap gap) {
  return kGapNames[static_cast<std::size_t>(gap)];
}

struct KnownGap {
  history::WallRange wall;
  Gap why = Gap::down;
  friend bool operator==(const KnownGap&, const KnownGap&) = default;
};

struct Coverage {
  /// Of the time that was asked for, from 0 to 1.
  double share = 0;
  /// What is not remembered, ascending, apart from each other or for another reason.
  std::vector<KnownGap> gaps;
  friend bool operator==(const Coverage&, const Coverage&) = default;
};

/// Of `asked`, in nanoseconds with both ends: what lies in none of `remembered`, in any order, with the
/// reasons that `known` has. Between two that are remembered nothing is missing that is not longer than
/// `tolerance`: patches follow one another with some jitter.
Coverage cover(const history::WallRange& asked, std::span<const history::WallRange> remembered,
               std::span<const KnownGap> known, std::int64_t tolerance);

}  // namespace vigil::memory
