// How a node finds those with whom it has work: their docks, the links to their stages, and where their bulk
// comes from.
#include "actors/messages/shell.h"
#include "fleet/link/link_actor.h"
#include "fleet/node/node_actor.h"
#include "fleet/node/node_patience.h"

namespace vigil::fleet {

void node_state::list_bulk_peers() {
  if (deps->ways.bulk == nullptr) return;
  for (const cluster::NodeRecord& node : bulk_peers.follow(desk->known()))
    deps->ways.resolve(node.bulk, [way = *loop, this, run = BulkPeerBook::Run(node.name, node.incarnation)](
                                      std::vector<cluster::PeerAddress> found) mutable {
      way.post([this, run = std::move(run), found = std::move(found)] {
        if (bulk_peers.resolved(run, found)) list_bulk_peers();
      });
    });
  for (const cluster::BulkRefusal& each : bulk_peers.news(deps->ways.bulk->set_peers(bulk_peers.peers())))
    deps->logger.error("node: no bulk way to node {}: {}", each.peer, each.why);
}

void node_state::link_up() {
  follow_gateways();
  if (!member || has_stopped) return;
  for (const std::string& node : std::set(ways_wanted))
    if (linking.insert("way " + node).second)
      find_dock(node, [this, node](const dock_actor& there) {
        linking.erase("way " + node);
        if (there && ways_wanted.erase(node) > 0)
          self->send(deps->dock, DockWay{node, there, send_to(node, there), open_ways.contains(node)});
      });
  if (!has_stages) return;
  tell_texts();
  for (const auto& nodes : computing_nodes(plan->own())) {
    const std::string vision = nodes.first, stream = nodes.second, device = device_of(vision, stream);
    if (links.contains(device) || !linking.insert(device).second) continue;
    find_dock(vision, [=, this](const dock_actor& encodes) {
      find_dock(encodes ? stream : std::string(), [=, this](const dock_actor& has_streams) {
        linking.erase(device);
        if (has_streams) make_link({member->record().name, vision, stream}, encodes, has_streams);
      });
    });
  }
}

void node_state::find_dock(const std::string& node, const std::function<void(const dock_actor&)>& found) {
  if (node == member->record().name) return found(deps->dock);
  const auto greeter = greeters.find(node);
  if (greeter == greeters.end() || !desk->knows(node)) return found(dock_actor());
  self->request(greeter->second, kGreetingPatience, dock_atom_v)
      .then(
          [found](const caf::strong_actor_ptr& there) {
            found(there ? caf::actor_cast<dock_actor>(there) : dock_actor());
          },
          [found](const caf::error&) { found(dock_actor()); });
}

void node_state::make_link(const Passage& passage, const dock_actor& vision, const dock_actor& stream) {
  if (has_stopped) return;
  const link_actor made = self->spawn<caf::monitored>(
      link,
      LinkDeps{passage.owner, passage.vision, passage.stream, send_to(passage.vision, vision), deps->group,
               deps->clock, deps->metrics, deps->logger, node_actor(self), turns},
      vision, stream, stages.router, stages.alerts, actors::device_listener_actor(deps->supervisor));
  links[device_of(passage.vision, passage.stream)] = made;
  if (passage.vision == passage.owner || open_ways.contains(passage.vision))
    self->send(made, BulkNews{passage.vision, BulkNews::What::opened});
}

void node_state::hear(const BulkNews& news) {
  if (news.direction == cluster::BulkDirection::outgoing) {
    if (news.what == BulkNews::What::opened) open_ways.insert(news.node);
    if (news.what == BulkNews::What::ended) open_ways.erase(news.node);
    for (const auto& [device, link] : links)
      if (device == news.node || device.starts_with(news.node + kBetweenStages)) self->send(link, news);
  }
  if (deps->dock) self->send(deps->dock, news);
}

}  // namespace vigil::fleet
