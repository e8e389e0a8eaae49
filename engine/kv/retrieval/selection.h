// From clusters that were chosen to the tokens to fetch.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vigil::retrieval {

/// Some tokens of a stream, or some places of an order, counted from its first.
struct TokenRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

/// Adds a token to ascending ranges: to the last one if it follows that.
void add_token(std::int64_t token, std::vector<TokenRange>& to);

/// The tokens of these clusters in the order of the stream, as ascending ranges that do not touch. assigned:
/// the cluster of each token; chosen: ascending.
std::vector<TokenRange> ranges_of(std::span<const std::int32_t> assigned,
                                  std::span<const std::int32_t> chosen);

/// One layer's tokens with those of a cluster side by side, in the order of the stream within it, so that a
/// cluster is fetched as one piece (section V.C of V-Rex). Immutable.
class ClusterOrder {
 public:
  /// assigned: the cluster of each token, from 0 on. Throws std::invalid_argument for a negative one.
  explicit ClusterOrder(std::span<const std::int32_t> assigned);

  /// The token in each place.
  std::span<const std::int32_t> tokens() const { return tokens_; }
  std::int64_t clusters() const { return static_cast<std::int64_t>(begins_.size()) - 1; }
  /// The places of a cluster.
  TokenRange places(std::int32_t cluster) const;
  /// The places of these clusters, ascending; neighbours are one range. Throws std::out_of_range for a
  /// cluster that is not there.
  std::vector<TokenRange> places(std::span<const std::int32_t> chosen) const;

 private:
  std::vector<std::int32_t> tokens_;
  std::vector<std::int64_t> begins_;
};

}  // namespace vigil::retrieval
