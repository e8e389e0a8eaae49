#include "engine/speculate/step_times.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <initializer_list>
#include <stdexcept>

namespace vigil::speculate {
namespace {

/// What is known counts as so many measurements at most.
constexpr double kMostWeight = 24;
/// Measurements count up to so many usual deviations.
constexpr double kDeviations = 3;
constexpr double kLeastDeviation = 0.01;

std::size_t logarithm(std::size_t value, std::size_t buckets) {
  return std::min(static_cast<std::size_t>(std::bit_width(value)), buckets - 1);
}

/// Between knot 2^i and the next: i, and how far.
struct Place {
  std::size_t knot = 0;
  double share = 0;
};

Place place_of(std::size_t rows, std::size_t knots) {
  const std::size_t at_least = std::max<std::size_t>(rows, 1);
  const auto knot = static_cast<std::size_t>(std::bit_width(at_least)) - 1;
  if (knot >= knots - 1) return {knots - 2, 1};
  const auto low = static_cast<double>(std::size_t{1} << knot);
  return {knot, static_cast<double>(at_least) / low - 1};
}

}  // namespace

StepTimes::StepTimes(const StepGuess& guess) : guess_(guess), cells_(kKnots * kSequences * kContexts) {
  const bool is_time = std::isfinite(guess.step) && guess.step > 0 && std::isfinite(guess.row) &&
                       guess.row >= 0 && std::isfinite(guess.context_token) && guess.context_token >= 0;
  if (!is_time) throw std::invalid_argument("a step's guessed time has to be above 0");
}

double StepTimes::guess(const StepShape& shape) const {
  return guess_.step + guess_.row * static_cast<double>(shape.rows) +
         guess_.context_token * static_cast<double>(shape.context);
}

std::size_t StepTimes::cell(std::size_t knot, std::size_t sequences, std::size_t context) const {
  const std::size_t of_context = logarithm(context >> 9U, kContexts);
  return (knot * kSequences + logarithm(sequences, kSequences)) * kContexts + of_context;
}

double StepTimes::log_factor(std::size_t knot, std::size_t cell) const {
  return all_.log + rows_[knot].log + cells_[cell].log;
}

double StepTimes::ByRows::at(std::size_t rows) const {
  const Place place = place_of(rows, kKnots);
  const double factor =
      factors_[place.knot] + (factors_[place.knot + 1] - factors_[place.knot]) * place.share;
  return (fixed_ + row_ * static_cast<double>(rows)) * factor;
}

StepTimes::ByRows StepTimes::by_rows(std::size_t sequences, std::size_t context) const {
  ByRows times;
  times.fixed_ = guess({0, sequences, context});
  times.row_ = guess_.row;
  for (std::size_t knot = 0; knot < kKnots; ++knot) {
    times.factors_[knot] = std::exp(log_factor(knot, cell(knot, sequences, context)));
  }
  return times;
}

double StepTimes::expected(const StepShape& shape) const {
  const Place place = place_of(shape.rows, kKnots);
  const auto factor = [&](std::size_t knot) {
    return std::exp(log_factor(knot, cell(knot, shape.sequences, shape.context)));
  };
  const double low = factor(place.knot);
  return guess(shape) * (low + (factor(place.knot + 1) - low) * place.share);
}

void StepTimes::measured(const StepShape& shape, double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) return;
  const double off = std::log(seconds / expected(shape));
  const double most = kDeviations * deviation_;
  const double counted = std::clamp(off, -most, most);
  // It widens quickly enough to follow when all steps have become slower, and a single one hardly moves it.
  deviation_ = std::max(kLeastDeviation, deviation_ + 0.1 * (std::abs(counted) - deviation_));
  const Place place = place_of(shape.rows, kKnots);
  for (const std::size_t knot : {place.knot, place.knot + 1}) {
    const double share = knot == place.knot ? 1 - place.share : place.share;
    if (share <= 0) continue;
    // What a level has learned is no longer news to the one below: a part of the error for each.
    for (Correction* one : {&all_, &rows_[knot], &cells_[cell(knot, shape.sequences, shape.context)]}) {
      one->weight = std::min(one->weight + share, kMostWeight);
      one->log += counted * share / (one->weight + 5);
    }
  }
}

void StepTimes::fade(double decisions) {
  const double left = std::exp2(-decisions / 512);
  const auto fade_one = [left](Correction& one) { one = {one.log * left, one.weight * left}; };
  fade_one(all_);
  for (Correction& one : rows_) fade_one(one);
  for (Correction& one : cells_) fade_one(one);
}

}  // namespace vigil::speculate
