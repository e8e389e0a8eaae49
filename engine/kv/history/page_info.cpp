#include "engine/kv/history/page_info.h"

#include <algorithm>
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

base::GridMask decode_mask(ByteReader& reader, std::int64_t height, std::int64_t width) {
  base::GridMask mask = base::GridMask::none(height, width);
  const std::string_view bits = reader.text((static_cast<std::uint64_t>(mask.cells()) + 7) / 8);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((static_cast<unsigned char>(bits[i]) >> bit & 1U) == 0) continue;
      const auto cell = static_cast<std::int64_t>(8 * i + bit);
      if (cell >= mask.cells()) {
        reader.fail();
        return mask;
      }
      mask.add(cell);
    }
  }
  // Those have a shorter way.
  if (mask.count() == 0 || mask.has_all()) reader.fail();
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

PatchInfo decode_patch(ByteReader& reader, const PatchInfo& before) {
  PatchInfo patch;
  patch.number = sum(before.number, reader.near_zero());
  patch.place = sum(before.place, reader.near_zero());
  const std::int64_t row = sum(before.row, reader.near_zero());
  const std::int64_t column = sum(before.column, reader.near_zero());
  patch.row = static_cast<std::int32_t>(row);
  patch.column = static_cast<std::int32_t>(column);
  if (patch.row != row || patch.column != column) reader.fail();
  patch.wall.from = sum(before.wall.to, reader.near_zero());
  patch.wall.to = sum(patch.wall.from, reader.number());
  patch.seconds = reader.real();
  const auto how = reader.fixed<std::uint8_t>();
  const bool same = (how & kSameGrid) != 0;
  const auto kind = static_cast<std::uint8_t>(how & ~kSameGrid);
  const auto height = same ? static_cast<std::uint64_t>(before.kept.height()) : reader.number();
  const auto width = same ? static_cast<std::uint64_t>(before.kept.width()) : reader.number();
  const bool again = height == static_cast<std::uint64_t>(before.kept.height()) &&
                     width == static_cast<std::uint64_t>(before.kept.width());
  if (reader.failed() || kind > kBits || !fits(height, width) || same != again) {
    reader.fail();
    return patch;
  }
  const auto rows = static_cast<std::int64_t>(height);
  const auto columns = static_cast<std::int64_t>(width);
  // None of no cells is all of them, too.
  if (kind == kAllCells && rows * columns == 0) reader.fail();
  patch.kept = kind == kBits       ? decode_mask(reader, rows, columns)
               : kind == kAllCells ? base::GridMask::all(rows, columns)
                                   : base::GridMask::none(rows, columns);
  return patch;
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
  if (reader.fixed<std::uint8_t>() != kPageInfoVersion) return std::nullopt;
  PageInfo page;
  page.form = reader.fixed<std::uint8_t>();
  page.number = reader.number();
  page.stream = reader.fixed<std::uint64_t>();
  const std::string_view fingerprint = reader.text(page.fingerprint.size());
  std::copy(fingerprint.begin(), fingerprint.end(), page.fingerprint.begin());
  const std::uint64_t tokens = reader.number();
  page.tokens = static_cast<std::uint32_t>(tokens);
  page.bytes = reader.number();
  const std::uint64_t patches = reader.number();
  if (reader.failed() || tokens != page.tokens || patches > kMostPatches) return std::nullopt;
  PatchInfo none;
  for (std::uint64_t i = 0; i < patches; ++i) {
    PatchInfo patch = decode_patch(reader, page.patches.empty() ? none : page.patches.back());
    if (reader.failed()) return std::nullopt;
    page.patches.push_back(std::move(patch));
  }
  if (!reader.done() || fault_of(page)) return std::nullopt;
  return page;
}

}  // namespace vigil::history
