// Which clusters a question needs: the shortest lists of the highest scores that have a share of the sum
// (section IV.C of V-Rex, WiCSum).
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// The keys of one layer's clusters, borrowed, on one device (HashClusters of hash_clusters.h has them).
struct ClusterKeys {
  /// f32 [capacity, kv_heads * head_dim]: cluster c's key is sums[c] / counts[c].
  const float* sums = nullptr;
  /// [capacity]: tokens of each cluster, at least 1.
  const std::int32_t* counts = nullptr;
  /// How many clusters there are; one number on the device, at most `capacity`.
  const std::int32_t* clusters = nullptr;
  std::int64_t capacity = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
};

/// What a cluster counts in a row's sum: by its score, as equations 1 to 3 of V-Rex are written, or by its
/// share of the attention, exp(score - the row's highest score).
enum class WicsumScores : std::uint8_t { raw, exp };

/// Lists of rows become one of a KV head: by union of the rows' own lists, or by one list for the sum of all
/// rows' shares, in the order of these by token.
enum class WicsumRows : std::uint8_t { united, pooled };

struct WicsumChoice {
  WicsumScores scores = WicsumScores::raw;
  WicsumRows rows = WicsumRows::united;
  /// Th_r-wics, from 0 to 1, in steps of 2^-20. 1 chooses every cluster.
  double ratio = 0.3;
  /// Above 0: lists end with the cluster that brings their tokens to so many, instead of by `ratio`.
  std::int64_t tokens = 0;
};

/// What was chosen, on the device.
struct ClusterSelection {
  /// [kv_heads, capacity]: of each KV head, the chosen clusters, ascending; what follows them is unspecified.
  std::int32_t* clusters = nullptr;
  /// [kv_heads]: how many these are, and how many tokens they have.
  std::int32_t* count = nullptr;
  std::int32_t* tokens = nullptr;
};

/// Row (i, h), of token i and query head h of the KV head's group, scores each cluster c:
///
///   score = scale Σ_d q[i, h, d] mean[c, d]      mean = sums / counts
///
/// by fused multiply and add over ascending d in f32, the product with scale, and then rounding to a multiple
/// of 2^-16 between -2^15 and 2^15 (wicsum/fixed_point.h; what is no number is the lowest). From there on all
/// are whole numbers, and nothing depends on the order in which they are added. With TC the counts:
///
///   weight = score TC      or      weight = exp(score - highest) TC in units of 2^-30
///   Sum = Σ_c weight       Th = Sum ratio, rounded down       Acc(t) = weights of the t + 1 highest scores
///
/// equal scores in the order of their clusters. A row chooses the t + 1 clusters of the smallest t with
/// Acc(t) > Th. Without such a t the list goes on to its end, so it has all. With negative scores the words
/// of the paper say, and this does: a Sum below 0 has a Th below 0, which one cluster may exceed that scores
/// highest; if no score is above 0 and the first one's weight is no more than Th, no later Acc exceeds it, so
/// all are chosen; a Th above 0 is reached among the positive scores or never. A ratio of 1 chooses all
/// clusters whatever the scores, where the words would end a list before negative ones.
///
/// WicsumRows::pooled: share(c) = Σ_rows exp(score - highest) / Sum, what one token of the cluster has of the
/// attention, in units of 2^-40 (of each row rounded to nearest); weight(c) = share(c) TC, listed by share.
///
/// q: f32 or bf16 [rows, heads * head_dim], heads a multiple of kv_heads; all of it on the stream's device,
/// and nobody waits for it on the host. Without rows or clusters nothing is chosen. Throws
/// std::invalid_argument for shapes, types or a ratio that do not fit, and for raw scores pooled: their sums
/// may be 0.
void select_clusters(Stream& stream, ConstMatrix q, const ClusterKeys& keys, float scale,
                     const WicsumChoice& choice, const ClusterSelection& to);

}  // namespace vigil::kernels
