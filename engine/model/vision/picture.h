// How pictures enter the engine: a borrowed view, since the engine knows no decoder.
#pragma once

#include <cstdint>

namespace vigil::model {

/// A borrowed RGB picture: `height` rows of `width` pixels of 3 bytes, rows tightly packed.
struct PictureView {
  const std::uint8_t* rgb = nullptr;
  int width = 0;
  int height = 0;
};

/// Width and height in pixels.
struct PictureSize {
  int width = 0;
  int height = 0;
  friend bool operator==(const PictureSize&, const PictureSize&) = default;
};

}  // namespace vigil::model
