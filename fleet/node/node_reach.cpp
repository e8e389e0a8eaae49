// The part of the node's shell that finds out, and tells, whether there is a way to others, and whether it is
// the only one of its name.
#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "fleet/node/node_actor.h"

namespace vigil::fleet {
namespace {

constexpr std::chrono::seconds kAnswerPatience{5};
/// Others are told of this node after so long, whether somebody has answered it or not.
constexpr base::Duration kEntering{1000};
constexpr std::size_t kAskedWhileEntering = 3;
/// How long a process at this one's own address may take to say who it is.
constexpr std::chrono::seconds kNamesakePatience{2};

}  // namespace

void node_state::enter() {
  desk->see(member->nodes(), member->record());
  const auto some = NodeDesk::counterparts(member->nodes(), deps->record, kAskedWhileEntering);
  const bool has_met_one = std::ranges::any_of(member->nodes(), [this](const auto& node) {
    return node.first != deps->record.name && met.contains({node.first, node.second.incarnation}) &&
           NodeDesk::are_counterparts(deps->record.roles, node.second.roles);
  });
  if (some.empty() || has_met_one) return entered(false);
  entering = some.size();
  loop->after(kEntering, [this] {
    if (entering) entered(true);
  });
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
  if (refusal.empty()) return entered(false);
  if (--*entering == 0) entered(true);
}

void node_state::entered(bool in_vain) {
  entering.reset();
  if (in_vain) {
    deps->logger.warn(
        "node: has found no way to any node with which it deals: it is given nothing until it has, "
        "as long as others can have it");
    reach->came_in_vain();
    member->alter([](cluster::NodeRecord& record) { record.apart = true; });
  }
  member->enter();
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
  if (there == greeters.end()) return;
  const auto sent = deps->clock.now();
  self->request(there->second, kAnswerPatience, greet_atom_v, print(greeting()))
      .then(
          [this, node, sent](const std::string& text) {
            const auto way = std::chrono::duration_cast<base::Duration>(deps->clock.now() - sent);
            const std::string why = why_not(text, way);
            if (why.empty() || cluster::is_about_clocks(why)) return checked(node, why);
            failed(node, why);
          },
          [this, node](const caf::error&) { checked(node, "it does not answer"); });
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
  for (const cluster::NodeRecord& node : desk->take_checks()) check(node);
  ReachBook::Seen seen{.has_counterparts = desk->has_counterparts(),
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
  for (const std::string& line : reach->see(seen)) deps->logger.warn("node: {}", line);
  desk->need(needed());
  // Also without a line: of a node that is gone nothing is told any more.
  member->alter([this](cluster::NodeRecord& own) {
    own.unreachable = reach->unreachable();
    own.apart = reach->apart();
    own.clock_off = reach->clock_off();
  });
}

}  // namespace vigil::fleet
