#include "engine/prune/light.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace vigil::prune {
namespace {

/// Reweighted so often; the fourth time hardly changes anything.
constexpr int kFits = 4;
/// Belief that the gain is 1, as a variance of brightness (5 levels): without it a picture without contrast
/// has no gain.
constexpr double kGainPrior = 25;
/// Beyond it both pictures have too little in common.
constexpr double kMostGain = 4;
/// Residuals of half a level have their full weight, however quiet the rest is.
constexpr float kLeastScale = 0.5F;

float median(std::vector<float>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Leaves the smaller one in `a`.
void sort(float& a, float& b) {
  const float smaller = b < a ? b : a;
  b = b < a ? a : b;
  a = smaller;
}

/// By a network of exchanges, which vector instructions can do.
float median_of_9(std::array<float, 9> p) {
  constexpr std::array<std::array<std::size_t, 2>, 19> kExchanges = {{{1, 2},
                                                                      {4, 5},
                                                                      {7, 8},
                                                                      {0, 1},
                                                                      {3, 4},
                                                                      {6, 7},
                                                                      {1, 2},
                                                                      {4, 5},
                                                                      {7, 8},
                                                                      {0, 3},
                                                                      {5, 8},
                                                                      {4, 7},
                                                                      {3, 6},
                                                                      {1, 4},
                                                                      {2, 5},
                                                                      {4, 7},
                                                                      {4, 2},
                                                                      {6, 4},
                                                                      {4, 2}}};
  for (const auto& [a, b] : kExchanges) sort(p[a], p[b]);
  return p[4];
}

}  // namespace

Light fit_light(const LowRes& before, const LowRes& now) {
  const std::vector<float>& from = before.channels[0];
  const std::vector<float>& to = now.channels[0];
  std::vector<float> weights(from.size()), residuals(from.size()), sorted(from.size());
  Light light;
  // Begins with the offset alone: a few very bright or dark squares that changed would turn a line.
  for (std::size_t k = 0; k < from.size(); ++k) sorted[k] = to[k] - from[k];
  light.offset[0] = median(sorted);
  for (int i = 0; i < kFits; ++i) {
    for (std::size_t k = 0; k < from.size(); ++k)
      residuals[k] = std::abs(to[k] - light.gain * from[k] - light.offset[0]);
    sorted = residuals;
    const float scale = 2 * median(sorted) + kLeastScale;
    for (std::size_t k = 0; k < from.size(); ++k) {
      const float ratio = residuals[k] / scale;
      const float trust = 1 / (1 + ratio * ratio);
      weights[k] = trust * trust;
    }
    double weight = 0, sum_from = 0, sum_to = 0;
    for (std::size_t k = 0; k < from.size(); ++k) {
      weight += weights[k];
      sum_from += weights[k] * from[k];
      sum_to += weights[k] * to[k];
    }
    const double mean_from = sum_from / weight, mean_to = sum_to / weight;
    double variance = 0, covariance = 0;
    for (std::size_t k = 0; k < from.size(); ++k) {
      variance += weights[k] * (from[k] - mean_from) * (from[k] - mean_from);
      covariance += weights[k] * (from[k] - mean_from) * (to[k] - mean_to);
    }
    const double gain = (covariance / weight + kGainPrior) / (variance / weight + kGainPrior);
    light.gain = static_cast<float>(std::clamp(gain, 1 / kMostGain, kMostGain));
    light.offset[0] = static_cast<float>(mean_to - light.gain * mean_from);
  }
  for (std::size_t channel = 1; channel < LowRes::kChannels; ++channel) {
    for (std::size_t k = 0; k < from.size(); ++k)
      residuals[k] = now.channels[channel][k] - light.gain * before.channels[channel][k];
    light.offset[channel] = median(residuals);
  }
  return light;
}

void smooth_light(const LowRes& before, const LowRes& now, const Light& light, float most, LowRes& to) {
  to.resize(now.width, now.height);
  const std::size_t stride = now.width + 2;
  // With a margin that repeats the edge.
  std::vector<float> padded(stride * (now.height + 2));
  for (std::size_t channel = 0; channel < LowRes::kChannels; ++channel) {
    for (std::size_t y = 0; y < now.height + 2; ++y) {
      const std::size_t row = (std::clamp<std::size_t>(y, 1, now.height) - 1) * now.width;
      const float* v = now.channels[channel].data() + row;
      const float* w = before.channels[channel].data() + row;
      float* p = padded.data() + y * stride;
      for (std::size_t x = 0; x < now.width; ++x)
        p[x + 1] = std::clamp(v[x] - light.gain * w[x] - light.offset[channel], -most, most);
      p[0] = p[1];
      p[now.width + 1] = p[now.width];
    }
    for (std::size_t y = 0; y < now.height; ++y) {
      const float* p = padded.data() + y * stride;
      const float* q = p + stride;
      const float* r = q + stride;
      float* medians = to.channels[channel].data() + y * now.width;
      for (std::size_t x = 0; x < now.width; ++x)
        medians[x] =
            median_of_9({p[x], p[x + 1], p[x + 2], q[x], q[x + 1], q[x + 2], r[x], r[x + 1], r[x + 2]});
    }
  }
}

float distance(const Light& light, const LowRes& before) {
  float sum = 0;
  for (const float v : before.channels[0]) sum += std::abs((light.gain - 1) * v + light.offset[0]);
  float furthest = sum / static_cast<float>(before.channels[0].size());
  for (std::size_t channel = 1; channel < LowRes::kChannels; ++channel)
    furthest = std::max(furthest, std::abs(light.offset[channel]));
  return furthest;
}

}  // namespace vigil::prune
