#include "engine/speculate/draft_counts.h"

#include <algorithm>
#include <stdexcept>

namespace vigil::speculate {

void DraftCounts::passed(std::size_t drafts, std::size_t accepted, std::size_t tokens) {
  if (accepted > drafts || accepted > tokens) {
    throw std::invalid_argument("no more drafts are accepted than there are, nor than tokens come out");
  }
  ++passes_;
  tokens_ += tokens;
  if (drafts == 0) return;
  ++drafts_;
  draft_tokens_ += drafts;
  accepted_ += accepted;
  for (std::size_t at = 0; at < std::min(accepted, kPositions); ++at) ++accepted_at_[at];
  run_ += accepted;
  in_run_ = true;
  if (accepted < drafts) ended();
}

void DraftCounts::ended() {
  if (!in_run_) return;
  ++runs_;
  accepted_in_runs_ += run_;
  run_ = 0;
  in_run_ = false;
}

void DraftCounts::add(const DraftCounts& other) {
  drafts_ += other.drafts_;
  draft_tokens_ += other.draft_tokens_;
  accepted_ += other.accepted_;
  for (std::size_t at = 0; at < kPositions; ++at) accepted_at_[at] += other.accepted_at_[at];
  passes_ += other.passes_;
  tokens_ += other.tokens_;
  runs_ += other.runs_ + (other.in_run_ ? 1 : 0);
  accepted_in_runs_ += other.accepted_in_runs_ + other.run_;
}

double DraftCounts::tokens_per_pass() const {
  return passes_ == 0 ? 0 : static_cast<double>(tokens_) / static_cast<double>(passes_);
}

double DraftCounts::mean_accepted_tokens() const {
  return runs_ == 0 ? 0 : static_cast<double>(accepted_in_runs_) / static_cast<double>(runs_);
}

}  // namespace vigil::speculate
