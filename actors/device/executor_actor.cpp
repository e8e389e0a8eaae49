#include "actors/device/executor_actor.h"

#include <chrono>
#include <memory>
#include <new>
#include <stdexcept>
#include <utility>

#include "actors/messages/lent_text.h"
#include "actors/messages/log_fields.h"
#include "actors/messages/shell.h"
#include "actors/stream/counted_pages.h"

namespace vigil::actors {
namespace {

double seconds_between(base::Clock::TimePoint begin, base::Clock::TimePoint end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

void executor_state::start(ExecutorDeps given, answers_actor to, target_actor elsewhere, tower_actor beside) {
  answers = std::move(to);
  target = std::move(elsewhere);
  tower = std::move(beside);
  const EngineParts& engine = given.engine;
  if (!engine.desk && !given.elsewhere) throw std::invalid_argument("nobody takes the visual tokens");
  std::vector<run::WorkSource*> sources;
  if (engine.encoder) {
    vision.emplace(*engine.encoder, given.clock, given.patches);
    if (!tower) sources.push_back(&*vision);
  }
  if (engine.desk) {
    if (given.cache.cache)
      past.emplace(
          MemoryDesk::Parts{*engine.desk, *engine.questions, *engine.mover, *engine.transfer, *engine.folder},
          given.cache.most, given.seed);
    engine.desk->leave_to(std::make_shared<CountedPages>(given.metrics, past ? past->sink() : nullptr));
    windows.emplace(*engine.desk, *engine.questions,
                    WindowDesk::Options{.frames_per_patch = engine.frames_per_patch,
                                        .recalls = past ? &past->recalls() : nullptr});
    sources.push_back(&*windows);
    if (past) sources.push_back(&past->recalls());
  }
  executor.emplace(given.clock, sources);
  beat.emplace(given.board, given.device + " executor");
  deps.emplace(std::move(given));
  self->send(self, tick_atom_v);
  if (windows) self->send(answers, join_atom_v);
  if (past) self->send(deps->cache.cache, join_atom_v, deps->device);
}

void executor_state::join(const WatchPtr& watch, router_actor sender) {
  router = std::move(sender);
  const PatchQueue::Joined joined = vision->join(watch);
  const bool goes_on =
      joined.is_new ? !windows || apart.contains(watch->name) : outgoing.contains(watch->name);
  if (goes_on && joined.is_new) {
    Outgoing& camera = outgoing[watch->name] = {++sessions, {}};
    self->send(deps->elsewhere, tokens_atom_v, join_atom_v, watch, camera.session);
  } else if (goes_on) {
    self->send(deps->elsewhere, tokens_atom_v, watch);
  } else if (joined.is_new) {
    // A stream whose tokens came from elsewhere goes on.
    const bool is_there = incoming.erase(watch->name) > 0;
    vision->grant(watch->name, is_there ? windows->resume(watch) : windows->join(watch));
    remember(watch);
  } else {
    know_here(watch);
  }
  self->send(router, grant_atom_v, watch->name, joined.credits);
  settle();
}

void executor_state::take(const FramePatchPtr& patch) {
  if (vision->lacks(*patch)) {
    deps->metrics.frames_dropped(patch->watch.camera, "unknown", patch->frames.size());
    self->send(router, ack_of(*patch, PatchOutcome::unknown, "unknown"));
    return;
  }
  if (!vision->take(patch)) {
    deps->metrics.frames_dropped(patch->watch.camera, "queue_full", patch->frames.size());
    self->send(router, ack_of(*patch, PatchOutcome::dropped, "queue_full"));
    return;
  }
  schedule();
}

void executor_state::know(const WatchPtr& watch) {
  if (!vision->know(watch)) return;
  if (outgoing.contains(watch->name)) {
    self->send(deps->elsewhere, tokens_atom_v, watch);
  } else if (windows) {
    know_here(watch);
  }
}

void executor_state::explain(const Explain& request) {
  stream::StreamDesk& desk = *deps->engine.desk;
  std::optional<stream::StreamDesk::Loan> loan;
  if (target) loan = desk.lend(request.window, request.rule);
  if (loan) {
    self->send(target,
               std::make_shared<LentText>(LentText{deps->engine.desk, std::move(*loan), request.ticket}));
  } else if (desk.explain(request.window, request.rule)) {
    // What a window's memory shows is here alone.
    explanations.ask(request.window, request.rule, request.ticket);
  } else {
    self->send<caf::message_priority::high>(answers, Explanations::gone(request.ticket));
  }
  settle();
}

void executor_state::work() {
  scheduled = false;
  run::WorkSource* next = executor->next();
  if (next == nullptr) return;
  const bool encodes = vision && next == &*vision;
  beat->begins(encodes ? WorkBeat::Work::patches : WorkBeat::Work::rows,
               encodes ? vision->most() : static_cast<std::size_t>(deps->engine.desk->most_rows()));
  const auto begin = deps->clock.now();
  executor->run(*next);
  const auto end = deps->clock.now();
  // The time of what was answered begins now.
  if (windows) deps->engine.desk->expire(end);
  beat->took(encodes ? WorkBeat::Work::patches : WorkBeat::Work::rows, seconds_between(begin, end),
             encodes ? vision->last() : static_cast<std::size_t>(deps->engine.desk->last_rows()));
  if (deps->observer.piece) deps->observer.piece(encodes ? "vision" : "language", {begin, end});
  settle();
}

void executor_state::take_back(Encoded& encoded) {
  vision->finish(std::move(encoded));
  settle();
}

void executor_state::join(const WatchPtr& watch, std::uint32_t session, tokens_sender_actor sender) {
  const std::uint32_t credits = windows->resume(watch);
  remember(watch);
  self->send(sender, TokensRoom{watch->name, session, credits});
  incoming[watch->name] = {std::move(sender), session};
  settle();
}

void executor_state::take(const VisualPatchPtr& patch, const tokens_sender_actor& sender) {
  const std::string& camera = patch->watch.camera;
  TokensAck ack = ack_of(*patch, TokensOutcome::lost);
  const auto from = incoming.find(camera);
  if (from == incoming.end() || from->second.sender != sender) return self->send(sender, ack);
  try {
    VisualPatchPtr here = patch;
    if (deps->engine.transfer) {
      auto moved = std::make_shared<VisualPatch>(*patch);
      moved->tokens = deps->engine.transfer->to_device(patch->tokens);
      moved->whole =
          patch->whole == patch->tokens ? moved->tokens : deps->engine.transfer->to_device(patch->whole);
      here = std::move(moved);
    }
    const WindowDesk::Taken taken = push(*here);
    ack.outcome = taken.refused ? TokensOutcome::late : TokensOutcome::taken;
    ack.advice = taken.advice;
    encode_failures.succeeded(camera);
  } catch (const std::bad_alloc& error) {
    // Another one can come in its place.
    self->send(sender, TokensRoom{camera, from->second.session, 1});
    if (encode_failures.failed(camera, error.what()))
      deps->logger.error("stream: camera {}: visual tokens dropped: {}", camera, error.what());
  }
  ack.advice.is_behind = backlog.is_behind(deps->clock.now());
  self->send(sender, ack);
  settle();
}

void executor_state::hear(const TokensAck& ack) {
  const auto camera = outgoing.find(ack.camera);
  if (camera == outgoing.end()) return;
  auto patch = camera->second.patches.extract(std::pair(ack.generation, ack.sequence));
  if (!patch) return;
  PatchAck& own = patch.mapped().ack;
  if (ack.outcome != TokensOutcome::taken) {
    own.outcome = PatchOutcome::dropped;
    own.reason = ack.outcome == TokensOutcome::late ? "late" : "stream_lost";
    deps->metrics.frames_dropped(own.camera, own.reason, patch.mapped().frames);
  }
  own.advice = ack.advice;
  own.advice.is_behind = ack.advice.is_behind || backlog.is_behind(deps->clock.now());
  self->send(router, own);
}

void executor_state::settle() {
  if (vision) {
    tell_encoded();
    for (const std::string& camera : vision->take_ended()) {
      encode_failures.succeeded(camera);
      if (outgoing.erase(camera) > 0) {
        self->send(deps->elsewhere, tokens_atom_v, end_atom_v, camera);
      } else if (windows && !incoming.contains(camera)) {
        windows->end(camera);
      }
    }
  }
  if (windows) {
    const WindowDesk::News news = windows->take_news();
    tell_credits(news);
    tell_answered(news);
    tell_told(news);
    tell_budgets(news);
    tell_audits(news);
    tell_past(news.ended);
    for (const std::string& camera : news.ended) {
      window_failures.succeeded(camera);
      incoming.erase(camera);
      self->send<caf::message_priority::high>(answers, end_atom_v, camera);
    }
  }
  tell_usage();
  schedule();
}

void executor_state::tell_encoded() {
  std::optional<VisionDesk::Batch> batch = vision->take_batch();
  if (!batch) return;
  const Encoded& encoded = batch->encoded;
  const double seconds = seconds_between(encoded.span.begin, encoded.span.end);
  EncodedTokens tokens;
  // Both are in the order of the patches.
  auto its_ack = batch->acks.begin();
  for (const VisualPatchPtr& patch : encoded.patches) {
    while (its_ack->outcome != PatchOutcome::encoded) ++its_ack;
    const std::string& camera = patch->watch.camera;
    const std::int64_t groups = patch->tokens->kept.cells();
    tokens.kept += patch->tokens->count();
    tokens.pruned += groups - patch->tokens->count();
    tokens.not_computed += groups - patch->tokens->encoded;
    encode_failures.succeeded(camera);
    if (!outgoing.empty() && outgoing.contains(camera)) {
      send_on(patch, *its_ack++, encoded.span.end);
      continue;
    }
    const WindowDesk::Taken taken = push(*patch);
    if (taken.refused) {
      deps->metrics.frames_dropped(camera, "late", static_cast<std::uint64_t>(patch->frames));
      its_ack->outcome = PatchOutcome::dropped;
      its_ack->reason = "late";
    }
    its_ack->advice = taken.advice;
    if (const WatchPtr watch = windows->watch(camera); watch && !watch->lossless)
      backlog.encoded(patch->captured.steady, encoded.span.end);
    its_ack->advice.is_behind = backlog.is_behind(encoded.span.end);
    ++its_ack;
  }
  deps->metrics.encoded(seconds, encoded.patches.size(), tokens);
  std::size_t without_room = 0;
  for (std::size_t i = 0; i < encoded.failures.size(); ++i) {
    const Encoded::Failure& failure = encoded.failures[i];
    const std::string& camera = failure.patch->watch.camera;
    deps->metrics.frames_dropped(camera, failure.word(), failure.patch->frames.size());
    if (failure.kind == Encoded::Failure::Kind::unknown) continue;
    if (failure.kind == Encoded::Failure::Kind::out_of_memory) {
      ++without_room;
    } else if (encode_failures.failed(camera, failure.reason)) {
      const LogFields about(*batch->failed[i]);
      deps->logger.error("vision: camera {}: frames dropped: {}", camera, failure.reason);
    }
  }
  if (!encoded.too_many.empty())
    deps->logger.log(without_room > 0 ? spdlog::level::err : spdlog::level::warn,
                     "vision: {} of {} patches dropped, passes of at most {} from now on: {}", without_room,
                     batch->acks.size(), batch->limit, encoded.too_many);
  for (const PatchAck& ack : batch->acks)
    if (!is_sent_on(ack)) self->send(router, ack);
}

void executor_state::send_on(const VisualPatchPtr& patch, const PatchAck& ack, base::Clock::TimePoint now) {
  Outgoing& camera = outgoing.at(patch->watch.camera);
  camera.patches[{ack.generation, ack.sequence}] = {ack, static_cast<std::uint64_t>(patch->frames)};
  if (const WatchPtr watch = vision->watch(patch->watch); watch && !watch->lossless)
    backlog.encoded(patch->captured.steady, now);
  VisualPatchPtr sent = patch;
  if (deps->engine.transfer) {
    auto moved = std::make_shared<VisualPatch>(*patch);
    moved->tokens = deps->engine.transfer->to_host(patch->tokens);
    moved->whole =
        patch->whole == patch->tokens ? moved->tokens : deps->engine.transfer->to_host(patch->whole);
    sent = std::move(moved);
  }
  self->send(deps->elsewhere, std::move(sent));
}

bool executor_state::is_sent_on(const PatchAck& ack) const {
  if (outgoing.empty()) return false;
  const auto camera = outgoing.find(ack.camera);
  return camera != outgoing.end() && camera->second.patches.contains({ack.generation, ack.sequence});
}

WindowDesk::Taken executor_state::push(const VisualPatch& patch) {
  const std::string& camera = patch.watch.camera;
  WindowDesk::Taken taken = windows->push(patch);
  if (!taken.fit) return taken;
  deps->board.remark(camera, *taken.fit);
  const LogFields about(*windows->watch(camera));
  if (!taken.fit->empty()) deps->logger.warn("stream: camera {}: {}", camera, *taken.fit);
  return taken;
}

void executor_state::tell_credits(const WindowDesk::News& news) {
  for (const auto& [camera, credits] : news.credits) {
    const auto from = incoming.find(camera);
    if (from != incoming.end()) {
      self->send(from->second.sender, TokensRoom{camera, from->second.session, credits});
    } else if (vision) {
      vision->grant(camera, credits);
    }
  }
}

void executor_state::tell_answered(const WindowDesk::News& news) {
  const auto now = deps->clock.now();
  for (const auto& [window, tokens, begun, asked] : news.answered) {
    if (past) past->answered(*window);
    std::int64_t prompt_tokens = 0;
    std::int64_t reused = 0;
    for (const stream::Answer& each : window->answers) {
      prompt_tokens += each.prompt_tokens;
      // The first of a window's questions has computed what they share.
      reused += &each != &window->answers.front() ? each.shared_tokens : tokens.reused();
    }
    deps->metrics.prefilled(seconds_between(begun, now), prompt_tokens, reused);
    deps->metrics.window_tokens(tokens);
    deps->metrics.window_latency(seconds_between(window->captured.steady, now));
    deps->metrics.first_token(seconds_between(window->encoded.end, now));
    if (deps->observer.window) deps->observer.window(*window, {begun, now});
    if (!window->watch->lossless) backlog.answered(asked, window->watch->window.stride, now);
    window_failures.succeeded(window->watch->name);
    self->send<caf::message_priority::high>(answers, window);
  }
  if (!news.answered.empty()) deps->metrics.windows("answered", news.answered.size());
  if (news.overtaken > 0) {
    deps->metrics.windows("overtaken", news.overtaken);
    backlog.overtaken(now);
  }
  for (const auto& [watch, reason, out_of_memory] : news.failures) {
    deps->metrics.windows(out_of_memory ? "out_of_memory" : "failed", 1);
    if (!window_failures.failed(watch->name, reason)) continue;
    const LogFields about(*watch);
    deps->logger.error("stream: camera {}: no answer about a window: {}", watch->name, reason);
  }
  if (news.pressed)
    deps->logger.warn("stream: passes of at most {} rows from now on: {}", news.pressed->rows,
                      news.pressed->reason);
}

void executor_state::tell_told(const WindowDesk::News& news) {
  for (const stream::DeskNews::Told& each : news.told) {
    const Explanations::Told told = explanations.tell(each, deps->clock.now());
    deps->metrics.generated(told.seconds, told.tokens, told.later);
    self->send<caf::message_priority::high>(answers, told.explanation);
  }
}

void executor_state::tell_budgets(const WindowDesk::News& news) {
  for (const auto& [camera, usage, forgotten] : news.budgets)
    deps->metrics.camera_budget(camera, usage, static_cast<std::uint64_t>(forgotten));
  for (const auto& [watch, line, is_warning] : news.remarks) {
    const LogFields about(*watch);
    deps->logger.log(is_warning ? spdlog::level::warn : spdlog::level::info, "stream: camera {}: {}",
                     watch->name, line);
  }
}

void executor_state::tell_audits(const WindowDesk::News& news) {
  deps->metrics.audits(news.audits, news.audits_given_up);
  for (const auto& [camera, rule, agrees, difference] : news.audited)
    deps->metrics.audited(camera, rule, agrees, difference);
  for (const auto& [camera, steps] : news.less) deps->metrics.camera_pruned_less(camera, steps);
}

void executor_state::tell_usage() {
  const std::string& device = deps->device;
  if (vision) deps->metrics.queue_depth("vision", vision->waiting(), device);
  deps->metrics.device_behind(device, backlog.is_behind(deps->clock.now()));
  if (!windows) return;
  deps->metrics.queue_depth("stream", deps->engine.desk->waiting(), device);
  deps->metrics.requests(RequestKind::window, device, deps->engine.desk->placed(),
                         deps->engine.desk->waiting());
  if (!target) deps->metrics.requests(RequestKind::explanation, device, deps->engine.desk->texts(), 0);
  deps->metrics.kv_usage(device == "cpu" ? "host" : "gpu", device, deps->engine.desk->usage());
  const auto [tokens, host_bytes, device_bytes, room] = deps->engine.desk->window_memory();
  deps->metrics.window_memory(device, {tokens, host_bytes, device_bytes, room});
}

void executor_state::tick() {
  beat->idle();
  if (windows) deps->engine.desk->expire(deps->clock.now());
  settle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
}

void executor_state::schedule() {
  while (tower) {
    std::vector<FramePatchPtr> patches = vision->begin();
    if (patches.empty()) break;
    self->send(tower, std::make_shared<const std::vector<FramePatchPtr>>(std::move(patches)));
  }
  if (scheduled || executor->next() == nullptr) return;
  scheduled = true;
  self->send(self, work_atom_v);
}

void executor_state::give_up() {
  if (!windows) return;
  if (const std::size_t lost = windows->unanswered(); lost > 0) deps->metrics.windows("device_lost", lost);
}

executor_actor::behavior_type executor(executor_actor::stateful_pointer<executor_state> self,
                                       ExecutorDeps deps, answers_actor answers, target_actor target,
                                       tower_actor tower) {
  set_handlers(self, deps.logger);
  self->set_exit_handler([self](caf::exit_msg& message) {
    self->state.give_up();
    self->quit(message.reason);
  });
  self->state.start(std::move(deps), std::move(answers), std::move(target), std::move(tower));
  return {
      [self](join_atom, const WatchPtr& watch, std::uint32_t) {
        self->state.join(watch, caf::actor_cast<router_actor>(self->current_sender()));
      },
      [self](const WatchPtr& watch) { self->state.know(watch); },
      [self](const FramePatchPtr& patch) { self->state.take(patch); },
      [self](end_atom, const std::string& camera) {
        self->state.vision->end(camera);
        self->state.settle();
      },
      [self](grant_atom, std::uint32_t credits) {
        self->state.windows->grant(credits);
        self->state.schedule();
      },
      [self](const Explain& request) { self->state.explain(request); },
      [self](const Done& done) {
        self->state.deps->engine.desk->let_go(done.window);
        self->state.settle();
      },
      [self](const Returned& text) {
        self->state.deps->engine.desk->done(text.window, text.rule);
        self->state.settle();
      },
      [self](tokens_atom, join_atom, const WatchPtr& watch, std::uint32_t session) {
        self->state.join(watch, session, caf::actor_cast<tokens_sender_actor>(self->current_sender()));
      },
      [self](tokens_atom, const WatchPtr& watch) { self->state.know_here(watch); },
      [self](const VisualPatchPtr& patch) {
        self->state.take(patch, caf::actor_cast<tokens_sender_actor>(self->current_sender()));
      },
      [self](tokens_atom, end_atom, const std::string& camera) {
        self->state.windows->end(camera);
        self->state.settle();
      },
      [self](tokens_atom, const std::string& camera, bool is_apart) {
        if (is_apart) {
          self->state.apart.insert(camera);
        } else {
          self->state.apart.erase(camera);
        }
      },
      [self](tokens_atom, const Explain& request) { self->state.carry(request); },
      [self](const CarriedTextPtr& text) { self->state.go_on(text); },
      [self](const TokensRoom& room) {
        const auto camera = self->state.outgoing.find(room.camera);
        // Of a session before this one, it is nobody's.
        if (camera == self->state.outgoing.end() || camera->second.session != room.session) return;
        self->state.vision->grant(room.camera, room.patches);
        self->state.schedule();
      },
      [self](const TokensAck& ack) { self->state.hear(ack); },
      [self](const EncodedPtr& encoded) { self->state.take_back(*encoded); },
      [self](const WantedFormsPtr& wanted) { self->state.want(*wanted); },
      [self](const ShowPtr& show) { self->state.show(*show); },
      [self](const RecallPtr& recall) { self->state.recall(*recall); },
      [self](forget_atom, std::uint64_t ticket) { self->state.forget(ticket); },
      [self](work_atom) {
        try {
          self->state.work();
        } catch (...) {
          self->state.give_up();
          throw;
        }
      },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->quit(); },
  };
}

}  // namespace vigil::actors
