#include "engine/prune/salience.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/prune/luma.h"

namespace vigil::prune {
namespace {

/// What the slow mean remembers.
constexpr double kMeanSeconds = 60;
/// 0.004 of white: what hardly changes at all is not to stand out by a trace.
constexpr float kLeastUsual = 1.02F;
/// Of all tokens, those that do not stand out.
constexpr double kQuantile = 0.98;
constexpr double kMinute = 60;
/// Places count half of what they have seen so often, and before their counts are full.
constexpr double kHalveSeconds = 1800;
constexpr std::uint32_t kMostSeen = 60'000;
/// Of eight patches' tokens so many may stand out.
constexpr double kMostShare = 0.2, kPatches = 8;

/// Buckets that grow by a constant factor, `per_octave` of them double it; the first is of all below `least`.
struct Buckets {
  float least;
  float per_octave;

  std::size_t of(float value, std::size_t count) const {
    if (!(value > least)) return 0;
    const float at = std::log2(value / least) * per_octave;
    return std::min(static_cast<std::size_t>(at) + 1, count - 1);
  }
  float value(std::size_t bucket, double within) const {
    if (bucket == 0) return least * static_cast<float>(within);
    return least * std::exp2((static_cast<float>(bucket - 1) + static_cast<float>(within)) / per_octave);
  }
  /// With the place of a quantile among `total` values as numpy counts it, the values of a bucket spread over
  /// it evenly.
  template <class Counts>
  float quantile(const Counts& counts, std::uint64_t total, double share) const {
    const double at = static_cast<double>(total - 1) * share + 0.5;
    double before = 0;
    for (std::size_t bucket = 0; bucket < counts.size(); ++bucket) {
      const double count = counts[bucket];
      if (before + count >= at) return value(bucket, std::clamp((at - before) / count, 0.0, 1.0));
      before += count;
    }
    return value(counts.size() - 1, 1);
  }
};

constexpr Buckets kLevels{0.125F, 8}, kSalience{0.0625F, 32};

}  // namespace

Salience::Salience(const PatchGrid& grid)
    : grid_(grid), block_(grid.patch % 2 == 0 ? 2 : 1), allowance_(kMostShare * kPatches) {}

void Salience::begin(const model::PictureView& picture) {
  width_ = picture.width;
  height_ = picture.height;
  const auto width = static_cast<std::size_t>(width_) / block_;
  mean_.assign(width * (static_cast<std::size_t>(height_) / block_), 0.0F);
  const auto tokens =
      static_cast<std::size_t>(height_ / grid_.group()) * static_cast<std::size_t>(width_ / grid_.group());
  places_.assign(tokens, Place{});
  seen_ = 0;
  for (Histogram& minute : minutes_) minute.fill(0);
  recent_.fill(0);
  allowance_ = Allowance(kMostShare * kPatches);
  lines_.resize(3 * static_cast<std::size_t>(width_));
  sums_.resize(lines_.size());
  differences_.resize(width);
  change_.resize(tokens);
  salience_.resize(tokens);
}

void Salience::add_line_of_blocks(const model::PictureView& picture, std::size_t line, float share) {
  // Everything but the last loop is over bytes that lie side by side, and so fit for vector instructions.
  const std::size_t bytes = lines_.size();
  const std::uint8_t* from = picture.rgb + line * block_ * bytes;
  for (std::size_t i = 0; i < bytes; ++i) lines_[i] = from[i];
  if (block_ == 2)
    for (std::size_t i = 0; i < bytes; ++i)
      lines_[i] = static_cast<std::uint16_t>(lines_[i] + from[bytes + i]);
  for (std::size_t i = 0; i + 2 < bytes; ++i)
    sums_[i] = static_cast<std::uint16_t>(lines_[i] + lines_[i + 1] + lines_[i + 2]);
  const std::size_t width = differences_.size();
  const auto values = static_cast<float>(3 * block_ * block_);
  float* mean = mean_.data() + line * width;
  for (std::size_t x = 0; x < width; ++x) {
    const std::uint16_t* sums = sums_.data() + 3 * block_ * x;
    const float grey = static_cast<float>(block_ == 2 ? sums[0] + sums[3] : sums[0]) / values;
    const float difference = grey - mean[x];
    differences_[x] += std::abs(difference);
    mean[x] += difference * share;
  }
}

void Salience::compare(const model::PictureView& picture, float share) {
  const std::size_t edge = static_cast<std::size_t>(grid_.patch) / block_;
  const std::size_t columns = differences_.size() / edge;
  const auto merge = static_cast<std::size_t>(grid_.merge);
  const auto blocks = static_cast<float>(edge * edge);
  for (std::size_t row = 0; row < static_cast<std::size_t>(height_ / grid_.patch); ++row) {
    std::fill(differences_.begin(), differences_.end(), 0.0F);
    for (std::size_t line = row * edge; line < (row + 1) * edge; ++line)
      add_line_of_blocks(picture, line, share);
    for (std::size_t column = 0; column < columns; ++column) {
      const float* of = differences_.data() + column * edge;
      float sum = 0;
      for (std::size_t i = 0; i < edge; ++i) sum += of[i];
      float& change = change_[row / merge * (columns / merge) + column / merge];
      change = std::max(change, sum / blocks);
    }
  }
}

float Salience::usual_with(std::size_t token, float change) {
  Place& place = places_[token];
  ++place[kLevels.of(change, kPlaceBuckets)];
  std::uint64_t total = 0;
  for (const std::uint16_t count : place) total += count;
  return kLevels.quantile(place, total, 0.5);
}

void Salience::forget(double seconds) {
  if (++seen_ >= kMostSeen || !(std::abs(seconds - halved_) < kHalveSeconds)) {
    for (Place& place : places_)
      for (std::uint16_t& count : place) count = static_cast<std::uint16_t>(count / 2);
    seen_ /= 2;
    halved_ = seconds;
  }
  const double turn = std::floor(seconds / kMinute);
  const double turns = std::exchange(turn_, turn);
  for (std::size_t gone = 0; gone < kMinutes && turns + static_cast<double>(gone) < turn; ++gone) {
    minute_ = (minute_ + 1) % kMinutes;
    for (std::size_t i = 0; i < kBuckets; ++i) recent_[i] -= std::exchange(minutes_[minute_][i], 0U);
  }
}

base::GridMask Salience::look(double seconds, double duration, std::span<const SampledPicture> frames) {
  check_pictures(frames, grid_);
  const model::PictureView& first = frames.front().picture;
  const bool begins = width_ != first.width || height_ != first.height;
  if (begins) {
    begin(first);
    halved_ = seconds;
    turn_ = std::floor(seconds / kMinute);
  }
  forget(seconds);
  const double step = std::max(duration, 0.0) / static_cast<double>(frames.size());
  std::fill(change_.begin(), change_.end(), 0.0F);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const double at = seconds + static_cast<double>(i) * step;
    const double since = at - std::exchange(last_seconds_, at);
    // The mean begins with the first frame.
    const bool is_all = begins && i == 0;
    const double share = is_all ? 1 : since > 0 ? std::min(1.0, since / kMeanSeconds) : 0;
    compare(frames[i].picture, static_cast<float>(share));
    if (is_all) std::fill(change_.begin(), change_.end(), 0.0F);
  }

  const std::size_t tokens = change_.size();
  for (std::size_t token = 0; token < tokens; ++token) {
    salience_[token] = change_[token] / (usual_with(token, change_[token]) + kLeastUsual);
    const std::size_t bucket = kSalience.of(salience_[token], kBuckets);
    ++minutes_[minute_][bucket];
    ++recent_[bucket];
  }
  std::uint64_t total = 0;
  for (const std::uint32_t count : recent_) total += count;
  threshold_ = kSalience.quantile(recent_, total, kQuantile);

  std::vector<std::int32_t> standing_out;
  for (std::size_t token = 0; token < tokens; ++token)
    if (salience_[token] > threshold_) standing_out.push_back(static_cast<std::int32_t>(token));
  allowance_.earn(kMostShare);
  const auto most = static_cast<std::size_t>(std::max(0.0, allowance_.left() * static_cast<double>(tokens)));
  if (standing_out.size() > most) {
    std::partial_sort(standing_out.begin(), standing_out.begin() + static_cast<std::ptrdiff_t>(most),
                      standing_out.end(), [&](std::int32_t a, std::int32_t b) {
                        const float left = salience_[static_cast<std::size_t>(a)];
                        const float right = salience_[static_cast<std::size_t>(b)];
                        return left != right ? left > right : a < b;
                      });
    standing_out.resize(most);
  }
  allowance_.spend(static_cast<double>(standing_out.size()) / static_cast<double>(tokens));
  base::GridMask mask = base::GridMask::none(first.height / grid_.group(), first.width / grid_.group());
  for (const std::int32_t token : standing_out) mask.add(token);
  return mask;
}

}  // namespace vigil::prune
