#include "engine/stream/turn_generator.h"

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::stream {
namespace {

/// The window of a continuation, if `model` asked it and it has the question.
CachedWindow& window_of(const Continuation& continuation, const run::CachedModel& model) {
  auto* window = dynamic_cast<CachedWindow*>(continuation.window);
  if (window == nullptr || window->model.get() != &model)
    throw std::invalid_argument("the window was asked by another engine");
  if (continuation.question >= window->turns.size())
    throw std::invalid_argument("the window has no question " + std::to_string(continuation.question));
  return *window;
}

}  // namespace

TurnGenerator::TurnGenerator(std::shared_ptr<run::CachedModel> model,
                             const std::vector<kernels::Stream>& streams)
    : asked_(model), model_(std::move(model)), runner_(*model_, streams) {}

TurnGenerator::TurnGenerator(std::shared_ptr<run::CachedModel> asked, std::shared_ptr<run::CachedModel> model,
                             const std::vector<kernels::Stream>& streams)
    : asked_(std::move(asked)), model_(std::move(model)), runner_(*model_, streams) {
  const kv::PageLayout& from = asked_->parts.front()->pages.layout();
  const kv::PageLayout& to = model_->parts.front()->pages.layout();
  if (asked_->ranks() != model_->ranks() || from.page_bytes() != to.page_bytes() ||
      from.page_tokens != to.page_tokens || model_->book.pages() < asked_->book.pages())
    throw std::invalid_argument("windows cannot be continued by a model of another shape or in other parts");
}

void TurnGenerator::take_over(CachedWindow& window, Turn& turn) {
  if (!window.handover) {
    window.taken_by = model_;
    window.handover = std::make_unique<kv::Handover>(model_->book);
  }
  std::vector<kv::PageCopy> copies;
  std::optional<kv::View> view = window.handover->take(turn.view, copies);
  if (!view) throw std::logic_error("the KV cache of generation has less room than was counted");
  runner_.passes().take_pages(*asked_, copies);
  window.left.push_back(std::move(turn.view));
  turn.view = std::move(*view);
}

std::vector<Completion> TurnGenerator::generate(std::span<const Continuation> continuations) {
  std::vector<Completion> completions(continuations.size());
  // Null for what is refused.
  std::vector<Turn*> turns(continuations.size());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    try {
      Turn& turn = window_of(continuations[i], *asked_).turns[continuations[i].question];
      if (std::exchange(turn.continued, true)) throw std::invalid_argument("the answer was continued before");
      turns[i] = &turn;
    } catch (const std::invalid_argument&) {
      completions[i].failure = std::current_exception();
    }
  }
  const auto goes_on = [&](std::size_t i) { return turns[i] != nullptr && !turns[i]->done; };
  if (asked_ != model_)
    for (std::size_t i = 0; i < turns.size(); ++i)
      if (goes_on(i)) take_over(window_of(continuations[i], *asked_), *turns[i]);
  while (true) {
    std::vector<Turn*> going_on;
    std::vector<Completion*> theirs;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      if (!goes_on(i)) continue;
      going_on.push_back(turns[i]);
      theirs.push_back(&completions[i]);
    }
    if (going_on.empty()) break;
    runner_.advance(going_on);
    for (std::size_t i = 0; i < going_on.size(); ++i) {
      try {
        runner_.choose(*going_on[i], i);
      } catch (const std::logic_error&) {  // of this one's logits; a device's errors are no such
        theirs[i]->failure = std::current_exception();
        going_on[i]->done = true;
      }
    }
  }
  for (std::size_t i = 0; i < turns.size(); ++i)
    if (!completions[i].failure) completions[i].answer = std::move(turns[i]->answer);
  return completions;
}

}  // namespace vigil::stream
