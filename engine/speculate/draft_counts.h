// What drafting has brought, in numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace vigil::speculate {

/// The first four are vLLM's of the same names: rounds without a draft are none. One owner at a time.
class DraftCounts {
 public:
  static constexpr std::size_t kPositions = 16;

  /// A pass that judged so many drafts of a sequence and brought its answer so many tokens, accepted ones
  /// among them. Throws std::invalid_argument for more accepted than judged ones, or than tokens.
  void passed(std::size_t drafts, std::size_t accepted, std::size_t tokens);
  /// The answer is complete: the run of accepted drafts that it is in ends with it.
  void ended();
  /// Another sequence's, or another process's.
  void add(const DraftCounts& other);

  std::uint64_t num_drafts() const { return drafts_; }
  std::uint64_t num_draft_tokens() const { return draft_tokens_; }
  std::uint64_t num_accepted_tokens() const { return accepted_; }
  /// Of the drafts at each place of their rounds; those behind the last place count for it no more.
  const std::array<std::uint64_t, kPositions>& num_accepted_tokens_per_pos() const { return accepted_at_; }

  std::uint64_t passes() const { return passes_; }
  std::uint64_t tokens() const { return tokens_; }
  /// 0 without a pass.
  double tokens_per_pass() const;
  /// HIPPO's MAT: accepted drafts from one rejection to the next, over all rounds in between that were
  /// accepted whole; a run that the end of the answer cuts off counts too. 0 without a run.
  double mean_accepted_tokens() const;

 private:
  std::uint64_t drafts_ = 0;
  std::uint64_t draft_tokens_ = 0;
  std::uint64_t accepted_ = 0;
  std::array<std::uint64_t, kPositions> accepted_at_{};
  std::uint64_t passes_ = 0;
  std::uint64_t tokens_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t accepted_in_runs_ = 0;
  std::uint64_t run_ = 0;
  bool in_run_ = false;
};

}  // namespace vigil::speculate
