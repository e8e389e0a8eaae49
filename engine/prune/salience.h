// Which few tokens of a camera's pictures stand out from what is usual there.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/grid_mask.h"
#include "engine/prune/allowance.h"
#include "engine/prune/pruning_policy.h"

namespace vigil::prune {

/// A token is as salient as the one of its patches that differs most from a slow mean of the picture, beside
/// what is usual at its place (docs/experiments/2026-11-29-finding-the-window.md). Of frame f, with g its
/// grey (the mean of red, green and blue, from 0 to 255, over 2 x 2 pixels), and of token i:
///
///   m = m + (g - m) min(1, dt / 60 s)                       behind each frame; the first one begins it
///   d(i) = max over frames and patches of mean |g - m|
///   s(i) = d(i) / (median of d at i, of half an hour and what was before, ever less, + 1.02)
///
/// It stands out if s(i) exceeds the 0.98 quantile of all tokens of the last ten minutes, this patch's with
/// them. That holds from the first patch on, of which what differs between its frames stands out. A fifth of
/// the tokens may stand out in the long run, and of eight patches after each other twice as many, the most
/// salient ones: ten times the quantile's share, which only what changes everything meets (a lamp, a camera
/// that is turned). Measured were pages of eight patches, a fifth of which could stand out; a page of what is
/// remembered lasts from a moment to two minutes, as pruning has it, so the bound is one over time.
///
/// Medians and the quantile are those of histograms with buckets of 9 % and 2 %, interpolated. For pictures
/// of 448x448 pixels a camera takes 270 kB. Not thread-safe.
class Salience {
 public:
  explicit Salience(const PatchGrid& grid);

  /// Of one temporal patch, tokens of the picture's grid. `seconds`: of its first frame; one that lies before
  /// the last patch's is taken for the same moment. `duration`: of the patch. A picture of another size
  /// begins anew. Throws as `PruningPolicy::choose` does for pictures.
  base::GridMask look(double seconds, double duration, std::span<const SampledPicture> frames);

  /// s of each token of the last patch, and what it had to exceed.
  const std::vector<float>& of_tokens() const { return salience_; }
  float threshold() const { return threshold_; }

 private:
  void begin(const model::PictureView& picture);
  /// Of tokens `change_` is at least this frame's; the mean moves on by this share.
  void compare(const model::PictureView& picture, float share);
  void add_line_of_blocks(const model::PictureView& picture, std::size_t line, float share);
  /// What is usual at this place, with this one.
  float usual_with(std::size_t token, float change);
  void forget(double seconds);

  /// Of differences, in levels: the first bucket is of what is below an eighth, then 8 double it.
  static constexpr std::size_t kPlaceBuckets = 1 + 11 * 8;
  using Place = std::array<std::uint16_t, kPlaceBuckets>;
  /// Of salience: the first bucket is of what is below 1/16, then 32 double it.
  static constexpr std::size_t kBuckets = 1 + 12 * 32;
  using Histogram = std::array<std::uint32_t, kBuckets>;
  static constexpr std::size_t kMinutes = 10;

  PatchGrid grid_;
  /// Pixels along the edge of a block: 2, or 1 where patches cannot be cut so.
  std::size_t block_;
  int width_ = 0, height_ = 0;
  /// In blocks.
  std::vector<float> mean_;
  double last_seconds_ = 0;
  std::vector<Place> places_;
  /// Counts of each place; and when they were halved, by which it forgets.
  std::uint32_t seen_ = 0;
  double halved_ = 0;
  std::array<Histogram, kMinutes> minutes_{};
  Histogram recent_{};
  std::size_t minute_ = 0;
  double turn_ = 0;
  /// In pictures.
  Allowance allowance_;
  std::vector<float> change_, salience_;
  float threshold_ = 0;
  /// Memory of `compare`: bytes of lines added up, then groups of these; sums of blocks.
  std::vector<std::uint16_t> lines_, sums_;
  std::vector<float> differences_;
};

}  // namespace vigil::prune
