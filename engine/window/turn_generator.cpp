#include "engine/window/turn_generator.h"

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::window {
namespace {

/// The window of a continuation, if `model` asked it and it has the question.
CachedWindow& window_of(const Continuation& continuation, const CachedModel& model) {
  auto* window = dynamic_cast<CachedWindow*>(continuation.window);
  if (window == nullptr || window->model.get() != &model)
    throw std::invalid_argument("the window was asked by another engine");
  if (continuation.question >= window->turns.size())
    throw std::invalid_argument("the window has no question " + std::to_string(continuation.question));
  return *window;
}

}  // namespace

TurnGenerator::TurnGenerator(std::shared_ptr<CachedModel> model, const std::vector<kernels::Stream>& streams)
    : asked_(model), model_(std::move(model)), runner_(*model_, streams) {}

TurnGenerator::TurnGenerator(std::shared_ptr<CachedModel> asked, std::shared_ptr<CachedModel> model,
                             const std::vector<kernels::Stream>& streams)
    : asked_(std::move(asked)), model_(std::move(model)), runner_(*model_, streams) {
  const kv::PageLayout& from = asked_->pages.layout();
  const kv::PageLayout& to = model_->pages.layout();
  if (asked_->ranks() != model_->ranks() || from.page_bytes() != to.page_bytes() ||
      from.page_tokens != to.page_tokens || model_->pages.pages() < asked_->pages.pages())
    throw std::invalid_argument("windows cannot be continued by a model of another shape or in other parts");
}

void TurnGenerator::take_over(CachedWindow& window, Turn& turn) {
  if (!window.handover) {
    window.taken_by = model_;
    window.handover = std::make_unique<kv::Handover>(model_->pages);
  }
  std::vector<kv::PageCopy> copies;
  std::optional<kv::View> view = window.handover->take(turn.view, copies);
  if (!view) throw std::logic_error("the KV cache of generation has less room than was counted");
  runner_.passes().take_pages(*asked_, copies);
  window.left.push_back(std::move(turn.view));
  turn.view = std::move(*view);
}

std::vector<Answer> TurnGenerator::generate(std::span<const Continuation> continuations) {
  std::vector<Turn*> turns;
  turns.reserve(continuations.size());
  for (const Continuation& continuation : continuations) {
    Turn& turn = window_of(continuation, *asked_).turns[continuation.question];
    if (turn.completed) throw std::invalid_argument("the answer was completed before");
    turns.push_back(&turn);
  }
  for (Turn* turn : turns) turn->completed = true;
  if (asked_ != model_)
    for (std::size_t i = 0; i < turns.size(); ++i)
      if (!turns[i]->done) take_over(window_of(continuations[i], *asked_), *turns[i]);
  while (true) {
    std::vector<Turn*> going_on;
    for (Turn* turn : turns)
      if (!turn->done) going_on.push_back(turn);
    if (going_on.empty()) break;
    runner_.advance(going_on);
    for (std::size_t i = 0; i < going_on.size(); ++i) runner_.choose(*going_on[i], i);
  }
  std::vector<Answer> answers;
  answers.reserve(turns.size());
  for (Turn* turn : turns) answers.push_back(std::move(turn->answer));
  return answers;
}

}  // namespace vigil::window
