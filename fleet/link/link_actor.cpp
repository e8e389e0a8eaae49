#include "fleet/link/link_actor.h"

#include <utility>

#include "actors/messages/shell.h"

namespace vigil::fleet {
namespace {

using actors::DeviceReport;
using actors::DeviceState;

/// How long the dock may take to answer, and until it is asked again.
constexpr std::chrono::seconds kLinkPatience{5};
constexpr std::chrono::milliseconds kLinkAgain{500};

}  // namespace

void link_state::attach() {
  if (!desk->wants_attach() || std::exchange(asking, true)) return;
  const auto done = [this](bool may) {
    asking = false;
    if (may) {
      for (const auto& [camera, place] : texts) self->send(stream, place);
      return tell(desk->attached());
    }
    self->delayed_send(self, kLinkAgain, actors::tick_atom_v);
  };
  if (stream == vision) return attach_to(vision, done);
  // Whoever hears the answers first, so that there is somebody.
  attach_to(stream, [this, done](bool may) {
    if (!may) return done(false);
    attach_to(vision, done);
  });
}

void link_state::attach_to(const dock_actor& dock, const std::function<void(bool)>& done) {
  self->request(dock, kLinkPatience, attach_atom_v, deps->node, deps->vision, deps->stream)
      .then([done](bool may) { done(may); }, [done](const caf::error&) { done(false); });
}

void link_state::tell(const std::optional<LinkDesk::Change>& change) {
  if (!change) return;
  if (!change->is_up) {
    deps->logger.warn("link: {} cannot be reached: {}", device, change->reason);
    if (deps->turns) self->send<caf::message_priority::high>(deps->turns, detach_atom_v, device);
  } else if (deps->turns) {
    self->send<caf::message_priority::high>(deps->turns, attach_atom_v, device);
  }
  self->send(listener,
             DeviceReport{device, change->is_up ? DeviceState::up : DeviceState::restarting, change->reason,
                          change->is_up ? actors::vision_actor(self) : actors::vision_actor()});
}

void link_state::hear(const BulkNews& news) {
  if (news.direction != cluster::BulkDirection::outgoing) return;
  switch (news.what) {
    case BulkNews::What::opened:
      tell(desk->bulk_opened());
      return attach();
    case BulkNews::What::ended:
      return tell(desk->bulk_ended("the way for its pixels ended: " + news.reason));
    case BulkNews::What::room:
      desk->resume();
      tell_dropped();
  }
}

void link_state::lost(const std::string& reason) {
  tell(desk->bulk_ended(reason));
  self->send(listener, DeviceReport{device, DeviceState::lost, reason, actors::vision_actor()});
  self->quit();
}

void link_state::send(const LinkFrame& frame) {
  const auto change = desk->send(frame);
  tell_dropped();
  tell(change);
  if (change) attach();
}

void link_state::tell_dropped() {
  for (const LinkDesk::Dropped& dropped : desk->take_dropped()) {
    deps->metrics.frames_dropped(dropped.ack.camera, dropped.ack.reason, dropped.frames);
    acknowledge(dropped.ack);
  }
}

void link_state::acknowledge(const actors::PatchAck& ack) {
  self->send(router, ack);
}

void link_state::answer(const actors::WindowForm& form) {
  // What came over a link that broke meanwhile is as good.
  const actors::WindowAnswersPtr window = actors::answers_of(form, book, deps->clock);
  if (!window) {
    deps->logger.error("link: ignored answers about camera {}, whose settings it does not know",
                       form.watch.camera);
    return;
  }
  book.refer(form.watch);
  if (deps->turns) {
    self->send<caf::message_priority::high>(deps->turns, device, window);
  } else {
    self->send<caf::message_priority::high>(alerts, window);
  }
}

void link_state::over(const std::string& camera) {
  // Its episodes go on with the answers of another.
  if (moved.erase(camera) > 0) return forget(camera);
  // Given up there, while this node was away.
  if (ending.erase(camera) == 0) return;
  if (deps->turns) {
    self->send<caf::message_priority::high>(deps->turns, actors::end_atom_v, device, camera);
  } else {
    self->send<caf::message_priority::high>(alerts, actors::end_atom_v, camera);
  }
  book.forget(camera);
  forget(camera);
}

void link_state::forget(const std::string& camera) {
  generations.erase(camera);
  refused.erase(camera);
  // It may be on its way back, by another fence.
  const auto place = texts.find(camera);
  const actors::WatchPtr watch = book.newest(camera);
  if (place != texts.end() && (watch == nullptr || place->second.fence <= actors::fence_of(watch->version)))
    texts.erase(place);
}

void link_state::join_again(const std::string& camera) {
  const auto known = refused.find(camera);
  const auto generation = generations.find(camera);
  const actors::WatchPtr watch = book.newest(camera);
  if (known == refused.end() || generation == generations.end() || watch == nullptr ||
      actors::fence_of(watch->version) <= known->second)
    return;
  refused.erase(known);
  send(JoinFrame{*watch, generation->second, deps->stream});
}

link_actor::behavior_type link(link_actor::stateful_pointer<link_state> self, LinkDeps deps,
                               dock_actor vision, dock_actor stream, actors::router_actor router,
                               actors::alerts_actor alerts, actors::device_listener_actor listener) {
  actors::set_handlers(self, deps.logger);
  link_state& state = self->state;
  state.desk.emplace(deps.send);
  state.device = device_of(deps.vision, deps.stream);
  state.vision = std::move(vision);
  state.stream = std::move(stream);
  state.router = std::move(router);
  state.alerts = std::move(alerts);
  state.listener = std::move(listener);
  state.deps.emplace(std::move(deps));
  self->monitor(state.vision);
  if (state.stream != state.vision) self->monitor(state.stream);
  self->set_down_handler([self](const caf::down_msg&) { self->state.lost("the node is gone"); });
  self->send(self, actors::tick_atom_v);
  return {
      [self](join_atom, const actors::WatchPtr& watch, std::uint32_t generation) {
        self->state.book.put(watch);
        self->state.generations[watch->name] = generation;
        self->state.refused.erase(watch->name);
        self->state.moved.erase(watch->name);
        self->state.ending.erase(watch->name);
        self->state.send(JoinFrame{*watch, generation, self->state.deps->stream});
      },
      [self](const actors::WatchPtr& watch) {
        if (!self->state.book.put(watch)) return;
        if (self->state.refused.contains(watch->name)) return self->state.join_again(watch->name);
        self->state.send(SettingsFrame{*watch});
      },
      [self](const actors::FramePatchPtr& patch) {
        const LinkDeps& own = *self->state.deps;
        self->state.send(pack(*patch, own.group, own.clock));
      },
      [self](end_atom, const std::string& camera) {
        self->state.ending.insert(camera);
        self->state.send(EndFrame{camera, self->state.deps->stream});
      },
      // Windows are as many as the dock has let the device answer.
      [](grant_atom, std::uint32_t) {},
      [self](const actors::Explain& request) { self->send(self->state.stream, request); },
      [self](const actors::Done& done) { self->send(self->state.stream, done); },
      // Texts are lent there, and not here.
      [](const actors::Returned&) {},
      [self](const GuestRoom& room) {
        self->send(self->state.router, actors::grant_atom_v, room.camera, room.patches);
      },
      [self](const actors::PatchAck& ack) { self->state.acknowledge(ack); },
      [self](const GuestRefused& refused) {
        // So it is with every camera that is handed over.
        self->state.deps->logger.info("link: {} does not serve camera {}: {}", self->state.device,
                                      refused.camera, refused.reason);
        if (self->state.deps->owner)
          self->send(self->state.deps->owner, fence_atom_v, refused.camera, refused.fence);
        if (!self->state.generations.contains(refused.camera)) return;
        self->state.refused[refused.camera] = refused.fence;
        // Its new fence may have gone there as settings, before this came.
        self->state.join_again(refused.camera);
      },
      [self](const actors::WindowForm& form) { self->state.answer(form); },
      [self](const actors::Explanation& text) {
        self->send<caf::message_priority::high>(self->state.alerts, text);
      },
      [self](over_atom, const std::string& camera) { self->state.over(camera); },
      [self](const BulkNews& news) { self->state.hear(news); },
      [self](const TextsAt& place) {
        self->state.texts[place.camera] = place;
        self->send(self->state.stream, place);
      },
      [self](moved_atom, const std::string& camera, bool stream_stays) {
        self->state.moved.insert(camera);
        if (stream_stays) self->state.send(MovedFrame{camera, self->state.deps->stream});
        self->state.send(EndFrame{camera, self->state.deps->stream});
      },
      [self](detach_atom, const std::string& reason) {
        self->state.tell(self->state.desk->detached(reason));
        self->state.attach();
      },
      [self](tick_atom) { self->state.attach(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::fleet
