#include "fleet/asks/asks_actor.h"

#include <chrono>
#include <utility>
#include <variant>

#include "actors/messages/log_fields.h"
#include "actors/messages/shell.h"

namespace vigil::fleet {
namespace {

// How long a request waits to be taken up, at most.
constexpr std::chrono::milliseconds kAsksTick{50};

}  // namespace

void asks_state::tick() {
  deps->server->serve();
  for (const cluster::GivenUpAsk& each : deps->server->take_given_up())
    if (book->give_up(each)) self->send(deps->answers, actors::forget_atom_v, each.ticket);
  for (const cluster::AskedRequest& asked : deps->server->take_requests()) {
    auto taken = book->take(asked);
    if (auto* refusal = std::get_if<cluster::AskRefusal>(&taken)) {
      deps->server->reply(asked.ticket, std::move(*refusal));
    } else {
      self->send(deps->answers, std::get<actors::PastRequestPtr>(std::move(taken)));
    }
  }
  log();
  count();
  self->delayed_send(self, kAsksTick, actors::tick_atom_v);
}

void asks_state::hear(const actors::PastReply& word) {
  if (auto reply = book->hear(word)) deps->server->reply(word.ticket, *std::move(reply));
  log();
  count();
}

void asks_state::lose_answers() {
  for (const cluster::AskTicket ticket : book->close())
    deps->server->reply(ticket, AskBook::nobody_answers());
  deps->logger.error("asks: who answers about the past has ended: no question is answered any more");
  log();
}

void asks_state::end() {
  // Their connections end with the socket, which tells them.
  for (const cluster::AskTicket ticket : book->close())
    self->send(deps->answers, actors::forget_atom_v, ticket);
  log();
  deps->server.reset();
  self->quit();
}

void asks_state::log() {
  for (const AskLine& line : book->take_lines()) {
    const actors::LogFields about(line.fields);
    // What does not come back is told where warnings alone are.
    deps->logger.log(line.is_erasure ? spdlog::level::warn : spdlog::level::info, "asks: {}", line.text);
  }
}

void asks_state::count() {
  const AskBook::Counts counts = book->take_counts();
  series->busy(counts.busy + deps->server->take_refused_questions());
  series->too_late(counts.too_late);
}

asks_actor::behavior_type asks(asks_actor::stateful_pointer<asks_state> self, AsksDeps deps) {
  actors::set_handlers(self, deps.logger);
  asks_state& state = self->state;
  state.book.emplace(deps.book, deps.clock);
  state.series.emplace(deps.metrics);
  state.deps.emplace(std::move(deps));
  self->set_down_handler([self](const caf::down_msg& down) {
    if (down.source == self->state.deps->answers.address()) self->state.lose_answers();
  });
  self->monitor(state.deps->answers);
  self->send(self, actors::tick_atom_v);
  return {
      [self](const actors::PastReplyPtr& word) { self->state.hear(*word); },
      [self](actors::tick_atom) { self->state.tick(); },
      [self](actors::stop_atom) { self->state.end(); },
  };
}

}  // namespace vigil::fleet
