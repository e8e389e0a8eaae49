#include "media/contact_sheet.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

#include "media/canvas.h"

namespace vigil::media {
namespace {

constexpr int kGap = 6;
constexpr int kLegend = 34;
constexpr Colour kPaper{24, 26, 30};
constexpr Colour kInk{235, 235, 235};
/// Lines show vectors of a pixel and more, enlarged to be seen, and not so long that they hide each other.
constexpr float kShortestLine = 1;
constexpr float kLineGain = 2;
constexpr float kLongestLine = 56;
/// Cells a line stands for, in each direction.
constexpr int kCellsALine = 4;

// From a quarter pixel to 16 pixels by doublings: blue, cyan, green, yellow, red.
Colour colour_of(float pixels) {
  static constexpr std::array<Colour, 5> kScale = {Colour{40, 90, 255}, Colour{0, 200, 230},
                                                   Colour{60, 210, 60}, Colour{255, 220, 0},
                                                   Colour{255, 40, 20}};
  const float place = std::clamp((std::log2(std::max(pixels, kMovingPixels)) + 2) / 6, 0.0F, 1.0F) * 4;
  const auto lower = std::min(static_cast<std::size_t>(place), kScale.size() - 2);
  const float part = place - static_cast<float>(lower);
  const auto mix = [part](std::uint8_t a, std::uint8_t b) {
    return static_cast<std::uint8_t>(static_cast<float>(a) * (1 - part) + static_cast<float>(b) * part);
  };
  const Colour& a = kScale[lower];
  const Colour& b = kScale[lower + 1];
  return {mix(a.red, b.red), mix(a.green, b.green), mix(a.blue, b.blue)};
}

void draw_motion(Canvas& canvas, const MotionGrid& motion, int left, int top, Size tile) {
  const float scale_x = static_cast<float>(tile.width) / static_cast<float>(motion.frame().width);
  const float scale_y = static_cast<float>(tile.height) / static_cast<float>(motion.frame().height);
  const auto x_of = [&](int column) {
    return std::min(tile.width,
                    static_cast<int>(std::lround(static_cast<float>(column * motion.cell_size()) * scale_x)));
  };
  const auto y_of = [&](int row) {
    return std::min(tile.height,
                    static_cast<int>(std::lround(static_cast<float>(row * motion.cell_size()) * scale_y)));
  };
  for (int row = 0; row < motion.rows(); ++row) {
    for (int column = 0; column < motion.columns(); ++column) {
      const float length = motion.at(column, row).longest;
      if (length <= kMovingPixels) continue;
      canvas.tint(left + x_of(column), top + y_of(row), x_of(column + 1) - x_of(column),
                  y_of(row + 1) - y_of(row), colour_of(length), 0.4F);
    }
  }
  const auto centre_of = [&](int first) {
    return (static_cast<float>(first) + 0.5F * kCellsALine) * static_cast<float>(motion.cell_size());
  };
  for (int row = 0; row < motion.rows(); row += kCellsALine) {
    for (int column = 0; column < motion.columns(); column += kCellsALine) {
      MotionGrid::Cell sum;
      for (int y = row; y < std::min(row + kCellsALine, motion.rows()); ++y) {
        for (int x = column; x < std::min(column + kCellsALine, motion.columns()); ++x) {
          sum.moved_x += motion.at(x, y).moved_x;
          sum.moved_y += motion.at(x, y).moved_y;
          sum.vectors += motion.at(x, y).vectors;
        }
      }
      if (sum.vectors == 0) continue;
      const float moved_x = sum.moved_x / static_cast<float>(sum.vectors);
      const float moved_y = sum.moved_y / static_cast<float>(sum.vectors);
      const float length = std::hypot(moved_x, moved_y);
      if (length < kShortestLine) continue;
      const float gain = std::min(kLineGain, kLongestLine / length);
      const float to_x = static_cast<float>(left) + centre_of(column) * scale_x;
      const float to_y = static_cast<float>(top) + centre_of(row) * scale_y;
      const float from_x = std::clamp(to_x - moved_x * gain * scale_x, static_cast<float>(left),
                                      static_cast<float>(left + tile.width - 2));
      const float from_y = std::clamp(to_y - moved_y * gain * scale_y, static_cast<float>(top),
                                      static_cast<float>(top + tile.height - 2));
      canvas.line(from_x + 1, from_y + 1, to_x + 1, to_y + 1, {0, 0, 0});
      canvas.line(from_x, from_y, to_x, to_y, {255, 255, 255});
      canvas.tint(static_cast<int>(to_x) - 1, static_cast<int>(to_y) - 1, 3, 3, {255, 255, 255}, 1);
    }
  }
}

/// How much of a square is paper.
constexpr float kDim = 0.4F, kDark = 0.8F;

void darken_others(Canvas& canvas, const base::GridMask& clear, const base::GridMask& dim, int left, int top,
                   Size tile) {
  const auto edge = [](std::int64_t cell, std::int64_t cells, int length) {
    return static_cast<int>(cell * length / cells);
  };
  for (std::int64_t y = 0; y < clear.height(); ++y)
    for (std::int64_t x = 0; x < clear.width(); ++x) {
      if (clear.has(y, x)) continue;
      const int from_x = edge(x, clear.width(), tile.width);
      const int from_y = edge(y, clear.height(), tile.height);
      canvas.tint(left + from_x, top + from_y, edge(x + 1, clear.width(), tile.width) - from_x,
                  edge(y + 1, clear.height(), tile.height) - from_y, kPaper, dim.has(y, x) ? kDim : kDark);
    }
}

const char* letter_of(FrameType type) {
  switch (type) {
    case FrameType::intra:
      return "I";
    case FrameType::predicted:
      return "P";
    case FrameType::bidirectional:
      return "B";
    case FrameType::unknown:
      break;
  }
  return "?";
}

void draw_label(Canvas& canvas, const SampledFrame& sample, int left, int top) {
  std::array<char, 48> label{};
  const double seconds = std::floor(sample.seconds * 100 + 0.5) / 100;
  const int minutes = static_cast<int>(seconds / 60);
  std::snprintf(label.data(), label.size(), "%d:%05.2f %s", minutes, seconds - 60 * minutes,
                letter_of(sample.type));
  canvas.tint(left, top, Canvas::text_width(label.data(), 2) + 6, 22, {0, 0, 0}, 0.7F);
  canvas.text(left + 4, top + 4, label.data(), kInk, 2);
}

void draw_legend(Canvas& canvas, int left, int top) {
  constexpr std::array<std::pair<float, const char*>, 7> kMarks = {
      {{0.25F, "0.25"}, {0.5F, "0.5"}, {1, "1"}, {2, "2"}, {4, "4"}, {8, "8"}, {16, "16+ px"}}};
  for (const auto& [pixels, name] : kMarks) {
    canvas.tint(left, top, 22, 22, colour_of(pixels), 1);
    canvas.text(left + 28, top + 4, name, kInk, 2);
    left += 28 + Canvas::text_width(name, 2) + 16;
  }
}

}  // namespace

ContactSheet::ContactSheet(std::size_t capacity, int columns, int tile_width)
    : capacity_(capacity), columns_(columns), tile_width_(tile_width) {
  if (capacity < 1 || columns < 1 || tile_width < 1)
    throw std::invalid_argument("a contact sheet needs room for a tile");
}

Size ContactSheet::tile_size(Size source) const {
  const int height = static_cast<int>(std::lround(double{1} * tile_width_ * source.height / source.width));
  // A strip is cut to twice the width in height, at most.
  return {tile_width_, std::clamp(height, 1, 2 * tile_width_)};
}

void ContactSheet::add(const SampledFrame& sample) {
  if (!is_wanted()) return;
  MotionGrid motion(sample.source_size);
  for (const FrameMotion& frame : sample.motion->frames) {
    if (frame.width == sample.source_size.width && frame.height == sample.source_size.height)
      motion.add(frame);
  }
  add({sample, std::move(motion), std::nullopt});
}

void ContactSheet::add(const SampledFrame& sample, const base::GridMask& clear, const base::GridMask& dim) {
  if (is_wanted()) add({sample, MotionGrid(sample.source_size), Tile::Squares{clear, dim}});
}

void ContactSheet::add(Tile tile) {
  tiles_.push_back(std::move(tile));
  if (tiles_.size() <= capacity_) return;
  std::vector<Tile> kept;
  for (std::size_t i = 0; i < tiles_.size(); i += 2) kept.push_back(std::move(tiles_[i]));
  tiles_ = std::move(kept);
  stride_ *= 2;
}

Image ContactSheet::draw() const {
  if (tiles_.empty()) return {};
  const int count = static_cast<int>(tiles_.size());
  const int columns = std::min(columns_, count);
  const int rows = (count + columns - 1) / columns;
  int tile_height = 1;
  for (const Tile& tile : tiles_) tile_height = std::max(tile_height, tile.sample.image->size.height);
  const bool motion_known = tiles_.front().sample.motion->available && !tiles_.front().squares;
  // The legend needs its width even over a single column.
  const int width = std::max(columns * (tile_width_ + kGap) + kGap, motion_known ? 640 : 0);
  const int head = motion_known ? kLegend : kGap;
  Canvas canvas({width, head + rows * (tile_height + kGap)}, kPaper);
  if (motion_known) draw_legend(canvas, kGap, kGap);
  for (int i = 0; i < count; ++i) {
    const Tile& tile = tiles_[static_cast<std::size_t>(i)];
    const int left = kGap + i % columns * (tile_width_ + kGap);
    const int top = head + i / columns * (tile_height + kGap);
    canvas.paste(*tile.sample.image, left, top);
    if (tile.squares) {
      darken_others(canvas, tile.squares->clear, tile.squares->dim, left, top, tile.sample.image->size);
    } else {
      draw_motion(canvas, tile.motion, left, top, tile.sample.image->size);
    }
    draw_label(canvas, tile.sample, left, top);
  }
  return std::move(canvas).take();
}

}  // namespace vigil::media
