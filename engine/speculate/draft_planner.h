// How many tokens each sequence's drafter drafts before the next pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/speculate/step_times.h"

namespace vigil::speculate {

/// What is known of a sequence when its next pass is planned.
struct Draftable {
  /// That a draft is accepted (acceptance.h).
  double acceptance = 0;
  /// Tokens that the target attends to, and the drafter.
  std::size_t context = 0;
  std::size_t draft_context = 0;
  /// Tokens that were said while its drafter rested, which that one has to catch up on first.
  std::size_t behind = 0;
  /// The most that it may draft, at the end of an answer or with a drafter that has no more; 15 at most.
  std::size_t most = 15;
};

struct PlanSettings {
  /// The drafter works while the target does, on another device: a round takes as long as the slower one.
  /// Otherwise they take turns.
  bool is_beside = false;
  /// Drafting has to be expected to be so much better than plain decoding.
  double margin = 1.02;
  /// A drafter that is woken pays for catching up within so many passes.
  double wake_passes = 16;
};

/// What was planned, and what is expected of it.
struct DraftPlan {
  /// Of each sequence; 0: its drafter rests.
  std::vector<std::size_t> lengths;
  /// Of all sequences together.
  double tokens_per_second = 0;
  double plain_tokens_per_second = 0;
  /// Numbers that were looked at: what deciding has cost.
  std::size_t operations = 0;
};

/// Most expected tokens a second of a pass that all sequences share: a row more brings its acceptance to the
/// power of its place, costs what a pass with one row more takes, and, where it is the first of its place,
/// a step of the drafter. Never less than plain decoding is expected to bring. Throws std::invalid_argument
/// for an acceptance outside [0, 1].
DraftPlan plan_drafts(std::span<const Draftable> sequences, const StepTimes& target, const StepTimes& drafter,
                      const PlanSettings& settings);

}  // namespace vigil::speculate
