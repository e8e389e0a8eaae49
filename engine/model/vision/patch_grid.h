// How a picture or a video is cut.
#pragma once

#include <cstdint>

namespace vigil::model {

/// The patches of one picture or video: `t` temporal patches of `h` x `w` patches; h and w are multiples of
/// spatial_merge_size.
struct PatchGrid {
  std::int64_t t = 0;
  std::int64_t h = 0;
  std::int64_t w = 0;

  std::int64_t patches() const { return t * h * w; }
  friend bool operator==(const PatchGrid&, const PatchGrid&) = default;
};

}  // namespace vigil::model
