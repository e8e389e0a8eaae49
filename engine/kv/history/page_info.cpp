#include "engine/kv/history/page_info.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <utility>

#include <xxhash.h>

#include "engine/kv/history/byte_codec.h"

namespace vigil::history {
namespace {

constexpr std::uint8_t kPageInfoVersion = 1;
/// How the kept cells of a grid are written.
constexpr std::uint8_t kNoCells = 0;
constexpr std::uint8_t kAllCells = 1;
constexpr std::uint8_t kBits = 2;
// The grid of the patch before.
constexpr std::uint8_t kSameGrid = 4;

std::uint64_t difference(std::int64_t to, std::int64_t from) {
  return static_cast<std::uint64_t>(to) - static_cast<std::uint64_t>(from);
}

std::int64_t sum(std::int64_t to, std::uint64_t difference) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) + difference);
}

bool fits(std::uint64_t height, std::uint64_t width) {
  constexpr auto kMost = static_cast<std::uint64_t>(kMostCells);
  return height <= kMost && width <= kMost && height * width <= kMost;
}

void encode_mask(ByteWriter& writer, const base::GridMask& mask) {
  std::string bits((static_cast<std::size_t>(mask.cells()) + 7) / 8, '\0');
  for (const std::int32_t cell : mask.list()) {
    char& byte = bits[static_cast<std::size_t>(cell) / 8];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1U << (static_cast<unsigned>(cell) % 8));
  }
  writer.text(bits);
}

/// A patch whose mask is still as it is written.
struct WrittenPatch {
  PatchInfo patch;
  std::int64_t height = 0;
  std::int64_t width = 0;
  std::uint8_t kind = kNoCells;
  std::string_view bits;
};

/// Whether these are some cells of so many, but not all: those have a shorter way to be written.
bool is_some_of(std::string_view bits, std::int64_t cells) {
  std::int64_t count = 0;
  for (const char byte : bits) count += std::popcount(static_cast<unsigned char>(byte));
  const auto beyond = static_cast<unsigned>(8 * static_cast<std::int64_t>(bits.size()) - cells);
  if (beyond > 0 && static_cast<unsigned char>(bits.back()) >> (8U - beyond) != 0) return false;
  return count > 0 && count < cells;
}

base::GridMask mask_of(const WrittenPatch& written) {
  if (written.kind == kAllCells) return base::GridMask::all(written.height, written.width);
  base::GridMask mask = base::GridMask::none(written.height, written.width);
  for (std::size_t i = 0; i < written.bits.size(); ++i)
    for (unsigned left = static_cast<unsigned char>(written.bits[i]); left != 0; left &= left - 1)
      mask.add(static_cast<std::int64_t>(8 * i) + std::countr_zero(left));
  return mask;
}

void encode_patch(ByteWriter& writer, const PatchInfo& patch, const PatchInfo& before) {
  writer.near_zero(difference(patch.number, before.number));
  writer.near_zero(difference(patch.place, before.place));
  writer.near_zero(difference(patch.row, before.row));
  writer.near_zero(difference(patch.column, before.column));
  writer.near_zero(difference(patch.wall.from, before.wall.to));
  writer.number(difference(patch.wall.to, patch.wall.from));
  writer.real(patch.seconds);
  const base::GridMask& kept = patch.kept;
  const bool same = kept.height() == before.kept.height() && kept.width() == before.kept.width();
  const std::uint8_t kind = kept.count() == 0 ? kNoCells : kept.has_all() ? kAllCells : kBits;
  writer.fixed(static_cast<std::uint8_t>(kind | (same ? kSameGrid : 0U)));
  if (!same) {
    writer.number(static_cast<std::uint64_t>(kept.height()));
    writer.number(static_cast<std::uint64_t>(kept.width()));
  }
  if (kind == kBits) encode_mask(writer, kept);
}

WrittenPatch read_patch(ByteReader& reader, const WrittenPatch& before) {
  WrittenPatch written;
  PatchInfo& patch = written.patch;
  patch.number = sum(before.patch.number, reader.near_zero());
  patch.place = sum(before.patch.place, reader.near_zero());
  const std::int64_t row = sum(before.patch.row, reader.near_zero());
  const std::int64_t column = sum(before.patch.column, reader.near_zero());
  patch.row = static_cast<std::int32_t>(row);
  patch.column = static_cast<std::int32_t>(column);
  if (patch.row != row || patch.column != column) reader.fail();
  patch.wall.from = sum(before.patch.wall.to, reader.near_zero());
  patch.wall.to = sum(patch.wall.from, reader.number());
  patch.seconds = reader.real();
  const auto how = reader.fixed<std::uint8_t>();
  const bool same = (how & kSameGrid) != 0;
  written.kind = static_cast<std::uint8_t>(how & ~kSameGrid);
  const auto height = same ? static_cast<std::uint64_t>(before.height) : reader.number();
  const auto width = same ? static_cast<std::uint64_t>(before.width) : reader.number();
  if (reader.failed() || written.kind > kBits || !fits(height, width)) {
    reader.fail();
    return written;
  }
  written.height = static_cast<std::int64_t>(height);
  written.width = static_cast<std::int64_t>(width);
  // The grid of the patch before is not written again, and none of no cells is not all of them.
  const bool again = written.height == before.height && written.width == before.width;
  const std::int64_t cells = written.height * written.width;
  if (same != again || (written.kind == kAllCells && cells == 0)) reader.fail();
  if (written.kind == kBits) {
    written.bits = reader.text((static_cast<std::uint64_t>(cells) + 7) / 8);
    if (reader.failed() || !is_some_of(written.bits, cells)) reader.fail();
  }
  if (patch.wall.to < patch.wall.from) reader.fail();
  return written;
}

/// What is before the patches; how many there are.
std::uint64_t read_head(ByteReader& reader, PageInfo& page) {
  if (reader.fixed<std::uint8_t>() != kPageInfoVersion) reader.fail();
  page.form = reader.fixed<std::uint8_t>();
  page.number = reader.number();
  page.stream = reader.fixed<std::uint64_t>();
  const std::string_view fingerprint = reader.text(page.fingerprint.size());
  std::copy(fingerprint.begin(), fingerprint.end(), page.fingerprint.begin());
  const std::uint64_t tokens = reader.number();
  page.tokens = static_cast<std::uint32_t>(tokens);
  page.bytes = reader.number();
  const std::uint64_t patches = reader.number();
  if (tokens != page.tokens || patches == 0 || patches > kMostPatches) reader.fail();
  return patches;
}

}  // namespace

Fingerprint fingerprint_of(std::span<const std::span<const std::byte>> values) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  for (const auto& value : values) XXH3_128bits_update(state.get(), value.data(), value.size());
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state.get()));
  Fingerprint result;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), result.begin());
  return result;
}

WallRange wall_of(const PageInfo& page) {
  WallRange result = page.patches.empty() ? WallRange{} : page.patches.front().wall;
  for (const PatchInfo& patch : page.patches) {
    result.from = std::min(result.from, patch.wall.from);
    result.to = std::max(result.to, patch.wall.to);
  }
  return result;
}

std::optional<std::string> fault_of(const PageInfo& page) {
  if (page.patches.empty()) return "it has no patches";
  if (page.patches.size() > kMostPatches) {
    return "it has " + std::to_string(page.patches.size()) + " patches, of at most " +
           std::to_string(kMostPatches);
  }
  for (const PatchInfo& patch : page.patches) {
    const std::string name = "its patch " + std::to_string(patch.number);
    if (patch.kept.cells() > kMostCells) {
      return name + " has " + std::to_string(patch.kept.cells()) + " cells, of at most " +
             std::to_string(kMostCells);
    }
    if (patch.wall.to < patch.wall.from) return name + " ends before it begins";
  }
  return std::nullopt;
}

std::string encode_page_info(const PageInfo& page) {
  std::string bytes;
  ByteWriter writer(bytes);
  writer.fixed(kPageInfoVersion);
  writer.fixed(page.form);
  writer.number(page.number);
  writer.fixed(page.stream);
  writer.text({reinterpret_cast<const char*>(page.fingerprint.data()), page.fingerprint.size()});
  writer.number(page.tokens);
  writer.number(page.bytes);
  writer.number(page.patches.size());
  const PatchInfo none;
  const PatchInfo* before = &none;
  for (const PatchInfo& patch : page.patches) {
    encode_patch(writer, patch, *before);
    before = &patch;
  }
  return bytes;
}

std::optional<PageInfo> decode_page_info(std::string_view bytes) {
  ByteReader reader(bytes);
  PageInfo page;
  const std::uint64_t patches = read_head(reader, page);
  WrittenPatch before;
  for (std::uint64_t i = 0; i < patches && !reader.failed(); ++i) {
    before = read_patch(reader, before);
    if (reader.failed()) break;
    page.patches.push_back(before.patch);
    page.patches.back().kept = mask_of(before);
  }
  if (!reader.done()) return std::nullopt;
  return page;
}

std::optional<PageSummary> summary_of(std::string_view bytes) {
  ByteReader reader(bytes);
  PageInfo page;
  const std::uint64_t patches = read_head(reader, page);
  PageSummary summary{page.number, page.form, page.bytes, {}};
  WrittenPatch before;
  for (std::uint64_t i = 0; i < patches && !reader.failed(); ++i) {
    before = read_patch(reader, before);
    const WallRange& wall = before.patch.wall;
    if (i == 0) summary.wall = wall;
    summary.wall = {std::min(summary.wall.from, wall.from), std::max(summary.wall.to, wall.to)};
  }
  if (!reader.done()) return std::nullopt;
  return summary;
}

}  // namespace vigil::history
