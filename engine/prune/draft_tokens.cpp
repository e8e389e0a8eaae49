#include "engine/prune/draft_tokens.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/random/random.h"

namespace vigil::prune {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
/// What s_temp is a multiple of.
constexpr double kStep = 0x1p-20;
/// Deviations that rounding makes; of attention, of its mean.
constexpr double kLeastChange = 1e-6, kLeastSpread = 1e-12, kLeastAttention = 1e-6;
/// SpecVLM's share of the attention.
constexpr double kFirstStage = 0.4;

void check_frame(const ScoredFrame& frame) {
  for (const std::span<const float>& each : {frame.to_before, frame.spread, frame.attention})
    if (!each.empty() && each.size() != frame.places.size())
      throw std::invalid_argument("draft tokens: a frame has not one score for each token");
  if (std::ranges::adjacent_find(frame.places, std::greater_equal<>()) != frame.places.end())
    throw std::invalid_argument("draft tokens: a frame's places do not ascend");
}

/// The mean of what is known, which is finite; NaN: nothing is.
double mean_of_known(std::span<const double> scores) {
  double sum = 0;
  std::size_t known = 0;
  for (const double score : scores) {
    if (!std::isfinite(score)) continue;
    sum += score;
    ++known;
  }
  return known > 0 ? sum / static_cast<double>(known) : kNotKnown;
}

std::vector<double> scores_of(std::span<const float> numbers, std::size_t tokens) {
  std::vector<double> scores(tokens, kNotKnown);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (std::isfinite(numbers[i])) scores[i] = numbers[i];
  return scores;
}

/// s_temp of frame f; NaN where no neighbour is known.
std::vector<double> change_of(std::span<const ScoredFrame> window, std::size_t f) {
  const ScoredFrame& frame = window[f];
  std::vector<double> sums(frame.places.size());
  std::vector<int> neighbours(frame.places.size());
  const auto add = [&](std::size_t token, float cosine) {
    if (!std::isfinite(cosine)) return;
    sums[token] += double{cosine};
    ++neighbours[token];
  };
  if (f > 0)
    for (std::size_t i = 0; i < frame.to_before.size(); ++i) add(i, frame.to_before[i]);
  if (f + 1 < window.size()) {
    const ScoredFrame& after = window[f + 1];
    std::size_t i = 0;
    for (std::size_t k = 0; k < after.to_before.size(); ++k) {
      while (i < frame.places.size() && frame.places[i] < after.places[k]) ++i;
      if (i < frame.places.size() && frame.places[i] == after.places[k]) add(i, after.to_before[k]);
    }
  }
  for (std::size_t i = 0; i < sums.size(); ++i)
    sums[i] = neighbours[i] > 0 ? std::round((1 - sums[i] / neighbours[i]) / kStep) * kStep : kNotKnown;
  return sums;
}

/// Adds a frame's scores, normalised, to its tokens' sums.
void add_normalised(std::span<const double> scores, double least, std::span<double> to) {
  const double mean = mean_of_known(scores);
  std::vector<double> squares;
  for (const double score : scores) squares.push_back((score - mean) * (score - mean));
  const double deviation = std::sqrt(mean_of_known(squares));
  // Not where nothing is known, either.
  if (!(deviation > least)) return;
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (std::isfinite(scores[i])) to[i] += (scores[i] - mean) / deviation;
}

std::vector<double> hippo(std::span<const ScoredFrame> window) {
  std::vector<double> all;
  for (std::size_t f = 0; f < window.size(); ++f) {
    const std::size_t tokens = window[f].places.size();
    std::vector<double> sum(tokens);
    const std::vector<double> attention = scores_of(window[f].attention, tokens);
    add_normalised(attention, kLeastAttention * std::abs(mean_of_known(attention)), sum);
    add_normalised(scores_of(window[f].spread, tokens), kLeastSpread, sum);
    add_normalised(change_of(window, f), kLeastChange, sum);
    all.insert(all.end(), sum.begin(), sum.end());
  }
  return all;
}

/// What is not known is the mean of its frame's, or else `otherwise`.
std::vector<double> joined(std::span<const std::vector<double>> frames, double otherwise) {
  std::vector<double> all;
  for (const std::vector<double>& frame : frames) {
    const double mean = mean_of_known(frame);
    for (const double score : frame)
      all.push_back(std::isfinite(score) ? score : std::isfinite(mean) ? mean : otherwise);
  }
  return all;
}

std::vector<double> change(std::span<const ScoredFrame> window) {
  std::vector<std::vector<double>> frames;
  std::vector<double> all;
  for (std::size_t f = 0; f < window.size(); ++f) {
    frames.push_back(change_of(window, f));
    all.insert(all.end(), frames.back().begin(), frames.back().end());
  }
  const double mean = mean_of_known(all);
  return joined(frames, std::isfinite(mean) ? mean : 0);
}

std::vector<double> attention(std::span<const ScoredFrame> window) {
  std::vector<std::vector<double>> frames;
  for (const ScoredFrame& frame : window) {
    if (frame.attention.size() != frame.places.size())
      throw std::invalid_argument("draft tokens: a frame has no attention to choose by");
    frames.push_back(scores_of(frame.attention, frame.places.size()));
  }
  return joined(frames, 0);
}

/// A share of `all`: the nearest number, of two the larger one, but one at least. A share that was made by
/// subtraction may lie below the half that it means.
std::size_t count_of(double share, std::size_t all) {
  const auto nearest = static_cast<std::size_t>(std::floor(share * static_cast<double>(all) + 0.5 + 1e-9));
  return std::min(all, std::max<std::size_t>(nearest, 1));
}

using DraftTokens = std::vector<std::int32_t>;

/// All tokens, the highest score first, of equal ones the earlier.
DraftTokens ranked(const std::vector<double>& scores) {
  DraftTokens order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::int32_t token) { return scores[static_cast<std::size_t>(token)]; });
  return order;
}

DraftTokens highest(const std::vector<double>& scores, std::size_t count) {
  DraftTokens order = ranked(scores);
  order.resize(count);
  std::ranges::sort(order);
  return order;
}

DraftTokens specvlm(const std::vector<double>& scores, std::size_t count) {
  const DraftTokens order = ranked(scores);
  double total = 0, reached = 0;
  for (const std::int32_t token : order) total += scores[static_cast<std::size_t>(token)];
  std::size_t first = 0;
  do reached += scores[static_cast<std::size_t>(order[first++])];
  while (first < count && reached < kFirstStage * total);

  DraftTokens rest(order.begin() + static_cast<std::ptrdiff_t>(first), order.end());
  std::ranges::sort(rest);
  DraftTokens kept(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first));
  const std::size_t others = count - first;
  for (std::size_t i = 0; i < others; ++i)
    kept.push_back(rest[others == 1 ? 0 : i * (rest.size() - 1) / (others - 1)]);
  std::ranges::sort(kept);
  return kept;
}

DraftTokens whole_frames(std::span<const ScoredFrame> window, double share) {
  std::vector<std::pair<std::size_t, std::size_t>> frames;
  std::size_t tokens = 0;
  for (const ScoredFrame& frame : window) {
    if (!frame.places.empty()) frames.emplace_back(tokens, frame.places.size());
    tokens += frame.places.size();
  }
  const std::size_t count = count_of(share, frames.size());
  DraftTokens kept;
  for (std::size_t i = 0; i < count; ++i) {
    // The one in the middle of each part.
    const auto& frame = frames[(2 * i + 1) * frames.size() / (2 * count)];
    for (std::size_t k = 0; k < frame.second; ++k) kept.push_back(static_cast<std::int32_t>(frame.first + k));
  }
  return kept;
}

DraftTokens drawn(std::size_t tokens, std::size_t count, std::uint64_t seed) {
  std::vector<double> numbers(tokens);
  for (std::size_t i = 0; i < tokens; ++i) numbers[i] = kernels::random_number(seed, i);
  return highest(numbers, count);
}

}  // namespace

std::vector<double> draft_scores(std::string_view selection, std::span<const ScoredFrame> window) {
  for (const ScoredFrame& frame : window) check_frame(frame);
  if (selection == "hippo") return hippo(window);
  if (selection == "attention") return attention(window);
  if (selection == "change") return change(window);
  throw std::invalid_argument("draft tokens: there are no scores of the name " + std::string(selection));
}

std::vector<std::int32_t> draft_tokens(std::string_view selection, std::span<const ScoredFrame> window,
                                       const DraftShare& share) {
  if (std::ranges::find(kDraftSelections, selection) == kDraftSelections.end())
    throw std::invalid_argument("draft tokens: there is no selection of the name " + std::string(selection));
  if (!(share.share >= 0 && share.share <= 1))
    throw std::invalid_argument("draft tokens: a share is one from 0 to 1");
  std::size_t tokens = 0;
  for (const ScoredFrame& frame : window) {
    check_frame(frame);
    tokens += frame.places.size();
  }
  if (tokens == 0) return {};
  const std::size_t count = count_of(selection == "all" ? 1 : share.share, tokens);
  if (selection == "frame") return whole_frames(window, share.share);
  if (selection == "specvlm") return specvlm(attention(window), count);
  if (selection == "random" || selection == "all") return drawn(tokens, count, share.seed);
  return highest(draft_scores(selection, window), count);
}

}  // namespace vigil::prune
