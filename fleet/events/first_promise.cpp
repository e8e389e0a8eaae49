#include "fleet/events/first_promise.h"

namespace vigil::fleet {

void FirstPromise::see(const GatewayView& view) {
  const auto there = view.find(to_);
  if (there == view.end() || there->second.born != born_) *this = {};
}

bool FirstPromise::hear(const PeerQuestion& question, const GatewayView& view) {
  const bool decides = view.at(question.from).created == question.after;
  const bool has_it = to_ == question.from && born_ == question.born;
  if (!decides) {
    // What it said before, it says no more; what it says now may have been under way for long.
    if (has_it && (question.token.empty() || question.token >= token_)) *this = {};
    return true;
  }
  if (has_it && question.token < token_) return true;
  if (!has_it && !to_.empty() && ballot_ > question.after) return false;
  to_ = question.from;
  born_ = question.born;
  token_ = question.token;
  ballot_ = question.after;
  return true;
}

bool FirstPromise::is_of(const PeerQuestion& nominate) const {
  return to_ == nominate.from && born_ == nominate.born && token_ == nominate.token &&
         ballot_ == nominate.after;
}

PeerAnswer answer_without_outbox(const PeerQuestion& question, const std::string& own,
                                 const GatewayView& view, FirstPromise& promise) {
  PeerAnswer answer;
  answer.number = question.number;
  answer.refused = question.kind != PeerQuestionKind::admit;
  answer.lacks_outbox = true;
  if (question.kind != PeerQuestionKind::state) return answer;
  promise.see(view);
  const auto here = view.find(own);
  const auto asker = view.find(question.from);
  // It can be told of nobody that it is gone before it was told that it is there.
  const bool is_known = here != view.end() && here->second.born == question.to_born && asker != view.end() &&
                        asker->second.born == question.born;
  answer.lacks_outbox = is_known && promise.hear(question, view);
  return answer;
}

}  // namespace vigil::fleet
