#include "fleet/events/maker_actor.h"

#include <memory>
#include <utility>

#include <caf/send.hpp>

#include "actors/messages/shell.h"

namespace vigil::fleet {
namespace {

constexpr std::chrono::milliseconds kMakerTick{100};

}  // namespace

void maker_state::see(const GatewayNews& news) {
  known = news;
  desk->see(news.view);
  desk->see_keepers(news.keepers);
  for (const std::string& gone : news.gone_keepers)
    deps->logger.warn(
        "events: node {} is gone with events of cameras that are others' by now, which no gateway has", gone);
  claim_own();
  warn();
  pump();
}

void maker_state::claim(const std::string& camera, std::uint64_t fence, actors::alerts_actor from) {
  alerts = std::move(from);
  if (camera.empty()) {
    wants_own = true;
    claim_own();
  } else {
    desk->claim(camera, fence);
  }
  warn();
  pump();
}

/// Its fence is the revision of this node's record.
void maker_state::claim_own() {
  if (!wants_own || known.own_revision == 0) return;
  wants_own = false;
  desk->claim(own_series, known.own_revision);
}

void maker_state::take_events() {
  ShippingPublisher::Taken taken = deps->publisher.take();
  if (std::exchange(epoch, taken.epoch) != taken.epoch) desk->start_over();
  for (const auto& copies : taken.events) desk->publish(copies);
  pump();
}

void maker_state::pump() {
  tell();
  for (MakerDesk::Ask& ask : desk->take_asks()) {
    const std::uint64_t number = ask.talk.number;
    const auto way = known.ways.find(ask.gateway);
    if (way == known.ways.end()) {
      desk->failed(ask.gateway, number);
      continue;
    }
    self->request(way->second, deps->patience, std::move(ask.talk))
        .then(
            [this, gateway = ask.gateway](const GatewayTalk& answer) {
              desk->heard(gateway, answer);
              pump();
            },
            [this, gateway = ask.gateway, number](const caf::error&) {
              desk->failed(gateway, number);
              pump();
            });
  }
  if (!node || desk->keeps() == told_keeps) return;
  told_keeps = desk->keeps();
  self->send(node, keeps_atom_v, told_keeps);
  if (told_keeps) {
    deps->logger.warn("events: there are some here of cameras that are others' by now: these wait for them");
  } else {
    deps->logger.info("events: of cameras that are others' by now, there are none any more");
  }
}

void maker_state::tell() {
  for (actors::SeriesBooks& books : desk->take_books()) {
    if (books.camera == own_series) books.camera.clear();
    self->send(alerts, std::make_shared<const actors::SeriesBooks>(std::move(books)));
  }
  const std::vector<MakerDesk::Lost> losses = desk->take_lost();
  for (const MakerDesk::Lost& lost : losses) {
    const bool is_own = lost.series == own_series;
    deps->logger.warn("events: another node has {} with fence {}, this one had {}",
                      is_own ? "this node's name" : "camera " + lost.series, lost.higher, lost.fence);
    // By the plan it may be this node's turn all the same, if the registry was set back.
    if (!is_own && node) self->send(node, fence_atom_v, lost.series, lost.higher);
    self->send(alerts, actors::lost_atom_v, is_own ? std::string() : lost.series, lost.fence);
  }
  if (const std::size_t dropped = desk->take_dropped(); dropped > 0) {
    deps->metrics.messages_dropped("outbox", "fence", dropped);
    if (!losses.empty()) deps->logger.warn("events: {} were on their way, and are not told", dropped);
  }
  deps->publisher.done(epoch, desk->published());
}

void maker_state::tell_waits() {
  const std::string gateway = desk->waits_for();
  std::string now;
  if (!gateway.empty())
    now = "gateway " + gateway + " does not answer" +
          (known.registry_answers ? "" : ", and etcd is not there to say whether it is gone");
  if (now == waits) return;
  waits = now;
  series->held(!waits.empty());
  deps->board.events(waits);
  if (waits.empty()) {
    deps->logger.warn("events: they wait no more");
  } else {
    deps->logger.error("events: they wait: {}", waits);
  }
}

void maker_state::warn() {
  tell_waits();
  if (desk->has_gateways()) {
    if (std::exchange(was_warned, false)) deps->logger.warn("events: a gateway serves again");
    return;
  }
  if (known.own_revision == 0 || desk->waiting() + desk->claiming() == 0 || std::exchange(was_warned, true))
    return;
  deps->logger.warn("events: no gateway of this fleet serves: events are kept here until one does");
}

maker_actor::behavior_type maker(maker_actor::stateful_pointer<maker_state> self, MakerDeps deps) {
  actors::set_handlers(self, deps.logger);
  maker_state& state = self->state;
  state.own_series = actors::process_topic(deps.node);
  state.desk.emplace(MakerDesk::Options{.node = deps.node, .session = deps.session, .own = state.own_series},
                     deps.clock);
  state.deps.emplace(std::move(deps));
  state.series.emplace(state.deps->metrics);
  state.deps->publisher.attach([way = caf::actor_cast<caf::actor_addr>(maker_actor(self))] {
    if (const auto actor = caf::actor_cast<maker_actor>(way)) caf::anon_send(actor, actors::work_atom_v);
  });
  self->send(self, actors::tick_atom_v);
  return {
      [self](actors::claim_atom, const std::string& camera, std::uint64_t fence) {
        self->state.claim(camera, fence, caf::actor_cast<actors::alerts_actor>(self->current_sender()));
      },
      [self](const GatewayNewsPtr& news) {
        self->state.node = caf::actor_cast<node_actor>(self->current_sender());
        self->state.see(*news);
      },
      [self](join_atom, const std::string& camera) { self->state.desk->have(camera); },
      [self](moved_atom, const std::string& camera) { self->state.desk->leave(camera); },
      [self](actors::work_atom) { self->state.take_events(); },
      [self](tick_atom) {
        self->state.warn();
        self->state.take_events();
        self->delayed_send(self, kMakerTick, actors::tick_atom_v);
      },
      [self](stop_atom) {
        self->state.deps->publisher.attach({});
        self->quit();
      },
  };
}

}  // namespace vigil::fleet
