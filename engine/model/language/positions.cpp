#include "engine/model/language/positions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <stdexcept>
#include <string>

namespace vigil::model {
void PositionCursor::require(std::int64_t last, std::int64_t origin) const {
  if (origin + last > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("a position of " + std::to_string(last) + " after " + std::to_string(origin) +
                                " reaches farther than positions can");
}

void PositionCursor::text(std::int64_t tokens, std::vector<Position>& to) {
  require(current_ + tokens, std::max({origin_.t, origin_.h, origin_.w}));
  for (std::int64_t i = 0; i < tokens; ++i, ++current_) to.push_back(placed(current_, current_, current_));
  largest_ = std::max(largest_, current_ - 1);
}

void PositionCursor::require_grid(std::int64_t frames, std::int64_t height, std::int64_t width,
                                  std::int64_t span, const TimeAxes& time_axes) const {
  if (std::max({origin_.t, origin_.h, origin_.w}) + current_ + span >
      std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument(std::to_string(frames) + " frames over " + std::to_string(span) +
                                " positions reach farther than positions can");
  require(current_ + height + (time_axes[1] ? span : 0), origin_.h);
  require(current_ + width + (time_axes[2] ? span : 0), origin_.w);
}

void PositionCursor::leave_grid(std::int64_t frames, std::int64_t height, std::int64_t width,
                                std::int64_t span, const TimeAxes& time_axes) {
  const Position last = at_time(static_cast<std::int32_t>(span), time_axes);
  const auto end = static_cast<std::int32_t>(std::max(height + last.h, width + last.w));
  if (frames > 0 && height > 0 && width > 0)
    largest_ = std::max({largest_, current_ + last.t, current_ + end - 1});
  current_ += end;
}

void PositionCursor::grid(std::int64_t frames, std::int64_t height, std::int64_t width, std::int32_t interval,
                          std::vector<Position>& to) {
  const std::int64_t span = std::max<std::int64_t>(0, frames - 1) * interval;
  require_grid(frames, height, width, span, kTimeAlone);
  for (std::int32_t t = 0; t < frames; ++t)
    for (std::int32_t h = 0; h < height; ++h)
      for (std::int32_t w = 0; w < width; ++w)
        to.push_back(placed(current_ + t * interval, current_ + h, current_ + w));
  leave_grid(frames, height, width, span, kTimeAlone);
}

void PositionCursor::grid(std::span<const Patch> patches, std::vector<Position>& to,
                          const TimeAxes& time_axes) {
  const auto frames = static_cast<std::int64_t>(patches.size());
  const std::int64_t height = patches.front().groups->height();
  const std::int64_t width = patches.front().groups->width();
  require_grid(frames, height, width, patches.back().time, time_axes);
  for (const Patch& patch : patches) {
    const Position at = at_time(static_cast<std::int32_t>(patch.time), time_axes);
    for (const std::int32_t cell : patch.groups->list())
      to.push_back(placed(current_ + at.t, current_ + at.h + cell / static_cast<std::int32_t>(width),
                          current_ + at.w + cell % static_cast<std::int32_t>(width)));
  }
  leave_grid(frames, height, width, patches.back().time, time_axes);
}

void PositionCursor::generated(std::vector<Position>& to) {
  current_ = next();
  text(1, to);
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
