#include "engine/model/positions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

namespace vigil::model {

void PositionBuilder::text(std::int64_t tokens) {
  for (std::int64_t i = 0; i < tokens; ++i, ++current_) positions_.push_back({current_, current_, current_});
  largest_ = std::max(largest_, current_ - 1);
}

void PositionBuilder::grid(std::int64_t frames, std::int64_t height, std::int64_t width,
                           std::int32_t interval) {
  const std::int64_t last = current_ + std::max<std::int64_t>(0, frames - 1) * interval;
  if (last > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument(std::to_string(frames) + " frames in steps of " + std::to_string(interval) +
                                " positions reach farther than positions can");
  for (std::int32_t t = 0; t < frames; ++t)
    for (std::int32_t h = 0; h < height; ++h)
      for (std::int32_t w = 0; w < width; ++w) {
        const Position position{current_ + t * interval, current_ + h, current_ + w};
        positions_.push_back(position);
        largest_ = std::max({largest_, position.t, position.h, position.w});
      }
  current_ += static_cast<std::int32_t>(std::max(height, width));
}

void PositionBuilder::generated() {
  current_ = next();
  text(1);
}

std::int32_t time_interval(const VisionConfig& vision, double seconds_per_grid) {
  const float interval = vision.tokens_per_second * static_cast<float>(std::floor(seconds_per_grid));
  if (!(std::abs(interval) < 0x1p31F)) {
    std::array<char, 32> seconds{};
    std::snprintf(seconds.data(), seconds.size(), "%g", seconds_per_grid);
    throw std::invalid_argument(std::string("a patch of frames over ") + seconds.data() +
                                " s is too long for positions");
  }
  return static_cast<std::int32_t>(interval);
}

std::vector<kernels::RopeFrequency> multimodal_rope(const TextConfig& config) {
  // In single precision, as transformers computes them: the difference would show at large positions.
  const auto theta = static_cast<float>(config.rope_theta);
  std::vector<kernels::RopeFrequency> frequencies;
  for (std::size_t axis = 0; axis < config.mrope_section.size(); ++axis)
    for (int i = 0; i < config.mrope_section[axis]; ++i) {
      const auto pair = static_cast<float>(2 * frequencies.size());
      frequencies.push_back({1.0F / std::pow(theta, pair / static_cast<float>(config.head_dim)),
                             static_cast<std::int32_t>(axis)});
    }
  return frequencies;
}

}  // namespace vigil::model
