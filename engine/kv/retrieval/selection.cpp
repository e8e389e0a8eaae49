#include "engine/kv/retrieval/selection.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace vigil::retrieval {

void add_token(std::int64_t token, std::vector<TokenRange>& to) {
  if (!to.empty() && to.back().first + to.back().count == token) {
    ++to.back().count;
  } else {
    to.push_back({token, 1});
  }
}

std::vector<TokenRange> ranges_of(std::span<const std::int32_t> assigned,
                                  std::span<const std::int32_t> chosen) {
  std::vector<TokenRange> ranges;
  for (std::size_t token = 0; token < assigned.size(); ++token)
    if (std::binary_search(chosen.begin(), chosen.end(), assigned[token]))
      add_token(static_cast<std::int64_t>(token), ranges);
  return ranges;
}

ClusterOrder::ClusterOrder(std::span<const std::int32_t> assigned) : tokens_(assigned.size()) {
  std::int32_t clusters = 0;
  for (const std::int32_t cluster : assigned) {
    if (cluster < 0) throw std::invalid_argument("a token is in no cluster");
    clusters = std::max(clusters, cluster + 1);
  }
  begins_.resize(static_cast<std::size_t>(clusters) + 1);
  for (const std::int32_t cluster : assigned) ++begins_[static_cast<std::size_t>(cluster) + 1];
  for (std::size_t c = 1; c < begins_.size(); ++c) begins_[c] += begins_[c - 1];
  std::vector<std::int64_t> next = begins_;
  for (std::size_t token = 0; token < assigned.size(); ++token)
    tokens_[static_cast<std::size_t>(next[static_cast<std::size_t>(assigned[token])]++)] =
        static_cast<std::int32_t>(token);
}

TokenRange ClusterOrder::places(std::int32_t cluster) const {
  if (cluster < 0 || cluster >= clusters())
    throw std::out_of_range("cluster " + std::to_string(cluster) + " of " + std::to_string(clusters()));
  const std::int64_t begin = begins_[static_cast<std::size_t>(cluster)];
  return {begin, begins_[static_cast<std::size_t>(cluster) + 1] - begin};
}

std::vector<TokenRange> ClusterOrder::places(std::span<const std::int32_t> chosen) const {
  std::vector<TokenRange> ranges;
  for (const std::int32_t cluster : chosen) {
    const TokenRange range = places(cluster);
    if (!ranges.empty() && ranges.back().first + ranges.back().count == range.first) {
      ranges.back().count += range.count;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

}  // namespace vigil::retrieval
