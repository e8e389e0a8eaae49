#include "media/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace vigil::media {
namespace {

struct Glyph {
  char letter;
  /// Seven rows from the top, five dots each, the leftmost in bit 4.
  std::array<std::uint8_t, 7> rows;
};

constexpr Glyph kFont[] = {
    {'0', {14, 17, 19, 21, 25, 17, 14}}, {'1', {4, 12, 4, 4, 4, 4, 14}},
    {'2', {14, 17, 1, 2, 4, 8, 31}},     {'3', {31, 2, 4, 2, 1, 17, 14}},
    {'4', {2, 6, 10, 18, 31, 2, 2}},     {'5', {31, 16, 30, 1, 1, 17, 14}},
    {'6', {6, 8, 16, 30, 17, 17, 14}},   {'7', {31, 1, 2, 4, 8, 8, 8}},
    {'8', {14, 17, 17, 14, 17, 17, 14}}, {'9', {14, 17, 17, 15, 1, 2, 12}},
    {'.', {0, 0, 0, 0, 0, 12, 12}},      {':', {0, 12, 12, 0, 12, 12, 0}},
    {'-', {0, 0, 0, 31, 0, 0, 0}},       {'/', {0, 1, 2, 4, 8, 16, 0}},
    {'%', {24, 25, 2, 4, 8, 19, 3}},     {'s', {0, 0, 14, 16, 14, 1, 30}},
    {'p', {0, 0, 30, 17, 30, 16, 16}},   {'x', {0, 0, 17, 10, 4, 10, 17}},
    {'I', {14, 4, 4, 4, 4, 4, 14}},      {'P', {30, 17, 17, 30, 16, 16, 16}},
    {'B', {30, 17, 17, 30, 17, 17, 30}}, {'+', {0, 4, 4, 31, 4, 4, 0}},
    {'?', {14, 17, 1, 2, 4, 0, 4}},
};

const Glyph* glyph(char letter) {
  const auto* found =
      std::find_if(std::begin(kFont), std::end(kFont), [&](const Glyph& g) { return g.letter == letter; });
  return found == std::end(kFont) ? nullptr : found;
}

std::uint8_t mixed(std::uint8_t below, std::uint8_t above, float opacity) {
  return static_cast<std::uint8_t>(
      std::lround(static_cast<float>(below) * (1 - opacity) + static_cast<float>(above) * opacity));
}

}  // namespace

Canvas::Canvas(Size size, Colour background) {
  image_.size = size;
  image_.rgb.resize(static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3);
  tint(0, 0, size.width, size.height, background, 1);
}

void Canvas::blend(int x, int y, Colour colour, float opacity) {
  if (x < 0 || y < 0 || x >= image_.size.width || y >= image_.size.height) return;
  std::uint8_t* pixel =
      &image_.rgb[(static_cast<std::size_t>(y) * static_cast<std::size_t>(image_.size.width) +
                   static_cast<std::size_t>(x)) *
                  3];
  pixel[0] = mixed(pixel[0], colour.red, opacity);
  pixel[1] = mixed(pixel[1], colour.green, opacity);
  pixel[2] = mixed(pixel[2], colour.blue, opacity);
}

void Canvas::paste(const Image& picture, int left, int top) {
  const std::uint8_t* pixel = picture.rgb.data();
  for (int y = 0; y < picture.size.height; ++y) {
    for (int x = 0; x < picture.size.width; ++x, pixel += 3)
      blend(left + x, top + y, {pixel[0], pixel[1], pixel[2]}, 1);
  }
}

void Canvas::tint(int left, int top, int width, int height, Colour colour, float opacity) {
  for (int y = top; y < top + height; ++y) {
    for (int x = left; x < left + width; ++x) blend(x, y, colour, opacity);
  }
}

void Canvas::line(float from_x, float from_y, float to_x, float to_y, Colour colour) {
  const int steps =
      std::max(1, static_cast<int>(std::ceil(std::max(std::abs(to_x - from_x), std::abs(to_y - from_y)))));
  for (int i = 0; i <= steps; ++i) {
    const float along = static_cast<float>(i) / static_cast<float>(steps);
    blend(static_cast<int>(std::lround(from_x + (to_x - from_x) * along)),
          static_cast<int>(std::lround(from_y + (to_y - from_y) * along)), colour, 1);
  }
}

void Canvas::text(int left, int top, std::string_view letters, Colour colour, int scale) {
  for (const char letter : letters) {
    if (const Glyph* shape = glyph(letter)) {
      for (int row = 0; row < 7; ++row) {
        for (int column = 0; column < 5; ++column) {
          if ((shape->rows[static_cast<std::size_t>(row)] >> (4 - column) & 1) == 0) continue;
          tint(left + column * scale, top + row * scale, scale, scale, colour, 1);
        }
      }
    }
    left += 6 * scale;
  }
}

}  // namespace vigil::media
