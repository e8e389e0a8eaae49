// Which form of ReSV (section IV of V-Rex), and its numbers.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kernels/hash_clusters/hash_clusters.h"
#include "kernels/wicsum/wicsum.h"

namespace vigil::retrieval {

/// What is hashed, added up in clusters, and scored.
enum class HashedKeys : std::uint8_t {
  /// Keys as they lie in the cache: turned by their places.
  rotated,
  /// Keys turned back to time 0, where they stay in their place of the picture. The fastest pair of RoPE
  /// turns
  /// by a radian a position, so that what stands still hashes otherwise at another time.
  still,
};

/// By themselves, what the paper's words bind: see `resv_named`.
struct ResvSettings {
  /// N_hp, Th_hp and Th_r-wics, as section VI.E of the paper has them.
  int n_hp = 32;
  int th_hp = 7;
  double th_wics = 0.3;
  kernels::WicsumScores scores = kernels::WicsumScores::raw;
  kernels::WicsumRows rows = kernels::WicsumRows::united;
  kernels::ClusterBits bits = kernels::ClusterBits::first;
  HashedKeys keys = HashedKeys::rotated;
  /// Of the hyperplanes.
  std::uint64_t seed = 1;

  friend bool operator==(const ResvSettings&, const ResvSettings&) = default;
};

/// The names that `resv_named` knows.
inline constexpr std::array<std::string_view, 5> kResvForms{"resv", "resv-mass", "resv-pooled", "resv-mean",
                                                            "resv-still"};

/// "resv": equations 1 to 3 to the letter; the union over rows; and a cluster's hash is its first token's.
/// The paper compares a new token with hash bits that came with keys, previous ones and this frame's, in a
/// unit that has XOR and counts and multiplies by no hyperplane: a mean key's bits are not to be had there.
/// What the words leave open has a name of its own: "resv-mass" counts shares of the attention instead of
/// scores; "resv-pooled" has one list a KV head for the sum of its rows' shares; "resv-mean" is "resv" with
/// the bits of the mean key, and "resv-still" with keys that stand still. Throws std::invalid_argument for
/// another name.
ResvSettings resv_named(std::string_view name);

/// Of one setting: "raw" or "exp", "union" or "pooled", "first" or "mean", "rotated" or "still". Each throws
/// std::invalid_argument for another name.
kernels::WicsumScores scores_named(std::string_view name);
kernels::WicsumRows rows_named(std::string_view name);
kernels::ClusterBits bits_named(std::string_view name);
HashedKeys keys_named(std::string_view name);

/// Throws std::invalid_argument, in one line, for numbers that no table can have: N_hp that is not from 1 to
/// 64, Th_hp below 0 or above N_hp + 1, Th_wics that is not from 0 to 1, raw scores pooled.
void check(const ResvSettings& settings);

}  // namespace vigil::retrieval
