// The part of `Past` that knows where clusters lie in the host's memory, and how much of it they may have.
#include <algorithm>
#include <bit>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/past/past.h"

namespace vigil::past {

using kernels::HostMemory;
using kernels::Stream;

namespace {

/// Pieces that begin here are read best (kernels::ClusterPieces).
constexpr std::int64_t kLine = 128;
/// Of a slab: what nobody needs yet, and what a cluster leaves at its end, is some of what is there, and
/// whoever takes it does not hold up others for long.
constexpr std::int64_t kFewestOfSlab = std::int64_t{64} << 10U, kMostOfSlab = std::int64_t{16} << 20U;
/// A slab is one of so many of what there is, and of what there may be.
constexpr std::int64_t kSlabs = 16;

/// What counts for this many bytes of the host's memory: what they take.
std::int64_t taken_for(std::int64_t bytes) {
  const auto rounded = static_cast<std::int64_t>(HostMemory::rounded(static_cast<std::size_t>(bytes)));
  // Of the smallest memory a slab is a part.
  return bytes < static_cast<std::int64_t>(HostMemory::rounded(1)) ? bytes : rounded;
}

/// The most that takes no more than this.
std::int64_t fitting(std::int64_t bytes) {
  if (taken_for(bytes) == bytes) return bytes;
  const auto step = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)) / 16);
  return bytes / step * step;
}

}  // namespace

std::int64_t Past::bytes_of(std::int32_t tokens) const {
  const std::int64_t bytes =
      shape_.kv_heads * kernels::PackedShape{options_.form, 1, 1, shape_.head_dim, tokens}.bytes();
  return (bytes + kLine - 1) / kLine * kLine;
}

std::int64_t Past::bytes_of(const std::vector<Order>& orders) const {
  std::int64_t bytes = 0;
  for (const Order& order : orders)
    for (const std::int32_t count : order.counts) bytes += bytes_of(count);
  return bytes;
}

std::optional<std::vector<std::byte*>> Past::give_room(const Stream& stream,
                                                       const std::vector<Order>& orders) {
  std::vector<SlabRoom::Range>& ranges = blocks_.back().ranges;
  std::vector<std::byte*> begins;
  std::int64_t left = bytes_of(orders), used = 0;
  const auto end_range = [&] {
    if (ranges.empty()) return;
    room_.shorten(ranges.back(), used);
    ranges.back().bytes = used;
  };
  for (const Order& order : orders)
    for (const std::int32_t count : order.counts) {
      const std::int64_t bytes = bytes_of(count);
      if (ranges.empty() || used + bytes > ranges.back().bytes) {
        end_range();
        const auto range = make_room(stream, bytes, left);
        if (!range) return std::nullopt;
        ranges.push_back(*range);
        used = 0;
      }
      begins.push_back(slabs_.at(ranges.back().slab).get() + ranges.back().begin + used);
      used += bytes;
      left -= bytes;
    }
  end_range();
  return begins;
}

std::optional<SlabRoom::Range> Past::make_room(const Stream& stream, std::int64_t least, std::int64_t most) {
  for (;;) {
    if (const auto range = room_.take(least, most)) return range;
    const std::int64_t allowed = options_.host_bytes;
    if (room_.bytes() + taken_for(least) > allowed) drop_slabs(stream, allowed - taken_for(least));
    if (room_.bytes() + taken_for(least) <= allowed) {
      add_slab(stream, least);
    } else if (blocks_.size() > 1) {
      forget_block(stream);
    } else {
      return std::nullopt;
    }
  }
}

void Past::add_slab(const Stream& stream, std::int64_t bytes) {
  const std::int64_t allowed = options_.host_bytes;
  const std::int64_t usual =
      std::clamp(std::min(room_.bytes(), allowed) / kSlabs, kFewestOfSlab, kMostOfSlab);
  const std::int64_t taken = std::max(taken_for(bytes), fitting(std::min(usual, allowed - room_.bytes())));
  const auto size = static_cast<std::size_t>(taken);
  // What is given back does not wait for others: a slab is taken once.
  kernels::HostBytes slab = HostMemory(stream, HostMemory::rounded(size)).take(size);
  if (!slab) throw std::bad_alloc();
  slabs_.emplace(room_.add(taken), std::move(slab));
}

void Past::drop_slabs(const Stream& stream, std::int64_t most) {
  if (room_.bytes() <= most) return;
  const std::vector<std::int64_t> dropped = room_.drop_empty(most);
  if (dropped.empty()) return;
  // What was there may still be read, or written.
  stream.synchronize();
  for (const std::int64_t slab : dropped) slabs_.erase(slab);
  // Begins may have been counted from it.
  is_laid_ = blocks_.empty();
}

void Past::give_back(Block& block, bool first) {
  if (block.ranges.empty()) return;
  for (const SlabRoom::Range& range : std::exchange(block.ranges, {})) room_.shorten(range, 0);
  drop_units(block, first);
  std::fill(block.units.begin(), block.units.end(), 0);
}

void Past::resize(const Stream& stream, std::int64_t host_bytes) {
  options_.host_bytes = std::max<std::int64_t>(1, host_bytes);
  drop_slabs(stream, options_.host_bytes);
  while (room_.bytes() > options_.host_bytes && blocks_.size() > 1) {
    forget_block(stream);
    drop_slabs(stream, options_.host_bytes);
  }
  if (room_.bytes() <= options_.host_bytes) return;
  // What is open is laid anew in any case, wherever there is room.
  if (!blocks_.empty() && is_resv() && !table_) {
    forget_block(stream);
  } else if (!blocks_.empty()) {
    give_back(blocks_.back(), false);
  }
  drop_slabs(stream, options_.host_bytes);
}

}  // namespace vigil::past
