#include "engine/speculate/rounds.h"

#include <algorithm>
#include <stdexcept>

namespace vigil::speculate {

Rounds::Rounds(Method method, RoundPlan plan, RoundLimits limits)
    : method_(method), plan_(plan), limits_(limits) {
  plan_.gamma = std::min(plan_.gamma, limits_.drafts);
}

Actions Rounds::start() {
  if (is_started_) return {};
  is_started_ = true;
  draft_round_ = ++last_round_;
  return go_on();
}

Actions Rounds::target_ready() {
  is_free_ = true;
  return go_on();
}

Actions Rounds::set_plan(RoundPlan plan) {
  plan_ = plan;
  plan_.gamma = std::min(plan_.gamma, limits_.drafts);
  return go_on();
}

Actions Rounds::drafter_lost() {
  is_lost_ = true;
  draft_round_ = ++last_round_;
  return go_on();
}

std::optional<std::int32_t> Rounds::draft_behind_pass() const {
  if (!pass_round_ || drafts_.size() <= in_pass_) return std::nullopt;
  return drafts_[in_pass_];
}

Actions Rounds::drafted(std::uint64_t round, std::span<const std::int32_t> tokens) {
  if (is_ended_ || is_lost_ || !is_started_ || round != draft_round_) return {};
  if (have() + tokens.size() > asked_) throw std::invalid_argument("these drafts were not asked for");
  for (const std::int32_t token : tokens) {
    if (unseen_.empty()) {
      drafts_.push_back(token);
    } else if (token == unseen_.front()) {
      unseen_.pop_front();
      is_trusted_ = unseen_.empty();
    } else {
      part_ways();
      break;
    }
  }
  // It drafts behind what was said: quicker told than drafted.
  if (!unseen_.empty() && !has_parted_) part_ways();
  return go_on();
}

Actions Rounds::verified(std::uint64_t round, std::span<const std::int32_t> tokens) {
  if (is_ended_ || !pass_round_ || round != *pass_round_) return {};
  if (tokens.empty() || tokens.size() > in_pass_ + 1) {
    throw std::invalid_argument("a pass brings a token, and no more than it has rows");
  }
  pass_round_.reset();
  in_pass_ = 0;
  has_question_ = true;
  is_trusted_ = true;
  for (const std::int32_t token : tokens) say(token);
  return go_on();
}

void Rounds::say(std::int32_t token) {
  ++said_;
  if (drafts_.empty()) {
    unseen_.push_back(token);
    is_trusted_ = false;
  } else if (drafts_.front() == token) {
    drafts_.pop_front();
  } else {
    drafts_.clear();
    unseen_.push_back(token);
    part_ways();
  }
}

// What is still to come of what it drafts is stale.
void Rounds::part_ways() {
  has_parted_ = true;
  is_trusted_ = false;
  draft_round_ = ++last_round_;
}

/// How many tokens of the answer the drafter is to have.
std::size_t Rounds::goal() const {
  const std::size_t gamma = plan_.gamma;
  if (!is_started_ || rests()) return 0;
  const std::size_t behind_pass = pass_round_ ? said_ + in_pass_ : said_;
  switch (method_) {
    case Method::serial:
      return pass_round_ || !has_question_ ? 0 : said_ + gamma;
    case Method::pearl:
    case Method::hippo:
      if (!has_question_) return method_ == Method::hippo ? std::max(limits_.piled, gamma) : gamma;
      // Whether the last token is its own shows when it comes.
      if (!unseen_.empty()) return std::max(until_, said_);
      return pass_round_ || !is_trusted_ ? behind_pass + gamma : said_ + gamma - 1;
    case Method::automatic:
      return has_question_ ? behind_pass + gamma : limits_.drafts + gamma;
  }
  return 0;
}

bool Rounds::may_verify() const {
  if (!is_free_ || pass_round_) return false;
  if (!has_question_ || rests()) return true;
  switch (method_) {
    case Method::serial:
      return drafts_.size() >= plan_.gamma;
    case Method::pearl:
    case Method::hippo:
      if (!unseen_.empty()) return false;
      return !is_trusted_ || drafts_.size() >= plan_.gamma - 1;
    case Method::automatic:
      return drafts_.size() >= std::min(plan_.least, plan_.gamma);
  }
  return true;
}

Actions Rounds::go_on() {
  Actions actions;
  if (is_ended_) return actions;
  // One that has nothing left to draft will not find out by itself what was said.
  const bool is_idle = until_ <= have();
  if (is_started_ && !rests() && !unseen_.empty() && (has_parted_ || is_idle)) {
    if (!has_parted_) part_ways();
    actions.emplace_back(Cut{draft_round_, have(), {unseen_.begin(), unseen_.end()}});
    unseen_.clear();
    has_parted_ = false;
    until_ = asked_ = have();
  }
  if (may_verify()) {
    const bool is_alone = takes_turns() && !rests() && (!has_question_ || !is_trusted_);
    const bool is_first = !has_question_ && method_ != Method::automatic;
    in_pass_ = is_alone || is_first ? 0 : std::min(limits_.drafts, drafts_.size());
    pass_round_ = ++last_round_;
    is_free_ = false;
    const bool is_optimistic = in_pass_ > 0 || (takes_turns() && is_trusted_ && !rests());
    const auto last = drafts_.begin() + static_cast<std::ptrdiff_t>(in_pass_);
    const Mode mode = !has_question_ ? Mode::question : is_optimistic ? Mode::optimistic : Mode::conservative;
    actions.emplace_back(VerifyDrafts{*pass_round_, said_, {drafts_.begin(), last}, mode});
  }
  // One that is on its way too far is stopped; one that stands is sent on.
  const std::size_t until = std::max(goal(), have());
  if (is_started_ && !is_lost_ && !has_parted_ && until != std::max(until_, have())) {
    until_ = until;
    asked_ = std::max(asked_, until);
    actions.emplace_back(DraftOn{draft_round_, until});
  }
  return actions;
}

}  // namespace vigil::speculate
