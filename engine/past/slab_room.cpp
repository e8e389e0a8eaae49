#include "engine/past/slab_room.h"

#include <algorithm>

namespace vigil::past {

std::int64_t SlabRoom::add(std::int64_t bytes) {
  slabs_[added_].bytes = bytes;
  bytes_ += bytes;
  return added_++;
}

std::optional<SlabRoom::Range> SlabRoom::take(std::int64_t least, std::int64_t most) {
  for (auto& entry : slabs_) {
    Slab& slab = entry.second;
    std::int64_t begin = 0;
    const auto take = [&](std::int64_t end) -> std::optional<Range> {
      if (end - begin < least) return std::nullopt;
      const Range range{entry.first, begin, std::min(end - begin, most)};
      slab.taken[begin] = begin + range.bytes;
      return range;
    };
    for (const auto& [from, to] : slab.taken) {
      if (const auto range = take(from)) return range;
      begin = to;
    }
    if (const auto range = take(slab.bytes)) return range;
  }
  return std::nullopt;
}

void SlabRoom::shorten(const Range& range, std::int64_t bytes) {
  auto& taken = slabs_.at(range.slab).taken;
  if (bytes == 0) {
    taken.erase(range.begin);
  } else {
    taken.at(range.begin) = range.begin + bytes;
  }
}

std::vector<std::int64_t> SlabRoom::drop_empty(std::int64_t most) {
  std::vector<std::int64_t> dropped;
  for (auto slab = slabs_.begin(); slab != slabs_.end() && bytes_ > most;) {
    if (!slab->second.taken.empty()) {
      ++slab;
      continue;
    }
    dropped.push_back(slab->first);
    bytes_ -= slab->second.bytes;
    slab = slabs_.erase(slab);
  }
  return dropped;
}

}  // namespace vigil::past
