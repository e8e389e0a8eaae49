#include "engine/past/byte_ring.h"

namespace vigil::past {

std::optional<ByteRing::Range> ByteRing::take(std::int64_t bytes) {
  Range range{0, bytes};
  if (ranges_.empty()) {
    if (bytes > bytes_) return std::nullopt;
  } else {
    const Range &oldest = ranges_.front(), &newest = ranges_.back();
    range.begin = newest.end();
    if (newest.begin < oldest.begin) {
      if (range.end() > oldest.begin) return std::nullopt;
    } else if (range.end() > bytes_) {
      range.begin = 0;
      if (range.end() > oldest.begin) return std::nullopt;
    }
  }
  ranges_.push_back(range);
  return range;
}

}  // namespace vigil::past
