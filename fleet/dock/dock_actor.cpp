#include "fleet/dock/dock_actor.h"

#include <utility>
#include <variant>

#include "actors/device/device_actor.h"
#include "actors/messages/shell.h"
#include "actors/router/router_actor.h"
#include "fleet/dock/guest_actor.h"

namespace vigil::fleet {
namespace {

/// Windows that may be answered and not passed on yet.
constexpr std::uint32_t kWindowsUnderWay = 64;
constexpr std::chrono::milliseconds kDockTick{500};

}  // namespace

void dock_state::start() {
  router = self->spawn<caf::monitored>(actors::router, actors::RouterDeps{deps->metrics, deps->logger});
  std::vector<std::string> names;
  for (actors::DeviceSlot& slot : deps->devices) {
    names.push_back(slot.name);
    deps->board.device(slot.name, actors::DeviceState::restarting, "it starts");
    devices.push_back(
        actors::spawn(self, deps->threads, actors::device,
                      actors::DeviceDeps{std::move(slot), deps->clock, deps->metrics, deps->board,
                                         deps->logger, deps->threads, deps->observer},
                      actors::answers_actor(self), actors::device_listener_actor(self)));
  }
  routes.emplace(names);
  self->send(self, actors::tick_atom_v);
}

void dock_state::report(const actors::DeviceReport& report) {
  deps->metrics.device_state(report.device, report.state);
  deps->board.device(report.device, report.state, report.reason);
  if (report.state == actors::DeviceState::up) {
    visions[report.device] = report.vision;
  } else {
    visions.erase(report.device);
  }
  const actors::Routes::Decisions decisions = routes->enter(report.device, report.state, report.reason);
  for (const actors::Routes::Decision& decision : decisions.cameras) route(decision);
  if (decisions.hopeless.empty()) return;
  // A new process is what brings a device back: this node ends, and its streams go to others.
  deps->logger.error("dock: {}", decisions.hopeless);
  stop();
}

void dock_state::route(const actors::Routes::Decision& decision) {
  if (decision.device.empty()) {
    self->send(router, actors::Route{decision.camera, {}, {}});
    return;
  }
  self->send(router, actors::Route{decision.camera, decision.device, visions.at(decision.device)});
}

void dock_state::attach(const std::string& node, link_actor link) {
  // What the one before sent is lost; its cameras join again.
  book.leave(node, deps->clock.now());
  self->monitor(link);
  links[node] = std::move(link);
}

void dock_state::take(const BulkArrival& arrival) {
  std::optional<LinkFrame> frame = read(arrival.received.message);
  if (!frame) {
    deps->logger.error("dock: ignored bytes of node {} that make no sense", arrival.node);
    return;
  }
  std::visit([&](auto& each) { take(arrival.node, each); }, *frame);
}

void dock_state::take(const std::string& node, JoinFrame& frame) {
  const auto link = links.find(node);
  // Of a link that has not attached (again), everything is to come anew.
  if (link == links.end()) return;
  const std::string camera = frame.watch.name;
  const DockBook::Joined joined = book.join(node, frame.watch, frame.generation);
  if (!joined.admitted)
    return refuse(node, camera, joined.fence,
                  "its owner is another node by now (fence " + std::to_string(joined.fence) + ')');
  if (!joined.before.empty())
    refuse(joined.before, camera, joined.fence, "its owner is node " + node + " now");
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  deps->metrics.camera_added(*watch);
  guest_actor& here = guests[camera];
  if (here) self->send(here, actors::stop_atom_v);
  here = self->spawn(guest, GuestDeps{watch, frame.generation, joined.generation, deps->logger}, link->second,
                     router);
  if (const auto decision = routes->start(camera)) route(*decision);
}

void dock_state::take(const std::string& node, SettingsFrame& frame) {
  if (book.owner(node, frame.watch.ref()) == nullptr) return;
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  deps->metrics.camera_added(*watch);
  self->send(router, watch);
}

void dock_state::take(const std::string& node, PackedPatch& patch) {
  const actors::PatchForm& form = patch.form;
  const DockBook::Guest* const guest = book.owner(node, form.watch);
  const auto link = links.find(node);
  if (link == links.end()) return;
  const actors::PatchAck lost{form.watch.camera, form.generation, form.sequence, actors::PatchOutcome::lost,
                              ""};
  if (guest == nullptr || guest->own_generation != form.generation) {
    actors::PatchAck fenced = lost;
    fenced.reason = "fenced";
    self->send(link->second, fenced);
    return;
  }
  patch.form.generation = guest->generation;
  if (const actors::FramePatchPtr whole = unpack(patch, deps->group, deps->clock)) {
    self->send(router, whole);
    return;
  }
  deps->logger.error("dock: ignored a patch of camera {} of node {} whose pixels do not fit",
                     form.watch.camera, node);
  actors::PatchAck damaged = lost;
  damaged.outcome = actors::PatchOutcome::dropped;
  damaged.reason = "damaged";
  self->send(link->second, damaged);
}

void dock_state::take(const std::string& node, EndFrame& frame) {
  const DockBook::Guest* const guest = book.find(frame.camera);
  if (guest != nullptr && guest->node == node) {
    self->send(router, actors::end_atom_v, frame.camera);
  } else if (const auto link = links.find(node); link != links.end()) {
    // Nothing of its own is here.
    self->send<caf::message_priority::high>(link->second, over_atom_v, frame.camera);
  }
}

void dock_state::refuse(const std::string& node, const std::string& camera, std::uint64_t fence,
                        const std::string& reason) {
  if (const auto link = links.find(node); link != links.end())
    self->send(link->second, GuestRefused{camera, fence, reason});
}

void dock_state::answer(const actors::WindowAnswersPtr& window, const actors::stream_actor& source) {
  self->send(source, actors::grant_atom_v, std::uint32_t{1});
  const std::string& camera = window->watch->name;
  const DockBook::Guest* const guest = book.find(camera);
  const bool is_owners = guest != nullptr && guest->fence == actors::fence_of(window->watch->version);
  const auto link = is_owners ? links.find(guest->node) : links.end();
  // Of an owner before this one, or of one that is away: nobody is there to hear it.
  if (link == links.end()) {
    deps->metrics.windows("undelivered", 1);
    if (window->id) self->send(source, actors::Done{*window->id});
    return;
  }
  sources[camera] = source;
  self->send<caf::message_priority::high>(link->second, actors::form_of(*window, deps->clock));
}

void dock_state::explain(const actors::Explain& request, link_actor link) {
  const auto source = sources.find(request.window.camera);
  if (source == sources.end()) return;
  actors::Explain own = request;
  own.ticket = ++last_ticket;
  asked[own.ticket] = {std::move(link), request.ticket, deps->clock.now()};
  self->send(source->second, own);
}

void dock_state::explained(const actors::Explanation& text) {
  const auto found = asked.extract(text.ticket);
  if (!found) return;
  actors::Explanation own = text;
  own.ticket = found.mapped().ticket;
  self->send<caf::message_priority::high>(found.mapped().link, own);
}

void dock_state::done(const actors::Done& done) {
  if (const auto source = sources.find(done.window.camera); source != sources.end())
    self->send(source->second, done);
}

void dock_state::ended(const std::string& camera) {
  const DockBook::Guest* const guest = book.find(camera);
  if (guest == nullptr) return;
  if (const auto link = links.find(guest->node); link != links.end())
    self->send<caf::message_priority::high>(link->second, over_atom_v, camera);
  book.end(camera);
  routes->remove(camera);
  sources.erase(camera);
  if (const auto here = guests.extract(camera)) self->send(here.mapped(), actors::stop_atom_v);
  self->send(router, actors::forget_atom_v, camera);
  deps->metrics.camera_removed(camera);
}

void dock_state::link_lost(const caf::actor_addr& address) {
  for (auto entry = links.begin(); entry != links.end(); ++entry) {
    if (entry->second.address() != address) continue;
    book.leave(entry->first, deps->clock.now());
    links.erase(entry);
    return;
  }
}

void dock_state::tick() {
  const auto now = deps->clock.now();
  deps->board.beat("dock", std::chrono::seconds(10));
  for (const std::string& camera : book.overdue(now, deps->patience))
    self->send(router, actors::end_atom_v, camera);
  std::erase_if(asked,
                [&](const auto& entry) { return entry.second.at + 2 * actors::kExplanationPatience < now; });
  self->delayed_send(self, kDockTick, actors::tick_atom_v);
}

void dock_state::stop() {
  for (const auto& [camera, here] : guests) self->send(here, actors::stop_atom_v);
  self->send(router, actors::stop_atom_v);
  for (const actors::device_actor& device : devices) self->send(device, actors::stop_atom_v);
  self->quit();
}

dock_actor::behavior_type dock(dock_actor::stateful_pointer<dock_state> self, DockDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->set_down_handler([self](const caf::down_msg& message) { self->state.link_lost(message.source); });
  self->state.deps.emplace(std::move(deps));
  self->state.start();
  return {
      [self](join_atom) {
        self->send(caf::actor_cast<actors::stream_actor>(self->current_sender()), actors::grant_atom_v,
                   kWindowsUnderWay);
      },
      [self](const actors::WindowAnswersPtr& window) {
        self->state.answer(window, caf::actor_cast<actors::stream_actor>(self->current_sender()));
      },
      [self](const actors::Explanation& text) { self->state.explained(text); },
      [self](end_atom, const std::string& camera) { self->state.ended(camera); },
      [self](const actors::DeviceReport& report) { self->state.report(report); },
      [self](attach_atom, const std::string& node) {
        self->state.attach(node, caf::actor_cast<link_actor>(self->current_sender()));
        return true;
      },
      [self](const actors::Explain& request) {
        self->state.explain(request, caf::actor_cast<link_actor>(self->current_sender()));
      },
      [self](const actors::Done& done) { self->state.done(done); },
      [self](const BulkArrivalPtr& arrival) { self->state.take(*arrival); },
      [self](const BulkNews& news) {
        if (news.direction == cluster::BulkDirection::incoming && news.what == BulkNews::What::ended)
          self->state.book.leave(news.node, self->state.deps->clock.now());
      },
      [self](tick_atom) { self->state.tick(); },
      [self](fence_atom) { return self->state.book.highest_fence(); },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::fleet
