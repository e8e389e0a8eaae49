#include "engine/speculate/draft_planner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace vigil::speculate {
namespace {

constexpr std::size_t kDeepest = 15;
/// So many different prices of a row are tried; where there are few drafts to choose from, that of each.
constexpr std::size_t kPrices = 24;
constexpr std::size_t kFew = 64;
constexpr double kCheapest = 1.0 / 128;

/// What drafts at one depth bring, those that are likeliest to be accepted first.
struct Depth {
  std::vector<double> values;
  /// sums[m]: of the first m.
  std::vector<double> sums = {0};
};

/// A price of a row and how deep drafts go; who drafts how far follows from them.
struct Choice {
  double price = 2;
  std::size_t depth = 0;
  double rate = 0;
};

class Planning {
 public:
  Planning(std::span<const Draftable> sequences, const StepTimes& target, const StepTimes& drafter,
           const PlanSettings& settings)
      : sequences_(sequences), settings_(settings), order_(sequences.size()), wake_(sequences.size()) {
    std::size_t context = 0, draft_context = 0;
    for (const Draftable& one : sequences) {
      if (!(one.acceptance >= 0 && one.acceptance <= 1)) {
        throw std::invalid_argument("an acceptance is from 0 to 1");
      }
      context += one.context;
      draft_context += one.draft_context;
    }
    const std::size_t count = sequences.size();
    target_ = target.by_rows(count, context);
    steps_.push_back(0);
    for (std::size_t m = 1; m <= count; ++m) {
      steps_.push_back(drafter.expected({m, m, draft_context * m / count}));
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Draftable& one = sequences[i];
      // The last token that was said enters the first step anyway.
      if (one.behind > 1) {
        wake_[i] = drafter.expected({one.behind, 1, one.draft_context}) / settings.wake_passes;
      }
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      ++operations_;
      const double of_a = sequences[a].acceptance, of_b = sequences[b].acceptance;
      if (of_a != of_b) return of_a > of_b;
      return wake_[a] != wake_[b] ? wake_[a] < wake_[b] : a < b;
    });
    operations_ += 3 * count;
  }

  double plain() const { return static_cast<double>(sequences_.size()) / target_.at(sequences_.size()); }

  /// Tries without those that have to be woken, then with more and more of them, those that bring the most
  /// for their price first.
  DraftPlan plan() {
    const std::size_t count = sequences_.size();
    std::vector<bool> with(count);
    for (std::size_t i = 0; i < count; ++i) with[i] = wake_[i] == 0;
    Choice best = scan(with);
    std::vector<bool> who = with;
    const std::vector<std::size_t> sleepers = worth_waking(best.rate);
    int in_vain = 0;
    for (std::size_t k = 0; k < sleepers.size() && in_vain < 2; ++k) {
      with[sleepers[k]] = true;
      const Choice choice = scan(with);
      ++in_vain;
      if (choice.rate <= best.rate) continue;
      best = choice;
      who = with;
      in_vain = 0;
    }
    DraftPlan plan;
    plan.plain_tokens_per_second = plain();
    plan.lengths.assign(count, 0);
    if (best.depth > 0 && best.rate >= settings_.margin * plain()) {
      for (std::size_t i = 0; i < count; ++i) plan.lengths[i] = who[i] ? length(i, best) : 0;
      plan.tokens_per_second = best.rate;
    } else {
      plan.tokens_per_second = plain();
    }
    plan.operations = operations_;
    return plan;
  }

 private:
  std::size_t most(std::size_t i) const { return std::min(sequences_[i].most, kDeepest); }

  std::size_t length(std::size_t i, const Choice& choice) {
    std::size_t length = 0;
    double value = sequences_[i].acceptance;
    while (length < std::min(most(i), choice.depth) && value >= choice.price) {
      value *= sequences_[i].acceptance;
      ++length;
      ++operations_;
    }
    return length;
  }

  /// A few of those that have to be woken and whose drafts may bring more, at this rate, than that takes.
  std::vector<std::size_t> worth_waking(double rate) {
    // Each is tried: of many sequences only a few are woken at once.
    const std::size_t most_woken = sequences_.size() > 16 ? 2 : 4;
    std::vector<std::pair<double, std::size_t>> by_worth;
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      if (wake_[i] == 0) continue;
      double gain = 0, value = 1;
      for (std::size_t k = 0; k < most(i); ++k) gain += value *= sequences_[i].acceptance;
      operations_ += most(i);
      // Beside the target a drafter may have time left, which costs nothing.
      if (settings_.is_beside || gain > rate * wake_[i]) by_worth.emplace_back(gain / wake_[i], i);
    }
    std::sort(by_worth.begin(), by_worth.end(), std::greater<>());
    std::vector<std::size_t> sleepers;
    for (const auto& one : by_worth)
      if (sleepers.size() < most_woken) sleepers.push_back(one.second);
    return sleepers;
  }

  void fill(const std::vector<bool>& with) {
    std::vector<double> power(order_.size(), 1);
    for (std::size_t j = 0; j < kDeepest; ++j) {
      Depth& depth = depths_[j];
      depth.values.clear();
      depth.values.reserve(order_.size());
      depth.sums.reserve(order_.size() + 1);
      depth.sums.resize(1);
      for (std::size_t k = 0; k < order_.size(); ++k) {
        const std::size_t i = order_[k];
        if (!with[i] || most(i) <= j) continue;
        power[k] *= sequences_[i].acceptance;
        depth.values.push_back(power[k]);
        depth.sums.push_back(depth.sums.back() + power[k]);
        ++operations_;
      }
    }
    wakes_ = {0};
    for (const std::size_t i : order_)
      if (with[i] && most(i) > 0) wakes_.push_back(wakes_.back() + wake_[i]);
  }

  std::vector<double> prices() const {
    std::vector<double> prices;
    std::size_t drafts = 0;
    for (const Depth& depth : depths_) drafts += depth.values.size();
    if (drafts <= kFew) {
      for (const Depth& depth : depths_)
        prices.insert(prices.end(), depth.values.begin(), depth.values.end());
      std::sort(prices.begin(), prices.end(), std::greater<>());
      prices.erase(std::unique(prices.begin(), prices.end()), prices.end());
    } else {
      const double step = std::pow(kCheapest, 1.0 / (kPrices - 1));
      for (double price = 1; prices.size() < kPrices; price *= step) prices.push_back(price);
    }
    return prices;
  }

  /// The cheaper a row, the more drafts are worth it: each price adds to the ones before.
  Choice scan(const std::vector<bool>& with) {
    fill(with);
    Choice best;
    best.rate = plain();
    const auto count = static_cast<double>(sequences_.size());
    std::array<std::size_t, kDeepest> taken{};
    for (const double price : prices()) {
      std::size_t rows = sequences_.size();
      double tokens = count, drafting = 0;
      for (std::size_t j = 0; j < kDeepest; ++j) {
        const Depth& depth = depths_[j];
        while (taken[j] < depth.values.size() && depth.values[taken[j]] >= price) {
          ++taken[j];
          ++operations_;
        }
        if (taken[j] == 0) break;
        rows += taken[j];
        tokens += depth.sums[taken[j]];
        drafting += steps_[taken[j]];
        const double all_drafting = drafting + wakes_[taken[0]];
        const double pass = target_.at(rows);
        const double time = settings_.is_beside ? std::max(pass, all_drafting) : pass + all_drafting;
        ++operations_;
        if (tokens / time > best.rate) best = {price, j + 1, tokens / time};
      }
    }
    return best;
  }

  std::span<const Draftable> sequences_;
  PlanSettings settings_;
  StepTimes::ByRows target_;
  /// Of the drafter, with so many sequences.
  std::vector<double> steps_;
  /// By acceptance, the highest first.
  std::vector<std::size_t> order_;
  /// What waking each one costs a pass, in seconds.
  std::vector<double> wake_;
  /// Of the first so many of those that draft.
  std::vector<double> wakes_;
  std::array<Depth, kDeepest> depths_;
  std::size_t operations_ = 0;
};

}  // namespace

DraftPlan plan_drafts(std::span<const Draftable> sequences, const StepTimes& target, const StepTimes& drafter,
                      const PlanSettings& settings) {
  if (sequences.empty()) return {};
  return Planning(sequences, target, drafter, settings).plan();
}

}  // namespace vigil::speculate
