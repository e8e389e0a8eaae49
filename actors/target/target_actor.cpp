#include "actors/target/target_actor.h"

#include <chrono>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "actors/messages/lent_text.h"
#include "actors/messages/shell.h"
#include "engine/run/vision_encoder.h"

namespace vigil::actors {

void target_state::take(const LentTextPtr& text) {
  lender = caf::actor_cast<caf::actor_addr>(self->current_sender());
  const stream::WindowId window = text->loan.window;
  const std::size_t rule = text->loan.question;
  explanations.ask(window, rule, text->ticket);
  try {
    deps->desk->adopt(std::move(text->loan));
  } catch (const run::DeviceLost&) {
    throw;
  } catch (const std::exception&) {
    tell({window, rule, {}, std::current_exception(), std::nullopt});
  }
  settle();
}

void target_state::tell(const stream::DeskNews::Told& text) {
  const Explanations::Told told = explanations.tell(text, deps->clock.now());
  deps->metrics.generated(told.seconds, told.tokens, told.later);
  self->send<caf::message_priority::high>(answers, told.explanation);
  if (const auto stream = caf::actor_cast<stream_actor>(lender))
    self->send(stream, Returned{text.window, static_cast<std::uint32_t>(text.question)});
}

void target_state::work() {
  scheduled = false;
  if (executor->next() == nullptr) return;
  beat->begins(WorkBeat::Work::rows, static_cast<std::size_t>(deps->desk->most_rows()));
  const auto begin = deps->clock.now();
  executor->run_one();
  const auto end = deps->clock.now();
  beat->took(WorkBeat::Work::rows, std::chrono::duration<double>(end - begin).count(),
             static_cast<std::size_t>(deps->desk->last_rows()));
  if (deps->observer.piece) deps->observer.piece("target", {begin, end});
  settle();
}

void target_state::settle() {
  const stream::DeskNews news = deps->desk->take_news();
  for (const stream::DeskNews::Told& each : news.told) tell(each);
  if (news.pressed)
    deps->logger.warn("target: passes of at most {} rows from now on: {}", news.pressed->rows,
                      news.pressed->reason);
  deps->metrics.requests(RequestKind::explanation, deps->device, deps->desk->texts(), 0);
  schedule();
}

void target_state::tick() {
  beat->idle();
  deps->desk->expire(deps->clock.now());
  settle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
}

void target_state::schedule() {
  if (scheduled || executor->next() == nullptr) return;
  scheduled = true;
  self->send(self, work_atom_v);
}

target_actor::behavior_type target(target_actor::stateful_pointer<target_state> self, TargetDeps deps,
                                   answers_actor answers) {
  set_handlers(self, deps.logger);
  target_state& state = self->state;
  state.answers = std::move(answers);
  state.executor.emplace(deps.clock, std::vector<run::WorkSource*>{deps.desk.get()});
  state.beat.emplace(deps.board, deps.device + " target");
  state.deps.emplace(std::move(deps));
  self->send(self, tick_atom_v);
  return {
      [self](const LentTextPtr& text) { self->state.take(text); },
      [self](work_atom) { self->state.work(); },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
