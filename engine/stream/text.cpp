#include "engine/stream/text.h"

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

void Text::take(run::Passes& passes, std::size_t i) {
  const std::int32_t token = choose(passes, i);
  pending_.clear();
  positions_.clear();
  is_extended_ = false;
  if (folder_->generation.ends(token)) return finish(FinishReason::end_of_turn, decoder_.finish());

  answer_.tokens.push_back(token);
  say(stops_.push(decoder_.push(token)));
  if (stops_.stopped()) {
    answer_.finish = FinishReason::stop;
    done_ = true;
  } else if (static_cast<int>(answer_.tokens.size()) == question_->max_tokens) {
    finish(FinishReason::length, decoder_.finish());
  } else {
    pending_ = {token};
    cursor_.generated(positions_);
  }
}

}  // namespace vigil::stream
