#include "cluster/placement/rendezvous.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace vigil::cluster {
namespace {

constexpr int kFraction = 48;

/// Of a draw of 2^11; a little less than log2(e), so that what is rounded decides nothing.
constexpr double kLeastWait = 1.4426 / 32.0;
static_assert(kFraction + 11 - 64 == -5);

}  // namespace

std::uint64_t wait_of(std::uint64_t draw) {
  // 64 - log2(2^64 - draw). The logarithm's bits come one after the other: squaring doubles it. What is cut
  // off never makes a larger number smaller than a smaller one.
  const std::uint64_t rest = draw == 0 ? ~std::uint64_t{0} : ~draw + 1;
  const int leading = std::countl_zero(rest);
  std::uint64_t mantissa = rest << static_cast<unsigned>(leading);
  std::uint64_t fraction = 0;
  for (int bit = 0; bit < kFraction; ++bit) {
    const Wide square = static_cast<Wide>(mantissa) * mantissa;
    const bool carries = (square >> 127U) != 0;
    mantissa = static_cast<std::uint64_t>(square >> (carries ? 64U : 63U));
    fraction = fraction * 2 + (carries ? 1 : 0);
  }
  return ((static_cast<std::uint64_t>(leading) + 1) << static_cast<unsigned>(kFraction)) - fraction;
}

Rendezvous::Rendezvous(const std::vector<Node>& nodes) : nodes_by_weight_(nodes.size()) {
  weights_.reserve(nodes.size());
  seeds_.reserve(nodes.size());
  for (const Node& node : nodes) {
    weights_.push_back(node.weight);
    seeds_.push_back(seed_of(node.name));
    reaches_.push_back(kLeastWait / static_cast<double>(node.weight));
  }
  std::iota(nodes_by_weight_.begin(), nodes_by_weight_.end(), std::size_t{0});
  std::stable_sort(nodes_by_weight_.begin(), nodes_by_weight_.end(),
                   [&](std::size_t a, std::size_t b) { return weights_[a] > weights_[b]; });
  for (std::size_t place = 0; place < nodes.size(); ++place) {
    const std::size_t node = nodes_by_weight_[place];
    seeds_by_weight_.push_back(seeds_[node]);
    if (groups_.empty() || groups_.back().weight != weights_[node])
      groups_.push_back({weights_[node], place, place});
    groups_.back().end = place + 1;
  }
}

bool Rendezvous::comes_before(const Choice& a, const Choice& b) {
  if (a.weight != b.weight) {
    const Wide of_a = static_cast<Wide>(a.wait) * static_cast<Wide>(b.weight);
    const Wide of_b = static_cast<Wide>(b.wait) * static_cast<Wide>(a.weight);
    if (of_a != of_b) return of_a < of_b;
  }
  return a.draw != b.draw ? a.draw < b.draw : a.node < b.node;
}

Rendezvous::Choice Rendezvous::choice(std::uint64_t item, std::size_t node) const {
  const std::uint64_t drawn = draw(item, node);
  return {drawn, weights_[node], node, groups_.size() > 1 ? wait_of(drawn) : 0};
}

std::size_t Rendezvous::before(std::uint64_t item, std::size_t node) const {
  const Choice chosen = choice(item, node);
  const double bound = groups_.size() > 1 ? bound_of(chosen) : std::numeric_limits<double>::infinity();
  std::size_t count = 0;
  for (std::size_t other = 0; other < size(); ++other) {
    if (other == node || is_far(draw(item, other), other, bound)) continue;
    if (comes_before(choice(item, other), chosen)) ++count;
  }
  return count;
}

std::vector<std::size_t> Rendezvous::order(std::uint64_t item, std::size_t most) const {
  std::vector<Choice> choices;
  choices.reserve(size());
  for (std::size_t node = 0; node < size(); ++node) choices.push_back(choice(item, node));
  const auto end = choices.begin() + static_cast<std::ptrdiff_t>(std::min(most, choices.size()));
  std::partial_sort(choices.begin(), end, choices.end(), comes_before);
  std::vector<std::size_t> nodes;
  nodes.reserve(static_cast<std::size_t>(end - choices.begin()));
  for (auto place = choices.begin(); place != end; ++place) nodes.push_back(place->node);
  return nodes;
}

}  // namespace vigil::cluster
