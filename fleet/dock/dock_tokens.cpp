// The part of the dock's shell by which visual tokens of this node's devices go to other nodes' streams.
#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "fleet/dock/dock_actor.h"

namespace vigil::fleet {
namespace {

/// How long another dock may take to answer.
constexpr std::chrono::seconds kTokensPatience{5};
/// For a device that is to come to an end with what nobody takes.
constexpr std::uint32_t kAll = std::numeric_limits<std::uint16_t>::max();

}  // namespace

bool dock_state::has_way(const std::string& to) {
  const auto way = ways.find(to);
  if (way != ways.end()) return way->second.desk.is_up();
  if (ways_wanted.insert(to).second && node) self->send(node, way_atom_v, to);
  return false;
}

void dock_state::make_way(const DockWay& made) {
  ways_wanted.erase(made.node);
  if (ways.contains(made.node) || !made.dock) return;
  watch(made.dock.address());
  Way& way = ways.emplace(made.node, Way{made.dock, LinkDesk(made.send)}).first->second;
  if (made.is_open) tell(made.node, way.desk.bulk_opened());
  attach(made.node);
}

void dock_state::attach(const std::string& to) {
  Way& way = ways.at(to);
  if (!way.desk.wants_attach() || std::exchange(way.asking, true)) return;
  const auto answered = [this, to, dock = way.dock](bool may) {
    const auto found = ways.find(to);
    // There may be another one by now.
    if (found == ways.end() || found->second.dock != dock) return;
    found->second.asking = false;
    if (may) tell(to, found->second.desk.attached());
  };
  self->request(way.dock, kTokensPatience, actors::tokens_atom_v, attach_atom_v, deps->node)
      .then(answered, [answered](const caf::error&) { answered(false); });
}

void dock_state::tell(const std::string& to, const std::optional<LinkDesk::Change>& change) {
  // Links ask again by themselves.
  if (!change || change->is_up) return;
  deps->logger.warn("dock: {} cannot be reached: {}", to, change->reason);
  stay_all(to, change->reason);
  for (const std::string& camera : encodings->lanes_to(to)) abandon(camera, *encodings->lane(camera));
  for (auto link = links.begin(); link != links.end();) {
    const Passage& passage = link->first;
    if (passage.vision != deps->node || passage.stream != to) {
      ++link;
      continue;
    }
    self->send(link->second, detach_atom_v, change->reason);
    book.leave(passage.owner, passage, deps->clock.now());
    link = links.erase(link);
  }
}

void dock_state::send(Way& way, const LinkFrame& frame) {
  const auto change = way.desk.send(frame);
  answer_dropped(way);
  if (!change) return;
  const auto found = std::ranges::find_if(ways, [&](const auto& each) { return &each.second == &way; });
  if (found == ways.end()) return;
  tell(found->first, change);
  attach(found->first);
}

void dock_state::answer_dropped(Way& way) {
  for (const auto& [dropped, frames] : way.desk.take_dropped()) {
    const Encodings::Lane* const lane = encodings->lane(dropped.camera);
    if (lane == nullptr) continue;
    self->send(lane->source, actors::TokensRoom{dropped.camera, lane->own_session, 1});
    self->send(lane->source, actors::TokensAck{dropped.camera, dropped.generation, dropped.sequence,
                                               actors::TokensOutcome::lost});
  }
}

void dock_state::open_lane(const actors::WatchPtr& watch, std::uint32_t session,
                           actors::tokens_sender_actor source) {
  const std::string& camera = watch->name;
  Encodings::Lane& lane = encodings->open(camera, {.session = ++sessions,
                                                   .own_session = session,
                                                   .source = std::move(source),
                                                   .fence = actors::fence_of(watch->version)});
  const auto way = ways.find(lane.stream);
  const DockBook::Guest* const guest = book.find(camera);
  if (guest == nullptr || way == ways.end() || !way->second.desk.is_up()) return abandon(camera, lane);
  send(way->second, TokensJoinFrame{*watch, lane.session, guest->passage.owner});
}

void dock_state::join_lane(const actors::WatchPtr& watch) {
  Encodings::Lane* const lane = encodings->lane(watch->name);
  const DockBook::Guest* const guest = book.find(watch->name);
  if (lane == nullptr || !lane->goes_on || guest == nullptr) return;
  lane->fence = std::max(lane->fence, actors::fence_of(watch->version));
  send(ways.at(lane->stream), TokensJoinFrame{*watch, lane->session, guest->passage.owner});
}

void dock_state::take(const actors::VisualPatchPtr& patch) {
  const Encodings::Lane* const lane = encodings->lane(patch->watch.camera);
  if (lane == nullptr) return;
  if (lane->goes_on) return send(ways.at(lane->stream), pack(*patch, lane->session, deps->clock));
  self->send(lane->source, ack_of(*patch, actors::TokensOutcome::lost));
}

void dock_state::abandon(const std::string& camera, Encodings::Lane& lane) {
  lane.goes_on = false;
  // The device takes what it has to its end, so that the camera can begin anew.
  self->send(lane.source, actors::TokensRoom{camera, lane.own_session, kAll});
  self->send(router, actors::end_atom_v, camera);
}

void dock_state::drop_lanes(const actors::vision_actor& device) {
  const auto is_its = [&](const Encodings::Lane& lane) { return lane.source.address() == device.address(); };
  for (const std::string& camera : encodings->drop_lanes(is_its)) lane_over(camera);
}

void dock_state::lane_over(const std::string& camera) {
  const auto over = encodings->lane_over(camera);
  if (!over) return;
  if (over->lane.goes_on) {
    Way& way = ways.at(over->lane.stream);
    if (over->stream_stays) send(way, TokensMovedFrame{camera, over->lane.session});
    send(way, TokensEndFrame{camera, over->lane.session});
  }
  if (over->next) return begin(*over->next);
  const DockBook::Guest* const guest = book.find(camera);
  // Its tokens may come from elsewhere by now.
  if (guest != nullptr && guest->passage.vision != deps->node) return;
  if (over->lane.goes_on) {
    const auto link = over->stream_stays && guest != nullptr ? links.find(guest->passage) : links.end();
    if (link != links.end()) self->send<caf::message_priority::high>(link->second, over_atom_v, camera);
    return forget(camera);
  }
  // Its owner's node may come back with it.
  if (const auto here = guests.extract(camera); here && here.mapped())
    self->send(here.mapped(), actors::stop_atom_v);
  self->send(router, actors::forget_atom_v, camera);
}

void dock_state::hear_stream(const actors::TokensRoom& room) {
  const Encodings::Lane* const lane = encodings->lane(room.camera);
  if (lane == nullptr || lane->session != room.session) return;
  self->send(lane->source, actors::TokensRoom{room.camera, lane->own_session, room.patches});
}

void dock_state::hear_stream(const actors::TokensAck& ack) {
  if (const Encodings::Lane* const lane = encodings->lane(ack.camera)) self->send(lane->source, ack);
}

void dock_state::hear_stream(const GuestRefused& refused) {
  Encodings::Lane* const lane = encodings->lane(refused.camera);
  const DockBook::Guest* const guest = book.find(refused.camera);
  // It may have another owner here meanwhile, of whom the stream will hear. One with the fence of this one is
  // that of another node, of which the stream has heard first.
  if (lane == nullptr || guest == nullptr || guest->fence > refused.fence) return;
  // It was the former fence of the same owner that was refused: the lane is about to be opened with the next.
  if (guest->fence == refused.fence && lane->fence < refused.fence) return;
  refuse(guest->passage, refused.camera, refused.fence, refused.reason);
  book.lose(refused.camera, deps->clock.now());
  if (lane->goes_on) abandon(refused.camera, *lane);
}

}  // namespace vigil::fleet
