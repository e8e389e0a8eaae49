// A question on its way to an answer, token by token.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/kv/book.h"
#include "engine/kv/handover.h"
#include "engine/kv/view.h"
#include "engine/model/language/positions.h"
#include "engine/model/language/sampler.h"
#include "engine/model/model_folder.h"
#include "engine/model/text/tokenizer.h"
#include "engine/run/passes.h"
#include "engine/stream/answer.h"
#include "engine/stream/compiled_question.h"

namespace vigil::stream {

/// What there is of a text after its first token, without its pages: it goes on with the same tokens in
/// another process, over the same model and copies of its pages (kv/carried_view.h).
struct CarriedText {
  /// Of its question: what the sampler has to know.
  std::vector<std::int32_t> seen;
  int max_tokens = 1;
  model::Sampling sampling;
  /// What was said so far; the last one is still to be computed, at this position.
  std::vector<std::int32_t> tokens;
  model::Position position;
  float probability_yes = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t shared_tokens = 0;
};

/// What one question sees, its window first and its own tail behind it, and what was said so far. The tokens
/// that are to be computed next are `pending`: the question's at first, then the last one of the answer; and
/// behind these what somebody proposes to follow, which the same pass verifies: where a proposal is what the
/// sampler chooses, one token more comes of the pass. Whatever is proposed, the answer is what it would be
/// without, as far as a row's logits do not depend on how many rows go with it. Not thread-safe.
class Text {
 public:
  using OnText = std::function<void(std::string_view piece)>;

  /// Goes on after `window`, where `cursor` stands. `folder` has to outlive it.
  Text(const model::ModelFolder& folder, CompiledQuestionPtr question, OnText on_text, kv::View window,
       const model::PositionCursor& cursor);

  /// Goes on with one of another process. Throws std::invalid_argument for one that is none, of this model.
  Text(const model::ModelFolder& folder, const CarriedText& carried, kv::View view);
  /// Once it has its first token, and is not done.
  CarriedText carried() const;

  const CompiledQuestion& question() const { return *question_; }
  const Answer& answer() const { return answer_; }
  Answer take_answer() && { return std::move(answer_); }

  /// No token follows.
  bool done() const { return done_; }
  std::span<const std::int32_t> pending() const { return pending_; }
  /// One a pending token.
  std::span<const model::Position> positions() const { return positions_; }

  /// That may follow the pending tokens: as many of them, from the first one on, as its answer may still
  /// have, and up to one that the model does not have. Instead of what was proposed before; nothing where
  /// its pending tokens have their slots already. Returns how many were taken.
  std::size_t propose(std::span<const std::int32_t> tokens);
  /// No more than the first so many of them are to be verified.
  void keep_proposed(std::size_t most);
  /// None of them: a pass may have failed of it. False: there were none.
  bool withdraw(kv::Book::Claim& claim);
  /// The last so many of the pending tokens each choose what follows.
  std::size_t outputs() const { return 1 + proposed_; }

  /// Slots for the pending tokens at the end of the view, out of a claim. A pass that failed may be tried
  /// again: they are there once.
  void extend(kv::Book::Claim& claim);
  const kv::View& view() const { return view_; }

  /// What its pass says comes next, as its outputs from `first` on: it is done, or a token is pending. The
  /// slots of proposals that were not chosen go back to the claim. Returns how many were, the last of an
  /// answer that ends among them. Where there is no memory to choose what follows a proposal, the next pass
  /// does. Throws std::bad_alloc for the first one, and std::invalid_argument for logits that no token can be
  /// chosen from.
  std::size_t take(run::Passes& passes, std::size_t first, kv::Book::Claim& claim);

  /// Of the first token; set by who reads it.
  void set_probability(float yes) { answer_.probability_yes = yes; }

  /// Its pages go back: no pass follows.
  void let_go() { view_.clear(); }

  /// Goes on in another book; pages that are to be copied are appended. Throws std::logic_error if that has
  /// no room, which it has while it is as large as the first.
  void move_to(kv::Handover& handover, std::vector<kv::PageCopy>& copies);

 private:
  static CompiledQuestionPtr question_of(const model::ModelFolder& folder, const CarriedText& carried);
  std::int32_t choose(run::Passes& passes, std::size_t i);
  /// The next token of the answer; false if it was the last.
  bool add(std::int32_t token);
  void say(std::string_view piece);
  void finish(FinishReason reason, std::string_view rest);

  const model::ModelFolder* folder_;
  CompiledQuestionPtr question_;
  OnText on_text_;
  Answer answer_;
  kv::View view_;
  model::PositionCursor cursor_;
  std::vector<std::int32_t> pending_;
  std::vector<model::Position> positions_;
  /// The last so many of the pending tokens.
  std::size_t proposed_ = 0;
  model::Sampler sampler_;
  model::StopStrings stops_;
  model::StreamDecoder decoder_;
  bool done_ = false;
  /// The pending tokens have their slots.
  bool is_extended_ = false;
};

}  // namespace vigil::stream
