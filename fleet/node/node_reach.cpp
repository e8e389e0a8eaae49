// The part of the node's shell that finds out, and tells, whether there is a way to others, and whether it is
// the only one of its name.
#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "fleet/node/node_actor.h"

namespace vigil::fleet {
namespace {

constexpr std::chrono::seconds kAnswerPatience{5};
/// Whoever is asked has to find a way of its own, and to be answered by it.
constexpr std::chrono::seconds kReachPatience{15};
/// Others are told of this node after so long, whether somebody has answered it or not.
constexpr base::Duration kEntering{1000};
constexpr std::size_t kAskedWhileEntering = 3;
/// How long a process at this one's own address may take to say who it is.
constexpr std::chrono::seconds kNamesakePatience{2};

}  // namespace

bool node_state::is_counterpart(const cluster::NodeRecord& node) const {
  return node.name != deps->record.name && NodeDesk::are_counterparts(deps->record.roles, node.roles);
}

void node_state::enter() {
  desk->see(member->nodes(), member->record());
  const auto some = NodeDesk::counterparts(member->nodes(), deps->record, kAskedWhileEntering);
  if (some.empty()) return entered(false);
  loop->after(kEntering, [this] {
    if (entering) entered(true);
  });
  std::map<std::string, greeter_actor> known;
  for (const auto& [key, node] : member->nodes())
    if (const auto other = met.find({key, node.incarnation});
        other != met.end() && is_counterpart(node) && known.size() < kAskedWhileEntering)
      known.emplace(key, other->second);
  entering = known.empty() ? some.size() : known.size();
  for (const auto& [node, greeter] : known) ask_whether_reached(node, greeter);
  if (!known.empty()) return;
  for (const cluster::NodeRecord& node : some)
    deps->ways.find(node.control, [way = *loop, this,
                                   node](std::variant<greeter_actor, std::string> found) mutable {
      way.post([this, node, found = std::move(found)] {
        if (const auto* reason = std::get_if<std::string>(&found)) return heard_while_entering(node, *reason);
        const greeter_actor& greeter = std::get<greeter_actor>(found);
        const auto sent = deps->clock.now();
        self->request(greeter, kAnswerPatience, greet_atom_v, print(greeting()))
            .then(
                [=, this](const std::string& text) {
                  const auto way_there = std::chrono::duration_cast<base::Duration>(deps->clock.now() - sent);
                  const std::string refusal = why_not(text, way_there);
                  if (refusal.empty()) met[{node.name, node.incarnation}] = greeter;
                  heard_while_entering(node, refusal);
                },
                [=, this](const caf::error&) { heard_while_entering(node, "it does not answer"); });
      });
    });
}

void node_state::heard_while_entering(const cluster::NodeRecord& node, const std::string& refusal) {
  if (!refusal.empty()) failed(node, refusal);
  if (!entering) return take_met();
  if (refusal.empty()) return ask_whether_reached(node.name, met.at({node.name, node.incarnation}));
  if (--*entering == 0) entered(true);
}

void node_state::entered(bool has_counterparts) {
  entering.reset();
  if (has_counterparts && !ways_in->is_reached()) {
    const bool has_way = std::ranges::any_of(member->nodes(), [this](const auto& node) {
      return is_counterpart(node.second) && met.contains({node.first, node.second.incarnation});
    });
    if (!has_way) {
      deps->logger.warn(
          "node: has found no way to any node with which it deals: it is given nothing until it has, "
          "as long as others can have it");
      ways_out->came_in_vain();
    }
    ways_in->came_in_vain(/*is_told=*/!has_way);
    member->alter([](cluster::NodeRecord& record) { record.apart = true; });
  }
  for (const std::string& line : ways_in->take_lines()) deps->logger.warn("node: {}", line);
  member->enter();
}

caf::result<std::string> node_state::answer_in_full(const std::string& text) {
  std::string own = answer(text);
  if (!cluster::parse_answer(own).greeting) return own;
  const cluster::Greeting theirs = cluster::parse_greeting(text);
  if (!theirs.asks_whether_reached) return own;
  auto promise = self->make_response_promise<std::string>();
  come_back_to(theirs.node, [this, promise](const std::string& why_not) mutable {
    promise.deliver(print(cluster::GreetingAnswer{greeting(), {}, why_not}));
  });
  return promise;
}

void node_state::come_back_to(const cluster::NodeRecord& node, std::function<void(const std::string&)> done) {
  deps->ways.find(node.control, [way = *loop, this, node, done = std::move(done)](
                                    std::variant<greeter_actor, std::string> found) mutable {
    way.post([this, node, done, found = std::move(found)] {
      if (const auto* reason = std::get_if<std::string>(&found)) return done(*reason);
      self->request(std::get<greeter_actor>(found), kAnswerPatience, greet_atom_v, print(greeting()))
          .then(
              [node, done](const std::string& text) {
                try {
                  const cluster::GreetingAnswer heard = cluster::parse_answer(text);
                  if (!heard.greeting) return done("whoever is there refuses: " + heard.refusal);
                  const cluster::NodeRecord& there = heard.greeting->node;
                  done(there.name == node.name && there.incarnation == node.incarnation
                           ? ""
                           : "another node answers there: " + there.name);
                } catch (const std::exception& error) {
                  done(error.what());
                }
              },
              [done](const caf::error&) { done("whoever is there does not answer"); });
    });
  });
}

void node_state::ask_whether_reached() {
  if (ways_in->is_reached()) return;
  std::set<std::string> known;
  for (const auto& [node, greeter] : greeters)
    if (const auto record = member->nodes().find(node);
        record != member->nodes().end() && is_counterpart(record->second) && desk->reaches(node))
      known.insert(node);
  for (const std::string& node : ways_in->take_asks(known)) ask_whether_reached(node, greeters.at(node));
}

void node_state::ask_whether_reached(const std::string& node, const greeter_actor& greeter) {
  ways_in->ask(node);
  cluster::Greeting asking = greeting();
  asking.asks_whether_reached = true;
  self->request(greeter, kReachPatience, greet_atom_v, print(asking))
      .then(
          [this, node](const std::string& text) {
            try {
              const cluster::GreetingAnswer heard = cluster::parse_answer(text);
              if (!heard.greeting) {
                ways_in->unheard(node);
              } else if (heard.not_reached) {
                ways_in->heard(node, *heard.not_reached);
              } else {
                ways_in->heard_nothing_of_it();
              }
            } catch (const std::exception&) {
              ways_in->unheard(node);
            }
            heard_whether_reached();
          },
          [this, node](const caf::error&) {
            ways_in->unheard(node);
            heard_whether_reached();
          });
}

void node_state::heard_whether_reached() {
  if (!entering) return look_at_ways();
  for (const std::string& line : ways_in->take_lines()) deps->logger.warn("node: {}", line);
  if (ways_in->is_reached() || --*entering == 0) entered(true);
}

void node_state::look_for_namesake() {
  const std::string own = cluster::text_of(deps->record.control);
  deps->ways.find(
      deps->record.control, [way = *loop, this, own](std::variant<greeter_actor, std::string> found) mutable {
        way.post([this, own, found = std::move(found)] {
          // Nobody is there: this node's own port is open, but not by that name, perhaps.
          const auto* const greeter = std::get_if<greeter_actor>(&found);
          if (greeter == nullptr) return member->take_name();
          self->request(*greeter, kNamesakePatience, greet_atom_v, print(greeting()))
              .then(
                  [this, own](const std::string& text) {
                    std::string refusal;
                    try {
                      const cluster::GreetingAnswer heard = cluster::parse_answer(text);
                      if (heard.greeting && heard.greeting->node.incarnation == deps->record.incarnation)
                        return member->take_name();
                      refusal = heard.refusal;
                    } catch (const std::exception& error) {
                      refusal = error.what();
                    }
                    expel("another node answers at " + own + ", this one's own address" +
                          (refusal.empty() ? "" : ": " + refusal));
                  },
                  [this](const caf::error&) { member->take_name(); });
        });
      });
}

void node_state::check(const cluster::NodeRecord& node) {
  const auto there = greeters.find(node.name);
  if (there == greeters.end() || !checking.insert(node.name).second) return;
  const auto sent = deps->clock.now();
  self->request(there->second, kAnswerPatience, greet_atom_v, print(greeting()))
      .then(
          [this, node, sent](const std::string& text) {
            checking.erase(node.name);
            const auto way = std::chrono::duration_cast<base::Duration>(deps->clock.now() - sent);
            const std::string why = why_not(text, way);
            if (why.empty() || cluster::is_about_clocks(why)) return checked(node, why);
            failed(node, why);
          },
          [this, node](const caf::error&) {
            checking.erase(node.name);
            checked(node, "it does not answer");
          });
}

void node_state::checked(const cluster::NodeRecord& node, const std::string& fault) {
  if (!desk->checked(node.name, node.incarnation, fault)) return;
  if (fault.empty()) {
    deps->logger.warn("node: node {} answers, and its clock fits", node.name);
  } else {
    deps->logger.error("node: node {}: {}", node.name, fault);
  }
}

void node_state::look_at_ways() {
  if (entering) return;
  ask_whether_reached();
  for (const cluster::NodeRecord& node : desk->take_checks()) check(node);
  WaysOut::Seen seen{.has_counterparts = desk->has_counterparts(),
                     .reaches_one = desk->reaches_a_counterpart(),
                     .is_clock_off = desk->is_clock_off()};
  const std::set<std::string> all = needed();
  for (const auto& [other, record] : member->nodes()) {
    const bool is_needed = all.contains(other);
    if (other == deps->record.name || (!is_needed && !record.roles.contains(cluster::NodeRole::gateway)))
      continue;
    const bool has_bulk = !is_needed || deps->ways.bulk == nullptr || open_ways.contains(other);
    seen.ways[other] = desk->reaches(other) && has_bulk;
  }
  for (const std::string& line : ways_out->see(seen)) deps->logger.warn("node: {}", line);
  for (const std::string& line : ways_in->take_lines()) deps->logger.warn("node: {}", line);
  desk->need(needed());
  // Also without a line: of a node that is gone nothing is told any more.
  member->alter([this](cluster::NodeRecord& own) {
    own.unreachable = ways_out->unreachable();
    own.apart = ways_out->apart() || ways_in->holds_back();
    own.clock_off = ways_out->clock_off();
  });
}

}  // namespace vigil::fleet
