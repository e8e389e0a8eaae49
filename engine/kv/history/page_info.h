// What is known of a page without reading it: which patches of which stream it has, and when they were.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/grid_mask.h"

namespace vigil::history {

/// 128 bits that two contents share only if they are the same. No defence against somebody who wants two
/// contents to share them.
using Fingerprint = std::array<std::uint8_t, 16>;

/// XXH3-128 of all values of a page, in the order of their layers.
Fingerprint fingerprint_of(std::span<const std::span<const std::byte>> values);

/// Wall time in nanoseconds since the epoch of Unix, both ends included.
struct WallRange {
  std::int64_t from = 0;
  std::int64_t to = 0;

  bool meets(const WallRange& other) const { return from <= other.to && other.from <= to; }
  friend bool operator==(const WallRange&, const WallRange&) = default;
};

/// One temporal patch, as far as a page has its tokens.
struct PatchInfo {
  /// Counted in its stream.
  std::int64_t number = 0;
  /// Its position in time; row and column are those of the grid's first cell.
  std::int64_t place = 0;
  std::int32_t row = 0;
  std::int32_t column = 0;
  /// Of the grid's tokens, those that the page has.
  base::GridMask kept;
  WallRange wall;
  /// Of its first frame, in seconds of the stream.
  double seconds = 0;

  friend bool operator==(const PatchInfo&, const PatchInfo&) = default;
};

struct PageInfo {
  /// Ascending per camera, for ever; given by who makes the page.
  std::uint64_t number = 0;
  /// A random name of the run of positions that the patches belong to.
  std::uint64_t stream = 0;
  Fingerprint fingerprint{};
  /// In what form its values are; the caller's to say.
  std::uint8_t form = 0;
  std::uint32_t tokens = 0;
  /// Of all its values together.
  std::uint64_t bytes = 0;
  /// In the order of time; at least one.
  std::vector<PatchInfo> patches;

  friend bool operator==(const PageInfo&, const PageInfo&) = default;
};

/// From the first patch to the last, with all between them.
WallRange wall_of(const PageInfo& page);

inline constexpr std::size_t kMostPatches = 4096;
inline constexpr std::int64_t kMostCells = std::int64_t{1} << 16U;

/// Why no page is described so; nothing if one may be.
std::optional<std::string> fault_of(const PageInfo& page);

/// Each page has one encoding. It begins with a version; no `fault_of` it.
std::string encode_page_info(const PageInfo& page);
/// Nothing for bytes that are no encoding. Takes memory in proportion to the bytes.
std::optional<PageInfo> decode_page_info(std::string_view bytes);

struct PageSummary {
  std::uint64_t number = 0;
  std::uint8_t form = 0;
  std::uint64_t bytes = 0;
  WallRange wall;

  friend bool operator==(const PageSummary&, const PageSummary&) = default;
};
/// Of an encoding, without its masks; nothing where `decode_page_info` gives nothing.
std::optional<PageSummary> summary_of(std::string_view bytes);

}  // namespace vigil::history
