// When one sequence's drafter drafts, when the target verifies, and what of the drafts stays.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <variant>
#include <vector>

namespace vigil::speculate {

/// serial: the target waits for its drafts, and the drafter for the target.
/// pearl: after a rejection the target says the next token alone while the drafter drafts (pre-verify); once
/// that token was the first draft, the rest of the batch is verified while the next one is drafted
/// (post-verify), for as long as all are accepted.
/// hippo: pearl, but that drafts pile up until the target has the question.
/// automatic: whenever the target is free, all drafts that are there are verified, with the question too.
enum class Method { serial, pearl, hippo, automatic };

/// What a pass is to its round.
enum class Mode { question, conservative, optimistic };

/// To the drafter: what it has of the answer from token `at` on is gone, and `said` stands there.
struct Cut {
  std::uint64_t round = 0;
  std::size_t at = 0;
  std::vector<std::int32_t> said;
  friend bool operator==(const Cut&, const Cut&) = default;
};

/// To the drafter: on, token by token, until it has `until` tokens of the answer; it stops at once if it has
/// them. The last one of these counts.
struct DraftOn {
  std::uint64_t round = 0;
  std::size_t until = 0;
  friend bool operator==(const DraftOn&, const DraftOn&) = default;
};

/// To the target: a pass over the last token said and these drafts, whose rows say what the tokens from `at`
/// on are.
struct VerifyDrafts {
  std::uint64_t round = 0;
  std::size_t at = 0;
  std::vector<std::int32_t> drafts;
  Mode mode = Mode::question;
  friend bool operator==(const VerifyDrafts&, const VerifyDrafts&) = default;
};

using Action = std::variant<Cut, DraftOn, VerifyDrafts>;
using Actions = std::vector<Action>;

/// What is to be drafted; it counts from the next decision on.
struct RoundPlan {
  /// Drafts a round; 0: the drafter rests.
  std::size_t gamma = 5;
  /// `automatic` alone: the target waits for so many drafts, of a drafter that is at work.
  std::size_t least = 0;
  friend bool operator==(const RoundPlan&, const RoundPlan&) = default;
};

struct RoundLimits {
  /// Drafts in a pass.
  std::size_t drafts = 15;
  /// Drafts before the target has the question.
  std::size_t piled = 64;
  friend bool operator==(const RoundLimits&, const RoundLimits&) = default;
};

/// The rounds of one sequence, as events that come in and actions that go out in their order. Tokens are
/// counted from the answer's first. An event has the round of the action that it is due to; one of a round
/// that is over is dropped, and so is everything after `end`. What the target says is the answer, whatever
/// the drafter does or does not. One owner at a time.
class Rounds {
 public:
  explicit Rounds(Method method, RoundPlan plan = {}, RoundLimits limits = {});

  /// The drafter has the question, or is about to.
  Actions start();
  /// The target may begin a pass of this sequence: the question's, then one after each `verified`. It stays
  /// so until that pass, which some methods have wait for drafts, or until `target_busy`.
  Actions target_ready();
  /// The target has begun a pass without this sequence.
  void target_busy() { is_free_ = false; }
  /// The drafter's next tokens. Throws std::invalid_argument for more than it was told to draft.
  Actions drafted(std::uint64_t round, std::span<const std::int32_t> tokens);
  /// What the pass has brought: drafts that were accepted, and one token more. Throws std::invalid_argument
  /// for none, or for more tokens than there were rows.
  Actions verified(std::uint64_t round, std::span<const std::int32_t> tokens);
  Actions set_plan(RoundPlan plan);
  /// It drafts no more: from here on the target says token by token.
  Actions drafter_lost();
  void end() { is_ended_ = true; }

  /// The draft after those of the pass that is on its way, if it is there. The pass's last row may judge it,
  /// as it has to where tokens are drawn by rejection (verify.h).
  std::optional<std::int32_t> draft_behind_pass() const;

  /// Tokens of the answer so far.
  std::size_t said() const { return said_; }
  /// Drafts that are there and neither accepted nor rejected.
  std::size_t drafts() const { return drafts_.size(); }
  /// Tokens that were said and that the drafter has not drafted: what it has to catch up on.
  std::size_t behind() const { return unseen_.size(); }

  friend bool operator==(const Rounds&, const Rounds&) = default;

 private:
  bool rests() const { return is_lost_ || plan_.gamma == 0; }
  bool takes_turns() const { return method_ == Method::pearl || method_ == Method::hippo; }
  std::size_t have() const { return said_ + drafts_.size() - unseen_.size(); }
  std::size_t goal() const;
  bool may_verify() const;
  void say(std::int32_t token);
  void part_ways();
  Actions go_on();

  Method method_;
  RoundPlan plan_;
  RoundLimits limits_;
  std::uint64_t last_round_ = 0;
  /// Of the drafter's.
  std::uint64_t draft_round_ = 0;
  /// Of the pass that is on its way, and its drafts.
  std::optional<std::uint64_t> pass_round_;
  std::size_t in_pass_ = 0;

  std::size_t said_ = 0;
  /// From token said_ on.
  std::deque<std::int32_t> drafts_;
  /// Up to token said_: what the drafter is not known to have. One of these two is empty.
  std::deque<std::int32_t> unseen_;
  /// The drafter goes another way than what was said: it has to be told.
  bool has_parted_ = false;
  /// What the drafter was told last, and the most of this round.
  std::size_t until_ = 0;
  std::size_t asked_ = 0;

  /// The last tokens that were said are the drafter's, as far as that is known.
  bool is_trusted_ = true;
  bool is_started_ = false;
  bool has_question_ = false;
  bool is_free_ = false;
  bool is_lost_ = false;
  bool is_ended_ = false;
};

}  // namespace vigil::speculate
