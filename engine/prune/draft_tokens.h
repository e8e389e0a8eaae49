// Which visual tokens of a window a drafter sees.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace vigil::prune {

/// What the tokens of one frame (a temporal patch) are chosen by, a number for each. Borrowed. A number that
/// is not finite is not known; of an empty span none is.
struct ScoredFrame {
  /// Places in the picture's grid, ascending: those that a policy left.
  std::span<const std::int32_t> places;
  /// Cosine with the token at the same place in the frame before (kernels/similarity); not known where there
  /// is none.
  std::span<const float> to_before = {};
  /// s_spa, HIPPO's equation 6 (kernels/similarity).
  std::span<const float> spread = {};
  /// s_attn, its equation 2: the mass that the question's tokens give to each, of any scale. Of a frame that
  /// no question has looked at yet, nothing.
  std::span<const float> attention = {};
};

/// How many are kept, and of `random` which.
struct DraftShare {
  /// Of all tokens of a window, from 0 to 1: the nearest number, of two the larger one, but one at least.
  double share = 0.1;
  std::uint64_t seed = 0;
};

/// The names that `draft_tokens` knows.
inline constexpr std::array<std::string_view, 7> kDraftSelections{"hippo", "attention", "specvlm", "change",
                                                                  "frame", "random",    "all"};

/// s of each token of a window, by which `draft_tokens` ranks them; frames after each other.
///
/// "attention": s_attn. "change": s_temp, equations 3 and 4: 1 - the mean of the cosines with the tokens at
/// the same place in the frames before and after it, in the window and in multiples of 2^-20, below which
/// lies what rounding makes of what stands still. "hippo": equation 7, the sum of s_attn, s_spa and s_temp,
/// each normalised within its frame, by its mean and its standard deviation (of all tokens: divided by their
/// number).
///
/// What HIPPO's section 5.1 leaves open: a neighbour that was pruned, or that has no direction, does not
/// count. A token that has none left, or whose s_spa or s_attn is not known, has the mean of those of its
/// frame that are known: it adds nothing to the sum. Of a frame of which none is known, "change" takes the
/// mean of the window's, and 0 where there is none of these either; "attention" takes 0. Scores that deviate
/// by no more than rounding makes add nothing: by 1e-6 of s_temp, 1e-12 of s_spa, a millionth of the mean of
/// s_attn. So does a frame's attention that is not there yet: "hippo" is what is known before the target has
/// looked, too.
///
/// Throws std::invalid_argument for another name, for spans of other lengths than `places` or of none, for
/// places that do not ascend, and for "attention" where a frame with tokens has none.
std::vector<double> draft_scores(std::string_view selection, std::span<const ScoredFrame> window);

/// The tokens that are kept, ascending: counted over the frames of the window, and within each in order. Of
/// equal scores the earlier token is kept. Of a window without tokens none is.
///
/// "hippo", "attention", "change": those with the highest `draft_scores` of the whole window. "specvlm":
/// first, by s_attn, as many as have 0.4 of the window's attention together, but no more than are kept at
/// all; then evenly spaced ones of the rest, its first and its last among them (zju-jiyicheng/SpecVLM).
/// "frame": all of some frames, evenly spaced: the share is one of frames that have tokens, one of them at
/// least. "random": by the seed. "all": all of them, whatever the share.
///
/// Throws as `draft_scores` does ("specvlm" wants what "attention" does), and for a share outside of [0, 1].
std::vector<std::int32_t> draft_tokens(std::string_view selection, std::span<const ScoredFrame> window,
                                       const DraftShare& share);

}  // namespace vigil::prune
