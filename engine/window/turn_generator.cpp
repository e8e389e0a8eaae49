#include "engine/window/turn_generator.h"

#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::window {
namespace {

/// The turn of a continuation, if this model asked it and nobody completed it.
Turn& turn_of(const Continuation& continuation, const CachedModel& model) {
  auto* window = dynamic_cast<CachedWindow*>(continuation.window);
  if (window == nullptr || window->model.get() != &model)
    throw std::invalid_argument("the window was asked by another engine");
  if (continuation.question >= window->turns.size())
    throw std::invalid_argument("the window has no question " + std::to_string(continuation.question));
  return window->turns[continuation.question];
}

}  // namespace

TurnGenerator::TurnGenerator(std::shared_ptr<CachedModel> model, kernels::Stream stream)
    : model_(std::move(model)), runner_(*model_, std::move(stream)) {}

std::vector<Answer> TurnGenerator::generate(std::span<const Continuation> continuations) {
  std::vector<Turn*> turns;
  turns.reserve(continuations.size());
  for (const Continuation& continuation : continuations) {
    Turn& turn = turn_of(continuation, *model_);
    if (turn.completed) throw std::invalid_argument("the answer was completed before");
    turns.push_back(&turn);
  }
  for (Turn* turn : turns) turn->completed = true;
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
