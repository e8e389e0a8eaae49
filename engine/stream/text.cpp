#include "engine/stream/text.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>

#include "kernels/top_k/top_k.h"

namespace vigil::stream {

Text::Text(const model::ModelFolder& folder, CompiledQuestionPtr question, OnText on_text, kv::View window,
           const model::PositionCursor& cursor)
    : folder_(&folder),
      question_(std::move(question)),
      on_text_(std::move(on_text)),
      view_(std::move(window)),
      cursor_(cursor),
      pending_(question_->tokens),
      sampler_(question_->sampling, question_->seen),
      stops_(question_->sampling.stop),
      decoder_(folder.text(), true) {
  const auto count = static_cast<std::int64_t>(pending_.size());
  cursor_.text(count, positions_);
  answer_.prompt_tokens = view_.size() + count;
  answer_.shared_tokens = view_.size();
}

CompiledQuestionPtr Text::question_of(const model::ModelFolder& folder, const CarriedText& carried) {
  const auto is_token = [&](std::int32_t id) { return id >= 0 && id < folder.config.text.vocab_size; };
  constexpr std::int32_t kFarthest = std::numeric_limits<std::int32_t>::max();
  const auto left = kFarthest - carried.max_tokens;
  const bool is_sound =
      carried.max_tokens > 1 && !carried.tokens.empty() &&
      carried.tokens.size() < static_cast<std::size_t>(carried.max_tokens) &&
      std::all_of(carried.tokens.begin(), carried.tokens.end(),
                  [&](std::int32_t id) { return is_token(id) && !folder.generation.ends(id); }) &&
      std::all_of(carried.seen.begin(), carried.seen.end(), is_token) && carried.position.t < left &&
      carried.position.h < left && carried.position.w < left;
  if (!is_sound) throw std::invalid_argument("this is no text of this model");
  model::validate(carried.sampling);
  return std::make_shared<CompiledQuestion>(
      CompiledQuestion{{}, carried.seen, carried.max_tokens, carried.sampling});
}

Text::Text(const model::ModelFolder& folder, const CarriedText& carried, kv::View view)
    : folder_(&folder),
      question_(question_of(folder, carried)),
      view_(std::move(view)),
      // The next one comes where a prompt would begin there.
      cursor_(model::Position{carried.position.t + 1, carried.position.h + 1, carried.position.w + 1}),
      pending_({carried.tokens.back()}),
      positions_({carried.position}),
      sampler_(question_->sampling, question_->seen),
      stops_(question_->sampling.stop),
      decoder_(folder.text(), true) {
  answer_.probability_yes = carried.probability_yes;
  answer_.prompt_tokens = carried.prompt_tokens;
  answer_.shared_tokens = carried.shared_tokens;
  answer_.tokens = carried.tokens;
  for (const std::int32_t token : carried.tokens) {
    sampler_.follow(token);
    answer_.text += stops_.push(decoder_.push(token));
  }
  if (stops_.stopped()) throw std::invalid_argument("this text has ended");
}

CarriedText Text::carried() const {
  return {question_->seen,  question_->max_tokens,   question_->sampling,   answer_.tokens,
          positions_.at(0), answer_.probability_yes, answer_.prompt_tokens, answer_.shared_tokens};
}

std::size_t Text::propose(std::span<const std::int32_t> tokens) {
  if (is_extended_ || done_) return 0;
  keep_proposed(0);
  // The last token of the longest answer is chosen, and never computed.
  const std::size_t left = static_cast<std::size_t>(question_->max_tokens) - answer_.tokens.size() - 1;
  model::PositionCursor ahead = cursor_;
  for (; proposed_ < std::min(tokens.size(), left); ++proposed_) {
    const std::int32_t token = tokens[proposed_];
    if (token < 0 || token >= folder_->config.text.vocab_size) break;
    pending_.push_back(token);
    ahead.generated(positions_);
  }
  return proposed_;
}

void Text::keep_proposed(std::size_t most) {
  if (is_extended_ || most >= proposed_) return;
  pending_.resize(pending_.size() - (proposed_ - most));
  positions_.resize(pending_.size());
  proposed_ = most;
}

bool Text::withdraw(kv::Book::Claim& claim) {
  if (proposed_ == 0) return false;
  if (is_extended_) view_.drop_back(static_cast<std::int64_t>(proposed_), claim);
  pending_.resize(pending_.size() - proposed_);
  positions_.resize(pending_.size());
  proposed_ = 0;
  return true;
}

void Text::extend(kv::Book::Claim& claim) {
  if (is_extended_) return;
  view_.append(static_cast<std::int64_t>(pending_.size()), claim);
  is_extended_ = true;
}

void Text::move_to(kv::Handover& handover, std::vector<kv::PageCopy>& copies) {
  std::optional<kv::View> view = handover.take(view_, copies);
  if (!view) throw std::logic_error("the KV cache of generation has less room than was counted");
  view_ = std::move(*view);
}

// Chosen from as little as its sampling needs: the likeliest token, the likeliest few, or all logits.
std::int32_t Text::choose(run::Passes& passes, std::size_t i) {
  if (sampler_.takes_likeliest()) return sampler_.take(passes.likeliest(i));
  const std::size_t wanted = sampler_.wanted();
  if (wanted > 0 && wanted <= kernels::kMostTopK) {
    const std::optional<std::int32_t> token = sampler_.next_of(passes.likeliest(i, wanted));
    if (token) return *token;
  }
  return sampler_.next(passes.logits(i));
}

void Text::say(std::string_view piece) {
  answer_.text += piece;
  if (on_text_ && !piece.empty()) on_text_(piece);
}

void Text::finish(FinishReason reason, std::string_view rest) {
  std::string last = stops_.push(rest);
  last += stops_.finish();
  say(last);
  answer_.finish = reason;
  done_ = true;
}

std::size_t Text::take(run::Passes& passes, std::size_t first, kv::Book::Claim& claim) {
  const std::vector<std::int32_t> proposed(pending_.end() - static_cast<std::ptrdiff_t>(proposed_),
                                           pending_.end());
  std::size_t chosen = 0;
  std::int32_t token = choose(passes, first);
  bool goes_on = add(token);
  while (chosen < proposed.size() && token == proposed[chosen]) {
    // It was computed where it belongs.
    ++chosen;
    if (!goes_on) break;
    try {
      token = choose(passes, first + chosen);
    } catch (const std::bad_alloc&) {
      --chosen;
      break;
    }
    cursor_.generated(positions_);
    goes_on = add(token);
  }
  view_.drop_back(static_cast<std::int64_t>(proposed.size() - chosen), claim);
  pending_.clear();
  positions_.clear();
  proposed_ = 0;
  is_extended_ = false;
  if (goes_on) {
    pending_ = {token};
    cursor_.generated(positions_);
  }
  return chosen;
}

bool Text::add(std::int32_t token) {
  if (folder_->generation.ends(token)) {
    finish(FinishReason::end_of_turn, decoder_.finish());
    return false;
  }
  answer_.tokens.push_back(token);
  say(stops_.push(decoder_.push(token)));
  if (stops_.stopped()) {
    answer_.finish = FinishReason::stop;
    done_ = true;
  } else if (static_cast<int>(answer_.tokens.size()) == question_->max_tokens) {
    finish(FinishReason::length, decoder_.finish());
  }
  return !done_;
}

}  // namespace vigil::stream
