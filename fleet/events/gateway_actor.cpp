#include "fleet/events/gateway_actor.h"

#include <exception>
#include <utility>

#include "actors/messages/shell.h"

namespace vigil::fleet {
namespace {

// How long a new subscriber waits for the last event of its topics at most.
constexpr std::chrono::milliseconds kGatewayTick{50};
// Until a disk, or topics, are tried again.
constexpr std::chrono::seconds kAgain{5};
constexpr std::chrono::minutes kPruneEvery{1};
constexpr std::chrono::minutes kGapsEvery{1};

}  // namespace

void gateway_state::open() {
  if (!outbox) outbox = deps->open(std::exchange(wants_empty, false));
  identity = outbox->identity();
  desk.emplace(GatewayDesk::Options{deps->node}, *outbox);
  joining.emplace(GatewayJoining::Options{.name = deps->node, .token = deps->token}, *desk, deps->clock,
                  std::move(promise));
  ++joinings;
  joining->see(known.view);
}

void gateway_state::close() {
  publishing.reset();
  publisher.reset();
  if (joining) promise = joining->promise();
  joining.reset();
  desk.reset();
}

void gateway_state::fail(const std::string& why) {
  if (trouble != why) deps->logger.error("gateway: does not serve: {}", why);
  // Whatever comes next is news.
  trouble = logged = why;
  close();
  if (outbox) {
    // Damage that it has met it knows as long as it is there: what can be read takes its place now.
    try {
      outbox->refresh();
    } catch (const actors::OutboxError& error) {
      deps->logger.debug("gateway: {}", error.what());
    }
    hear_outbox();
  }
  outbox.reset();
  open_at = deps->clock.now() + kAgain;
  withdraw();
}

void gateway_state::hear_outbox() {
  for (const actors::OutboxNotice& notice : outbox->take_notices()) {
    deps->logger.warn("gateway: {}", notice.text);
    deps->metrics.outbox_noticed(notice.reason);
  }
}

void gateway_state::withdraw() {
  const auto own = known.view.find(deps->node);
  if (own == known.view.end()) return;
  PeerQuestion question;
  question.kind = PeerQuestionKind::state;
  question.from = deps->node;
  question.born = own->second.born;
  question.token = deps->token({});
  for (const auto& [other, way] : known.ways) {
    const auto there = known.view.find(other);
    if (other == deps->node || there == known.view.end()) continue;
    question.to_born = there->second.born;
    self->request(way, deps->patience, question).then([](const PeerAnswer&) {}, [](const caf::error&) {});
  }
}

void gateway_state::attempt(const std::function<void()>& what) {
  try {
    if (!joining) {
      if (deps->clock.now() < open_at) return tell();
      open_at = deps->clock.now() + kAgain;
      if (!trouble.empty()) withdraw();
      open();
      trouble.clear();
    }
    outbox->refresh();
    hear_outbox();
    if (outbox->identity() != identity) {
      // Something of it may be missing: what others have is taken anew.
      deps->logger.warn("gateway: its outbox is another one by now: it begins anew");
      close();
      open();
    }
    what();
    pump();
  } catch (const actors::OutboxError& error) {
    deps->metrics.outbox_failed();
    fail(error.what());
  }
  tell();
  count();
}

void gateway_state::pump() {
  if (joining->wants_empty_outbox()) {
    deps->logger.warn("gateway: {}", joining->trouble());
    close();
    outbox.reset();
    wants_empty = true;
    open();
  }
  for (const GatewayJoining::Ask& each : joining->take_asks()) ask(each);
  if (const std::string why = joining->trouble(); why != logged) {
    logged = why;
    deps->logger.info("gateway: {}", why.empty() ? "serves" : "does not serve: " + why);
    if (why.empty() && desk->has_lost())
      deps->logger.warn(
          "gateway: it serves without what could not be read of its outbox: no other gateway served");
  }
  if (desk->mode() == GatewayMode::serving) {
    open_topics();
    publish();
  } else if (publisher) {
    publishing.reset();
    publisher.reset();
  }
}

void gateway_state::ask(const GatewayJoining::Ask& ask) {
  const std::uint64_t number = ask.question.number;
  const std::uint64_t which = joinings;
  const auto failed = [this, which, to = ask.to, number] {
    if (which != joinings || !joining) return;
    attempt([&] { joining->failed(to, number); });
  };
  const auto way = known.ways.find(ask.to);
  if (way == known.ways.end()) return joining->failed(ask.to, number);
  self->request(way->second, deps->patience, ask.question)
      .then(
          [this, which, to = ask.to](const PeerAnswer& answer) {
            if (which != joinings || !joining) return;
            attempt([&] { joining->heard(to, answer); });
          },
          [failed](const caf::error&) { failed(); });
}

void gateway_state::open_topics() {
  if (publisher || deps->clock.now() < topics_at) return;
  try {
    publisher = deps->topics(*outbox);
    publishing.emplace(*outbox, *publisher);
    publishing->remember_last();
  } catch (const actors::OutboxError&) {
    throw;
  } catch (const std::exception& error) {
    // It keeps events all the same, and others serve subscribers.
    deps->logger.error("gateway: no topics: {}", error.what());
    topics_at = deps->clock.now() + kAgain;
  }
}

void gateway_state::publish() {
  if (!publisher) return;
  publishing->publish_written();
  deps->metrics.outbox_pending(publishing->waiting());
}

/// What it is, to the node that tells the fleet.
void gateway_state::tell() {
  if (const std::string why_not = joining ? joining->trouble() : trouble; told != why_not) {
    told = why_not;
    deps->board.gateway(why_not);
    if (deps->is_alone) deps->board.outbox(trouble);
  }
  const bool serves = joining && desk->mode() == GatewayMode::serving;
  if (!node || serves == told_serving) return;
  self->send(node, serves_atom_v, serves);
  told_serving = serves;
}

void gateway_state::count() {
  if (desk) series->add(desk->take_counts());
  if (joining) series->behind(joining->behind());
  if (desk) tell_gaps();
}

void gateway_state::tell_gaps() {
  const auto now = deps->clock.now();
  std::erase_if(gaps_told, [&](const auto& each) { return now - each.second >= kGapsEvery; });
  const std::vector<TopicGap> gaps = desk->take_gaps();
  series->gaps(gaps.size());
  for (const TopicGap& gap : gaps)
    if (gaps_told.emplace(series_key(gap.topic), now).second)
      deps->logger.warn("gateway: {} goes on with {} behind {}: what was between nobody has any more",
                        gap.topic, gap.next, gap.after);
}

void gateway_state::tick() {
  attempt([] {});
  if (publisher) {
    publisher->serve();
    if (const std::uint64_t dropped = publisher->take_dropped())
      deps->metrics.messages_dropped("events", "slow_subscriber", dropped);
  }
  if (outbox && deps->clock.now() >= prune_at) {
    prune_at = deps->clock.now() + kPruneEvery;
    attempt([this] { outbox->prune(deps->retention); });
  }
  deps->board.beat("gateway", actors::kAlertsPatience);
  self->delayed_send(self, kGatewayTick, actors::tick_atom_v);
}

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self, GatewayDeps deps) {
  actors::set_handlers(self, deps.logger);
  gateway_state& state = self->state;
  state.deps.emplace(std::move(deps));
  state.series.emplace(state.deps->metrics);
  self->send(self, actors::tick_atom_v);
  return {
      [self](const MakerTalk& talk) {
        GatewayTalk answer;
        answer.number = talk.number;
        answer.verdict = TalkVerdict::away;
        gateway_state& own = self->state;
        own.attempt([&] { answer = own.desk->answer(talk); });
        return answer;
      },
      [self](const PeerQuestion& question) {
        gateway_state& own = self->state;
        std::optional<PeerAnswer> answer;
        own.attempt([&] { answer = own.joining->answer(question); });
        if (!answer) answer = answer_without_outbox(question, own.deps->node, own.known.view, own.promise);
        return *std::move(answer);
      },
      [self](const GatewayNewsPtr& news) {
        gateway_state& own = self->state;
        own.node = caf::actor_cast<node_actor>(self->current_sender());
        own.known = *news;
        own.attempt([&] { own.joining->see(news->view); });
      },
      [self](tick_atom) { self->state.tick(); },
      [self](fence_atom) -> std::uint64_t {
        const gateway_state& own = self->state;
        return own.desk ? own.desk->books().highest_fence() : 0;
      },
      [self](stop_atom) {
        gateway_state& own = self->state;
        if (own.publisher) own.publisher->drain();
        own.close();
        own.outbox.reset();
        self->quit();
      },
  };
}

}  // namespace vigil::fleet
