#include "fleet/dock/dock_actor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include <caf/send.hpp>

#include "actors/device/device_actor.h"
#include "actors/messages/patience.h"
#include "actors/messages/shell.h"
#include "actors/router/router_actor.h"
#include "fleet/dock/guest_actor.h"

namespace vigil::fleet {
namespace {

constexpr std::chrono::milliseconds kDockTick{500};

}  // namespace

void dock_state::start() {
  // It would take every camera for one whose stages are elsewhere.
  if (deps->node.empty()) throw std::invalid_argument("a dock has to know its node's name");
  router = self->spawn<caf::monitored>(actors::router, actors::RouterDeps{deps->metrics, deps->logger});
  std::vector<std::string> names;
  for (actors::DeviceSlot& slot : deps->devices) {
    names.push_back(slot.name);
    has_tower = has_tower || slot.engine.encoder;
    has_language = has_language || slot.engine.desk;
    deps->board.device(slot.name, actors::DeviceState::restarting, "it starts");
    devices.push_back(actors::spawn(self, deps->threads, actors::device,
                                    actors::DeviceDeps{.slot = std::move(slot),
                                                       .clock = deps->clock,
                                                       .metrics = deps->metrics,
                                                       .board = deps->board,
                                                       .logger = deps->logger,
                                                       .threads = deps->threads,
                                                       .observer = deps->observer,
                                                       .elsewhere = actors::tokens_actor(dock_actor(self)),
                                                       .cache = deps->cache,
                                                       .seed = deps->seed},
                                    actors::answers_actor(self), actors::device_listener_actor(self)));
  }
  routes.emplace(names);
  arrivals.emplace(deps->clock);
  texts.emplace(deps->clock, deps->node);
  encodings.emplace(deps->node);
  self->send(self, actors::tick_atom_v);
}

void dock_state::report(const actors::DeviceReport& report) {
  deps->metrics.device_state(report.device, report.state);
  deps->board.device(report.device, report.state, report.reason);
  const bool is_up = report.state == actors::DeviceState::up;
  if (report.state == actors::DeviceState::lost) ++lost_devices;
  if (const auto before = visions.extract(report.device); before && !is_up) drop_lanes(before.mapped());
  languages.erase(report.device);
  if (report.vision) visions[report.device] = report.vision;
  if (report.tokens) languages[report.device] = report.tokens;
  if (!is_up && has_language) {
    streams.device_lost(report.device);
    detach_senders(report.device + " is down: " + report.reason);
  }
  const actors::Routes::Decisions decisions = routes->enter(report.device, report.state, report.reason);
  for (const actors::Routes::Decision& decision : decisions.cameras) route(decision);
  // What had ended on the way through the engine before this one would otherwise never come out.
  if (report.state != actors::DeviceState::restarting)
    for (const std::string& camera : encodings->ending()) end(camera);
  if (decisions.hopeless.empty()) return;
  // A new process is what brings a device back: this node ends, and its streams go to others.
  deps->logger.error("dock: {}", decisions.hopeless);
  stop();
}

void dock_state::route(const actors::Routes::Decision& decision) {
  const std::string& camera = decision.camera;
  const auto vision = visions.find(decision.device);
  const std::string* const stream = encodings->stream_of(camera);
  if (vision == visions.end() || stream == nullptr) {
    self->send(router, actors::Route{camera, {}, {}});
    return;
  }
  // A device that was started again knows nothing of it.
  if (const auto language = languages.find(decision.device); language != languages.end())
    self->send(language->second, actors::tokens_atom_v, camera, *stream != deps->node);
  self->send(router, actors::Route{camera, decision.device, vision->second});
}

bool dock_state::attach(const Passage& passage, link_actor link) {
  const bool encodes = passage.vision == deps->node;
  const bool streams_here = passage.stream == deps->node;
  if ((encodes && !has_tower) || (streams_here && !has_language)) {
    deps->logger.error("dock: node {} wants what this node does not do", passage.owner);
    return false;
  }
  if (encodes && !streams_here && !has_way(passage.stream)) return false;
  // What the one before sent is lost; its cameras join again.
  if (encodes) book.leave(passage.owner, passage, deps->clock.now());
  watch(link.address());
  links[passage] = std::move(link);
  return true;
}

void dock_state::take(const BulkArrival& arrival) {
  std::optional<LinkFrame> frame = read(arrival.received.message);
  if (!frame) {
    deps->logger.error("dock: ignored bytes of node {} that make no sense", arrival.node);
    return;
  }
  std::visit([&](auto& each) { take(arrival.node, each); }, *frame);
}

void dock_state::take(const std::string& from, JoinFrame& frame) {
  const Passage passage{from, deps->node, frame.stream};
  // Of a link that has not attached (again), everything is to come anew.
  if (!links.contains(passage)) return;
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  const std::string& camera = watch->name;
  const DockBook::Joined joined =
      book.join(from, passage, watch, frame.generation, encodings->goes_on(camera, passage.stream));
  if (!joined.admitted)
    return refuse(passage, camera, joined.fence,
                  "its owner is another node by now (fence " + std::to_string(joined.fence) + ')');
  if (joined.before) refuse(*joined.before, camera, joined.fence, "its owner is node " + from + " now");
  const Encodings::Beginning beginning{passage, watch, frame.generation, joined.generation};
  deps->metrics.camera_added(*beginning.watch);
  if (encodings->join(beginning)) return begin(beginning);
  end(camera);
}

void dock_state::end(const std::string& camera) {
  encodings->ends_now(camera);
  self->send(router, actors::end_atom_v, camera);
}

void dock_state::begin(const Encodings::Beginning& beginning) {
  const std::string& camera = beginning.watch->name;
  guest_actor& here = guests[camera];
  if (here) self->send(here, actors::stop_atom_v);
  here = nullptr;
  const auto link = links.find(beginning.passage);
  if (link == links.end()) return;
  here = self->spawn(guest, GuestDeps{camera, beginning.own_generation, deps->logger}, link->second);
  // From here, so that nothing that comes later overtakes it.
  caf::send_as(here, router, actors::join_atom_v, beginning.watch, beginning.generation);
  // Of another owner, what is on its way comes first.
  const Encodings::Lane* const lane = encodings->lane(camera);
  if (lane != nullptr && lane->fence == actors::fence_of(beginning.watch->version))
    join_lane(beginning.watch);
  if (const auto decision = routes->start(camera)) route(*decision);
}

void dock_state::take(const std::string& from, SettingsFrame& frame) {
  const auto watch = std::make_shared<const actors::WatchSettings>(std::move(frame.watch));
  const DockBook::Guest* const guest = book.renew(from, watch);
  if (guest == nullptr) {
    // It was another's meanwhile, or was given up: only a join makes it this one's again. Its owner takes its
    // own fence in a refusal for that of another one.
    const std::uint64_t highest = book.highest_fence(watch->name);
    if (highest == actors::fence_of(watch->version) && !book.is_contested(from, watch->ref())) return;
    for (const auto& [passage, link] : links)
      if (passage.owner == from)
        self->send(link, GuestRefused{watch->name, highest, "it has not joined as it is now"});
    return;
  }
  if (guest->passage.vision != deps->node) return;
  deps->metrics.camera_added(*watch);
  if (!encodings->renew(watch)) self->send(router, watch);
}

void dock_state::take(const std::string& from, PackedPatch& patch) {
  const actors::PatchForm& form = patch.form;
  const std::string camera = form.watch.camera;
  const DockBook::Guest* const guest = book.brought(from, form.watch);
  const bool is_its =
      guest != nullptr && guest->own_generation == form.generation && guest->passage.vision == deps->node;
  if (!is_its && take_former(from, patch)) return;
  actors::PatchAck lost{camera, form.generation, form.sequence, actors::PatchOutcome::lost, ""};
  if (!is_its) {
    lost.reason = "fenced";
    for (const auto& [passage, link] : links)
      if (passage.owner == from && passage.vision == deps->node) return self->send(link, lost);
    return;
  }
  const auto link = links.find(guest->passage);
  if (link == links.end()) return;
  if (encodings->waits(camera)) return self->send(link->second, lost);
  book.drop_former(camera);
  patch.form.generation = guest->generation;
  if (const actors::FramePatchPtr whole = unpack(patch, deps->group, deps->clock)) {
    self->send(router, whole);
    return;
  }
  deps->logger.error("dock: ignored a patch of camera {} of node {} whose pixels do not fit", camera, from);
  lost.outcome = actors::PatchOutcome::dropped;
  lost.reason = "damaged";
  self->send(link->second, lost);
}

bool dock_state::take_former(const std::string& from, PackedPatch& patch) {
  actors::PatchForm& form = patch.form;
  const DockBook::Former* const former = book.brought_before(from, form.watch, form.generation);
  // One that is not full is the last, and would be ahead of the next owner's first one, which shows as much
  // and would be the one that is late.
  if (former == nullptr || std::cmp_less(form.frames, deps->group) || encodings->waits(form.watch.camera))
    return false;
  // Of what is not its owner's, the router tells nobody.
  if (const auto link = links.find(former->passage); link != links.end())
    self->send(link->second, actors::PatchAck{form.watch.camera, form.generation, form.sequence,
                                              actors::PatchOutcome::encoded, ""});
  form.generation = former->generation;
  form.watch = book.find(form.watch.camera)->watch->ref();
  if (const actors::FramePatchPtr whole = unpack(patch, deps->group, deps->clock)) {
    self->send(router, whole);
  } else {
    deps->logger.error("dock: ignored a patch of camera {} of node {} whose pixels do not fit",
                       form.watch.camera, from);
  }
  return true;
}

void dock_state::take(const std::string& from, MovedFrame& frame) {
  const DockBook::Guest* const guest = book.find(frame.camera);
  if (guest != nullptr && guest->from == from && guest->passage == Passage{from, deps->node, frame.stream})
    encodings->leaves_stream(frame.camera);
}

void dock_state::take(const std::string& from, EndFrame& frame) {
  const DockBook::Guest* const guest = book.find(frame.camera);
  const Passage passage{from, deps->node, frame.stream};
  book.drop_former(from, frame.camera);
  // Of one that came to its end here when its stream could not be reached, nobody would tell that it has.
  if (guest != nullptr && guest->from == from && guest->passage == passage &&
      encodings->is_here(frame.camera)) {
    end(frame.camera);
    // It had not begun there yet.
    const auto link = encodings->drop_waiting(frame.camera) ? links.find(passage) : links.end();
    if (link != links.end()) self->send<caf::message_priority::high>(link->second, over_atom_v, frame.camera);
  } else if (const auto link = links.find(passage); link != links.end()) {
    // Nothing of its own is here.
    self->send<caf::message_priority::high>(link->second, over_atom_v, frame.camera);
  }
}

void dock_state::refuse(const Passage& passage, const std::string& camera, std::uint64_t fence,
                        const std::string& reason) {
  if (const auto link = links.find(passage); link != links.end())
    self->send(link->second, GuestRefused{camera, fence, reason});
}

void dock_state::answer(const actors::WindowAnswersPtr& window, const actors::stream_actor& source) {
  self->send(source, actors::grant_atom_v, std::uint32_t{1});
  const std::string& camera = window->watch->name;
  const actors::WindowAnswersPtr own =
      book.of_owner(window, !encodings->waits(camera) && !streams.waits(camera));
  const auto link = own ? links.find(book.find(camera)->passage) : links.end();
  // Of one that is away, or that it would tell nothing: nobody is there to hear it.
  if (link == links.end()) {
    deps->metrics.windows("undelivered", 1);
    if (window->id) self->send(source, actors::Done{*window->id});
    return;
  }
  sources[camera] = source;
  self->send<caf::message_priority::high>(link->second, actors::form_of(*own, deps->clock));
}

void dock_state::explain(const actors::Explain& request, link_actor link) {
  const auto source = sources.find(request.window.camera);
  if (source == sources.end()) return;
  const std::uint64_t ticket = ++last_ticket;
  texts->ask(ticket, request, std::move(link), goes_to(request.window.camera));
  ask_device(ticket);
}

void dock_state::explained(const actors::Explanation& text) {
  if (give_back_text(text)) return;
  const auto asked = texts->take(text.ticket);
  if (!asked) return;
  actors::Explanation own = text;
  own.ticket = asked->ticket;
  self->send<caf::message_priority::high>(asked->link, own);
}

void dock_state::done(const actors::Done& done) {
  if (const auto source = sources.find(done.window.camera); source != sources.end())
    self->send(source->second, done);
}

void dock_state::ended(const std::string& camera) {
  sources.erase(camera);
  const auto brought = streams.over(camera);
  // Its stream goes on elsewhere.
  if (const auto next = encodings->stream_over(camera)) return begin(*next);
  if (brought) return begin_stream(*brought);
  const DockBook::Guest* const guest = book.find(camera);
  if (guest == nullptr || guest->passage.stream != deps->node) return;
  if (const auto link = links.find(guest->passage); link != links.end())
    self->send<caf::message_priority::high>(link->second, over_atom_v, camera);
  forget(camera);
}

void dock_state::forget(const std::string& camera) {
  book.end(camera);
  texts->forget(camera, book.highest_fence(camera));
  routes->remove(camera);
  if (const auto here = guests.extract(camera); here && here.mapped())
    self->send(here.mapped(), actors::stop_atom_v);
  self->send(router, actors::forget_atom_v, camera);
  deps->metrics.camera_removed(camera);
}

void dock_state::watch(const caf::actor_addr& other) {
  // Each call makes a monitor of its own.
  if (watched.insert(other).second) self->monitor(other);
}

void dock_state::lost(const caf::actor_addr& address) {
  const auto is_own = [&](const auto& part) { return part.address() == address; };
  if (is_own(router) || std::ranges::any_of(devices, is_own)) {
    deps->logger.error("dock: ends, since a part of it has failed");
    return stop();
  }
  watched.erase(address);
  const auto now = deps->clock.now();
  const auto is_it = [&](const auto& entry) { return entry.second.address() == address; };
  if (const auto link = std::find_if(links.begin(), links.end(), is_it); link != links.end()) {
    if (link->first.vision == deps->node) book.leave(link->first.owner, link->first, now);
    links.erase(link);
  }
  if (const auto sender = std::find_if(senders.begin(), senders.end(), is_it); sender != senders.end()) {
    book.leave(sender->first, now);
    senders.erase(sender);
  }
  const auto way = std::find_if(ways.begin(), ways.end(),
                                [&](const auto& entry) { return entry.second.dock.address() == address; });
  if (way == ways.end()) return;
  const std::string gone = way->first;
  tell(gone, way->second.desk.bulk_ended("node " + gone + " is gone"));
  ways.erase(gone);
}

void dock_state::hear(const BulkNews& news) {
  if (news.direction == cluster::BulkDirection::incoming) {
    if (news.what == BulkNews::What::ended) {
      book.leave(news.node, deps->clock.now());
      arrivals->forget(news.node);
    }
    return;
  }
  const auto way = ways.find(news.node);
  if (way == ways.end()) return;
  switch (news.what) {
    case BulkNews::What::opened:
      tell(news.node, way->second.desk.bulk_opened());
      return attach(news.node);
    case BulkNews::What::ended:
      return tell(news.node, way->second.desk.bulk_ended("the way for visual tokens ended: " + news.reason));
    case BulkNews::What::room:
      way->second.desk.resume();
      answer_dropped(way->second);
  }
}

void dock_state::end_overdue() {
  for (const std::string& camera : book.overdue(deps->clock.now(), deps->patience)) {
    if (const auto device = streams.end(camera)) {
      tell_device(*device, actors::end_atom_v, camera);
    } else if (encodings->stream_of(camera) != nullptr) {
      encodings->drop_waiting(camera);
      end(camera);
    } else {
      forget(camera);
    }
  }
}

void dock_state::tick() {
  deps->board.beat("dock", std::chrono::seconds(10));
  end_overdue();
  for (const auto& entry : ways) attach(entry.first);
  end_overdue_texts();
  texts->forget_old();
  self->delayed_send(self, kDockTick, actors::tick_atom_v);
}

void dock_state::stop() {
  for (const auto& [camera, here] : guests)
    if (here) self->send(here, actors::stop_atom_v);
  self->send(router, actors::stop_atom_v);
  for (const actors::device_actor& device : devices) self->send(device, actors::stop_atom_v);
  self->quit();
}

dock_actor::behavior_type dock(dock_actor::stateful_pointer<dock_state> self, DockDeps deps) {
  actors::set_handlers(self, deps.logger);
  self->set_down_handler([self](const caf::down_msg& message) { self->state.lost(message.source); });
  self->state.deps.emplace(std::move(deps));
  self->state.start();
  return {
      [self](join_atom) {
        self->send(caf::actor_cast<actors::stream_actor>(self->current_sender()), actors::grant_atom_v,
                   actors::kWindowsUnderWay);
      },
      [self](const actors::WindowAnswersPtr& window) {
        self->state.answer(window, caf::actor_cast<actors::stream_actor>(self->current_sender()));
      },
      [self](const actors::Explanation& text) { self->state.explained(text); },
      [self](end_atom, const std::string& camera) { self->state.ended(camera); },
      [self](const actors::DeviceReport& report) { self->state.report(report); },
      [self](attach_atom, const std::string& node, const std::string& vision, const std::string& stream) {
        return self->state.attach({node, vision, stream},
                                  caf::actor_cast<link_actor>(self->current_sender()));
      },
      [self](const actors::Explain& request) {
        self->state.explain(request, caf::actor_cast<link_actor>(self->current_sender()));
      },
      [self](const actors::Done& done) { self->state.done(done); },
      [self](const BulkArrivalPtr& arrival) { self->state.take(*arrival); },
      [self](const BulkNews& news) { self->state.hear(news); },
      [self](tokens_atom, join_atom, const actors::WatchPtr& watch, std::uint32_t session) {
        self->state.open_lane(watch, session,
                              caf::actor_cast<actors::tokens_sender_actor>(self->current_sender()));
      },
      [self](tokens_atom, const actors::WatchPtr& watch) { self->state.join_lane(watch); },
      [self](const actors::VisualPatchPtr& patch) { self->state.take(patch); },
      [self](tokens_atom, end_atom, const std::string& camera) { self->state.lane_over(camera); },
      // It is what tells devices.
      [](tokens_atom, const std::string&, bool) {},
      [](tokens_atom, const actors::Explain&) {},
      [self](const actors::CarriedTextPtr& text) { self->state.send_text(text); },
      [self](const actors::TokensRoom& room) { self->state.tell_sender(room.camera, room); },
      [self](const actors::TokensAck& ack) { self->state.tell_sender(ack.camera, ack); },
      [self](tokens_atom, attach_atom, const std::string& node) {
        return self->state.attach_sender(node, caf::actor_cast<dock_actor>(self->current_sender()));
      },
      [self](tokens_atom, const actors::TokensRoom& room) { self->state.hear_stream(room); },
      [self](tokens_atom, const actors::TokensAck& ack) { self->state.hear_stream(ack); },
      [self](tokens_atom, const GuestRefused& refused) { self->state.hear_stream(refused); },
      [self](tokens_atom, detach_atom, const std::string& node, const std::string& reason) {
        if (const auto way = self->state.ways.find(node); way != self->state.ways.end())
          self->state.tell(node, way->second.desk.detached("node " + node + " cannot go on: " + reason));
      },
      [self](const TextsAt& place) { self->state.know(place); },
      [self](tokens_atom, const actors::Explanation& text) { self->state.hear_text(text); },
      [self](way_atom, const caf::strong_actor_ptr& node) {
        self->state.node = caf::actor_cast<node_actor>(node);
        for (const std::string& wanted : self->state.ways_wanted)
          self->send(self->state.node, way_atom_v, wanted);
      },
      [self](const DockWay& way) { self->state.make_way(way); },
      [self](tick_atom) { self->state.tick(); },
      [self](fence_atom) { return self->state.book.highest_fence(); },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::fleet
