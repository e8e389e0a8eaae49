#include "engine/prune/seen_picture.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace vigil::prune {
namespace {

/// A soft shadow counts as light up to so many levels; what is darker has an outline.
constexpr float kMostSmooth = 10;
/// Colour counts half: a thing of the background's very brightness is rare, coloured noise is not.
constexpr std::array<float, LowRes::kChannels> kWeights = {1, 0.5F, 0.5F};

/// A change of one block alone counts so much: a codec's error is often just one, and so is a small thing.
constexpr float kAlone = 0.5F;

}  // namespace

SeenPicture::SeenPicture(const PatchGrid& grid)
    : block_(grid.patch % 2 == 0 ? grid.patch / 2 : grid.patch),
      per_group_(static_cast<std::size_t>(grid.group() / block_)) {}

void SeenPicture::compare(const LowRes& now, SceneChange& to) {
  shrink(now, per_group_, now_groups_);
  to.light = fit_light(seen_groups_, now_groups_);
  smooth_light(seen_groups_, now_groups_, to.light, kMostSmooth, smooth_);
  const std::size_t width = now.width, columns = now_groups_.width;
  to.groups.resize(columns * now_groups_.height);
  noise_.resize(to.groups.size());
  for (std::vector<float>* row : {&expected_, &differences_, &highest_, &second_, &quiet_})
    row->resize(width);
  const float gain = to.light.gain;
  for (std::size_t group_row = 0; group_row < now_groups_.height; ++group_row) {
    for (std::vector<float>* row : {&highest_, &second_, &quiet_}) std::fill(row->begin(), row->end(), 0.0F);
    for (std::size_t y = group_row * per_group_; y < (group_row + 1) * per_group_; ++y) {
      std::fill(differences_.begin(), differences_.end(), 0.0F);
      for (std::size_t channel = 0; channel < LowRes::kChannels; ++channel) {
        const float* smooth = smooth_.channels[channel].data() + group_row * columns;
        for (std::size_t x = 0; x < columns; ++x)
          std::fill_n(expected_.data() + x * per_group_, per_group_, smooth[x] + to.light.offset[channel]);
        const float* v = now.channels[channel].data() + y * width;
        const float* w = seen_.channels[channel].data() + y * width;
        const float* expected = expected_.data();
        float* differences = differences_.data();
        if (channel == 0)
          for (std::size_t x = 0; x < width; ++x) quiet_[x] += std::abs(v[x] - gain * w[x] - expected[x]);
        const float weight = kWeights[channel];
        for (std::size_t x = 0; x < width; ++x) {
          const float difference = weight * std::abs(v[x] - gain * w[x] - expected[x]);
          differences[x] = differences[x] < difference ? difference : differences[x];
        }
      }
      for (std::size_t x = 0; x < width; ++x) {
        second_[x] = std::max(second_[x], std::min(highest_[x], differences_[x]));
        highest_[x] = std::max(highest_[x], differences_[x]);
      }
    }
    for (std::size_t x = 0; x < columns; ++x) {
      float highest = 0, second = 0, quiet = 0;
      for (std::size_t i = x * per_group_; i < (x + 1) * per_group_; ++i) {
        second = std::max({second, second_[i], std::min(highest, highest_[i])});
        highest = std::max(highest, highest_[i]);
        quiet += quiet_[i];
      }
      to.groups[group_row * columns + x] = std::max(second, kAlone * highest);
      noise_[group_row * columns + x] = quiet / static_cast<float>(per_group_ * per_group_);
    }
  }
  const auto middle = noise_.begin() + static_cast<std::ptrdiff_t>(noise_.size() / 2);
  std::nth_element(noise_.begin(), middle, noise_.end());
  to.noise = *middle;
}

void SeenPicture::see(const LowRes& now) {
  seen_ = now;
  learn_groups();
}

void SeenPicture::see(const LowRes& now, const base::GridMask& groups, const Light& light) {
  if (groups.count() == 0) return;
  for (std::size_t channel = 0; channel < LowRes::kChannels; ++channel) {
    const std::vector<float>& from = now.channels[channel];
    std::vector<float>& to = seen_.channels[channel];
    for (const std::int32_t group : groups.list()) {
      const std::size_t top = static_cast<std::size_t>(group / groups.width()) * per_group_;
      const std::size_t left = static_cast<std::size_t>(group % groups.width()) * per_group_;
      for (std::size_t y = top; y < top + per_group_; ++y)
        for (std::size_t i = y * now.width + left; i < y * now.width + left + per_group_; ++i)
          to[i] = (from[i] - light.offset[channel]) / light.gain;
    }
  }
  learn_groups();
}

void SeenPicture::learn_groups() {
  shrink(seen_, per_group_, seen_groups_);
  const std::vector<float>& luma = seen_.channels[0];
  texture_.assign(seen_groups_.width * seen_groups_.height, 0.0F);
  for (std::size_t row = 0; row < seen_groups_.height; ++row)
    for (std::size_t column = 0; column < seen_groups_.width; ++column) {
      float low = luma[row * per_group_ * seen_.width + column * per_group_], high = low;
      for (std::size_t y = row * per_group_; y < (row + 1) * per_group_; ++y)
        for (std::size_t x = column * per_group_; x < (column + 1) * per_group_; ++x) {
          low = std::min(low, luma[y * seen_.width + x]);
          high = std::max(high, luma[y * seen_.width + x]);
        }
      texture_[row * seen_groups_.width + column] = high - low;
    }
}

}  // namespace vigil::prune
