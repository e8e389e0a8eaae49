// The little drawing that a contact sheet needs.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "media/media.h"

namespace vigil::media {

struct Colour {
  std::uint8_t red = 0;
  std::uint8_t green = 0;
  std::uint8_t blue = 0;
};

/// Draws on a picture; what lies outside of it is cut off.
class Canvas {
 public:
  explicit Canvas(Size size, Colour background);

  void paste(const Image& picture, int left, int top);
  /// Mixes a colour into a rectangle; `opacity` 0 to 1.
  void tint(int left, int top, int width, int height, Colour colour, float opacity);
  /// A line of the given width between two points.
  void line(float from_x, float from_y, float to_x, float to_y, Colour colour);
  /// Letters of 5x7 dots, `scale` pixels a dot. Has digits, capitals and few signs; others are blank.
  void text(int left, int top, std::string_view letters, Colour colour, int scale);
  static int text_width(std::string_view letters, int scale) {
    return static_cast<int>(letters.size()) * 6 * scale;
  }

  Image take() && { return std::move(image_); }

 private:
  void blend(int x, int y, Colour colour, float opacity);

  Image image_;
};

}  // namespace vigil::media
