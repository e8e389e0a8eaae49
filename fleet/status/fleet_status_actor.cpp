#include "fleet/status/fleet_status_actor.h"

#include <exception>
#include <variant>

#include "actors/messages/shell.h"

namespace vigil::fleet {
namespace {

using cluster::RegistryRange;
using cluster::RegistryResult;

/// Different questions at once: whoever asks for more waits for nothing.
constexpr std::size_t kAtOnce = 8;

std::string within(base::Duration patience) {
  return " within " + base::format_duration(patience);
}

}  // namespace

bool fleet_status_state::is_fresh(base::Clock::TimePoint at) const {
  return deps->clock.now() - at < deps->cache;
}

void fleet_status_state::ask(const FleetQuery& query, Promise promise) {
  std::erase_if(told, [&](const auto& entry) { return !is_fresh(entry.second.second); });
  if (const auto reply = told.find(query); reply != told.end()) {
    promise.deliver(reply->second.first);
    return;
  }
  if (!asked.contains(query) && asked.size() >= kAtOnce) {
    promise.deliver(caf::make_error(caf::sec::runtime_error, std::string("too many ask at once")));
    return;
  }
  Asked& ask = asked[query];
  ask.waiting.push_back(std::move(promise));
  if (ask.waiting.size() > 1) return;
  self->request(deps->node, deps->patience, stand_atom_v)
      .then(
          [this, query](const NodeStandingPtr& standing) {
            asked.at(query).standing = standing;
            read_plans(query);
          },
          [this, query](const caf::error&) { fail(query, "this node does not say what it knows"); });
}

void fleet_status_state::read_plans(const FleetQuery& query) {
  const NodeStanding& standing = *asked.at(query).standing;
  const std::uint64_t reader = readers[query] = ++last_reader;
  if (!standing.registry_answers) return go_on(query, reader, "it did not answer when it was asked last");
  if (plans.at() && is_fresh(*plans.at())) return go_on(query, reader, "");
  self->delayed_send(self, deps->patience, Piece{[this, query, reader] {
                       go_on(query, reader, "it did not answer" + within(deps->patience));
                     }});
  if (std::exchange(is_reading, true)) return;
  deps->registry.range(keys->plans(), [weak = caf::actor_cast<caf::actor_addr>(self),
                                       this](RegistryResult<RegistryRange> result) {
    if (const auto there = caf::actor_cast<fleet_status_actor>(weak))
      caf::anon_send(there, Piece{[this, result = std::move(result)] { plans_came(result); }});
  });
}

void fleet_status_state::plans_came(const RegistryResult<RegistryRange>& result) {
  is_reading = false;
  std::string fault;
  if (const auto* failure = std::get_if<cluster::RegistryFailure>(&result)) {
    fault = failure->text;
  } else {
    plans.take(std::get<RegistryRange>(result), keys->plans(), deps->clock.now(),
               [this](const std::string& line) { deps->logger.warn("fleet: {}", line); });
  }
  for (const auto& [query, reader] : std::map(readers)) go_on(query, reader, fault);
}

void fleet_status_state::go_on(const FleetQuery& query, std::uint64_t reader, const std::string& fault) {
  const auto waits = readers.find(query);
  if (waits == readers.end() || waits->second != reader) return;
  readers.erase(waits);
  asked.at(query).registry_fault = fault;
  ask_nodes(query);
}

void fleet_status_state::ask_nodes(const FleetQuery& query) {
  Asked& ask = asked.at(query);
  const NodeStanding& standing = *ask.standing;
  ask.page = page_of(query, *plans.index(), standing.wanted);
  const auto questions = questions_of(standing, *plans.index(), ask.page, !ask.registry_fault.empty());
  // One more, so that nothing ends before all were asked.
  ask.nodes_left = questions.size() + 1;
  for (const auto& [node, question] : questions) {
    const auto way = standing.ways.find(node);
    const bool is_own = node == standing.record.name;
    if (!is_own && way == standing.ways.end()) {
      const auto trouble = standing.troubles.find(node);
      answered(query, node, std::nullopt,
               trouble == standing.troubles.end() ? "there is no way to it yet" : trouble->second);
      continue;
    }
    self->request(is_own ? greeter_actor(deps->node) : way->second, deps->patience, report_atom_v,
                  print(question))
        .then(
            [this, query, node = node](const std::string& text) {
              try {
                answered(query, node, parse_node_answer(text), "");
              } catch (const std::exception& error) {
                answered(query, node, std::nullopt, error.what());
              }
            },
            [this, query, node = node](const caf::error& error) {
              const bool has_ended = error == caf::sec::request_receiver_down;
              answered(query, node, std::nullopt,
                       has_ended ? "it has ended" : "it did not answer" + within(deps->patience));
            });
  }
  if (--ask.nodes_left == 0) compose(query);
}

void fleet_status_state::answered(const FleetQuery& query, const std::string& node,
                                  std::optional<NodeAnswer> answer, const std::string& fault) {
  Asked& ask = asked.at(query);
  const auto now = deps->clock.now();
  const auto known = std::pair(node, ask.standing->nodes.at(node).incarnation);
  if (answer) heard[known] = now;
  FleetPicture::Node& said = ask.nodes[node];
  said = {std::move(answer), fault, {}};
  if (const auto at = heard.find(known); at != heard.end())
    said.heard = std::chrono::duration_cast<base::Duration>(now - at->second);
  if (--ask.nodes_left == 0) compose(query);
}

void fleet_status_state::compose(const FleetQuery& query) {
  auto found = asked.extract(query);
  Asked& ask = found.mapped();
  FleetPicture picture{.standing = ask.standing,
                       .plan = plans.index(),
                       .plan_age = {},
                       .registry_fault = ask.registry_fault,
                       .nodes = std::move(ask.nodes)};
  if (plans.at())
    picture.plan_age = std::chrono::duration_cast<base::Duration>(deps->clock.now() - *plans.at());
  if (!ask.registry_fault.empty())
    picture.plan = std::make_shared<PlanIndex>(plan_told(*plans.plan(), picture.nodes));
  const auto& there = ask.standing->nodes;
  std::erase_if(heard, [&](const auto& entry) { return !there.contains(entry.first.first); });
  const FleetReplyPtr reply = std::make_shared<FleetReply>(
      FleetReply{query.camera.empty() || knows(picture, query.camera), print(picture, query, ask.page)});
  told[query] = {reply, deps->clock.now()};
  for (Promise& promise : ask.waiting) promise.deliver(reply);
}

void fleet_status_state::fail(const FleetQuery& query, const std::string& reason) {
  auto found = asked.extract(query);
  for (Promise& promise : found.mapped().waiting)
    promise.deliver(caf::make_error(caf::sec::runtime_error, reason));
}

void fleet_status_state::end() {
  // Whoever waits for what never comes would hold up the process's end.
  while (!asked.empty()) fail(FleetQuery(asked.begin()->first), "this node ends");
  readers.clear();
  self->quit();
}

fleet_status_actor::behavior_type fleet_status(fleet_status_actor::stateful_pointer<fleet_status_state> self,
                                               FleetStatusDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->monitor(deps.node);
  self->set_down_handler([self](const caf::down_msg&) { self->state.end(); });
  self->state.keys.emplace(deps.fleet);
  self->state.deps.emplace(std::move(deps));
  return {
      [self](report_atom, const FleetQuery& query) -> caf::result<FleetReplyPtr> {
        auto promise = self->make_response_promise<FleetReplyPtr>();
        self->state.ask(query, promise);
        return promise;
      },
      [](const Piece& piece) { piece.run(); },
      [self](stop_atom) { self->state.end(); },
  };
}

}  // namespace vigil::fleet
