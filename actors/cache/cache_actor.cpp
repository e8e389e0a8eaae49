#include "actors/cache/cache_actor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "actors/messages/shell.h"
#include "actors/status/work_beat.h"

namespace vigil::actors {
namespace {

constexpr std::chrono::milliseconds kTick{250};
/// How long devices may take to end, before what they would still give is not waited for: of the few seconds
/// that a process has for all of this, most are for the disk.
constexpr std::chrono::seconds kDevicesPatience{2};
constexpr auto kCache = "cache";
constexpr auto kWriter = "cache writer";

}  // namespace

void cache_state::start(CacheDeps given) {
  desk.emplace(given.store, given.clock, given.options);
  series.emplace(given.metrics);
  if (given.store != nullptr) {
    for (std::size_t i = 0; i < given.readers; ++i) {
      const std::string called = "cache reader " + std::to_string(i);
      readers.push_back({spawn(self, given.threads, actors::reader,
                               ReaderDeps{*given.store, given.board, given.logger, called}),
                         called,
                         {}});
    }
    writer = spawn(
        self, given.threads, actors::writer,
        WriterDeps{*given.store, *desk->memory().queue(), given.clock, given.board, given.logger, kWriter},
        cache_actor(self));
  }
  deps.emplace(std::move(given));
  self->send(self, tick_atom_v);
}

void cache_state::join(const std::string& device, const recalling_actor& who) {
  self->monitor(who);
  self->send(who, std::make_shared<const WantedForms>(WantedForms{desk->memory().wanted()}));
  devices.insert_or_assign(who.address(), Device{device, who, {}, {}});
  for (const Recall& each : std::exchange(waiting, {})) tell(each);
}

void cache_state::ended(const caf::down_msg& message) {
  if (const auto device = devices.extract(message.source)) {
    const std::set<std::uint64_t>& recalls = device.mapped().recalls;
    desk->lost({recalls.begin(), recalls.end()});
    for (const std::uint64_t show : device.mapped().shows) shown(show);
    settle();
    if (stopping && devices.empty()) finish();
    return;
  }
  const auto is_it = [&](const auto& each) { return each && each.address() == message.source; };
  const auto reader =
      std::find_if(readers.begin(), readers.end(), [&](const Reader& each) { return is_it(each.who); });
  if (reader != readers.end()) {
    deps->board.silent(reader->name);
    const auto wanted = std::move(reader->wanted);
    readers.erase(reader);
    // Another one may fail over it, too: another form of these pages may do.
    for (const auto& [id, pages] : wanted) {
      ReadPages none = unread(*pages, "its reader has ended");
      desk->read(none);
    }
    return settle();
  }
  if (is_it(writer)) {
    deps->board.silent(kWriter);
    writer = nullptr;
  }
  if (finishing && !writer) quit();
}

void cache_state::take(const PastRequest& request, past_listener_actor from) {
  PastRequest own = request;
  own.ticket = ++tickets;
  const bool is_question = std::holds_alternative<PastQuestion>(request.what);
  askers.emplace(own.ticket,
                 Asker{std::move(from), request.ticket, is_question, deps->clock.now(), request.deadline});
  desk->take(own);
  settle();
}

void cache_state::forget(std::uint64_t ticket, const past_listener_actor& from) {
  const auto asker = std::find_if(askers.begin(), askers.end(), [&](const auto& each) {
    return each.second.ticket == ticket && each.second.who == from;
  });
  if (asker == askers.end()) return;
  desk->forget(asker->first);
  askers.erase(asker);
  settle();
}

void cache_state::tell(const Recall& recall) {
  const auto least = std::min_element(devices.begin(), devices.end(), [](const auto& a, const auto& b) {
    return a.second.recalls.size() < b.second.recalls.size();
  });
  if (least == devices.end()) return waiting.push_back(recall);
  least->second.recalls.insert(recall.ticket);
  self->send(least->second.who, std::make_shared<const Recall>(recall));
}

bool cache_state::tell(const Show& show) {
  const auto message = std::make_shared<const Show>(show);
  for (auto& [address, device] : devices) {
    device.shows.insert(show.ticket);
    self->send(device.who, message);
  }
  return !devices.empty();
}

void cache_state::shown(std::uint64_t show) {
  const bool is_awaited = std::any_of(devices.begin(), devices.end(),
                                      [&](const auto& each) { return each.second.shows.contains(show); });
  if (!is_awaited) desk->shown(show);
}

void cache_state::tell(PagesToRead wanted, std::vector<ReadPages>& unread_pages) {
  if (readers.empty()) return unread_pages.push_back(unread(wanted, "nobody reads the disk any more"));
  Reader& reader = readers[next_reader++ % readers.size()];
  const auto pages = std::make_shared<const PagesToRead>(std::move(wanted));
  reader.wanted.emplace(pages->id, pages);
  self->send(reader.who, pages);
}

void cache_state::take(ReadPages& pages) {
  for (Reader& each : readers) each.wanted.erase(pages.id);
  desk->read(pages);
  settle();
}

void cache_state::tell_replies(std::vector<PastReply> replies) {
  const auto now = deps->clock.now();
  for (PastReply& reply : replies) {
    const auto asker = askers.find(reply.ticket);
    if (asker == askers.end()) continue;
    reply.ticket = asker->second.ticket;
    const PastOutcome outcome = reply.outcome;
    const bool is_last = outcome != PastOutcome::progress;
    self->send(asker->second.who, std::make_shared<const PastReply>(std::move(reply)));
    if (!is_last) continue;
    if (asker->second.is_question)
      series->question(outcome, std::chrono::duration<double>(now - asker->second.asked).count());
    askers.erase(asker);
  }
}

void cache_state::count(const CacheDesk::News& news) {
  for (const std::string& line : news.warnings) deps->logger.warn("cache: {}", line);
  const CacheDesk::Counts& counts = news.counts;
  series->kept(counts.pages);
  for (const auto& [why, pages] : counts.lost) series->lost(why, pages);
  series->unwritten(counts.unwritten);
  series->written(counts.written_bytes);
  series->removed(counts.removed_bytes);
  series->failed_writes(counts.failed_writes);
  series->read(counts.host_bytes, counts.disk_bytes);
  series->erasures(counts.erasures);
  const memory::HostTier& host = desk->memory().host();
  const memory::PartQueue* const queue = desk->memory().queue();
  series->usage({host.used(), host.bytes(), queue == nullptr ? 0 : queue->waiting()});
}

void cache_state::settle() {
  CacheDesk::News news = desk->take_news();
  count(news);
  if (news.wanted)
    for (const auto& [address, device] : devices)
      self->send(device.who, std::make_shared<const WantedForms>(*news.wanted));
  std::vector<ReadPages> unread_pages;
  for (PagesToRead& each : news.to_read) tell(std::move(each), unread_pages);
  for (const std::uint64_t ticket : news.forgotten) {
    std::erase_if(waiting, [&](const Recall& each) { return each.ticket == ticket; });
    for (auto& [address, device] : devices)
      if (device.recalls.erase(ticket) > 0) self->send(device.who, forget_atom_v, ticket);
  }
  for (const Recall& each : news.recalls) tell(each);
  // What is over no more, since it is kept for longer now, must not wait for a disk that fails.
  if (writer && news.was_aged && (!news.aged.empty() || has_expiries)) {
    has_expiries = !news.aged.expiries.empty();
    self->send(writer, std::make_shared<const Expiries>(Expiries{std::move(news.aged.expiries),
                                                                 std::move(news.aged.forgotten),
                                                                 std::move(news.aged.notes)}));
  }
  if (writer && news.wakes_writer) self->send(writer, work_atom_v);
  tell_replies(std::move(news.replies));
  bool goes_on = !unread_pages.empty();
  for (ReadPages& each : unread_pages) desk->read(each);
  for (const Show& each : news.shows) {
    if (tell(each)) continue;
    desk->shown(each.ticket);
    goes_on = true;
  }
  if (goes_on) settle();
}

void cache_state::give_up_late() {
  const auto now = deps->clock.now();
  std::vector<std::uint64_t> late;
  for (const auto& [ticket, asker] : askers)
    if (asker.deadline <= now) late.push_back(ticket);
  std::vector<PastReply> replies;
  for (const std::uint64_t ticket : late) {
    desk->forget(ticket);
    replies.push_back({ticket, PastOutcome::too_late, "its time is over", {}});
  }
  tell_replies(std::move(replies));
}

void cache_state::beat() {
  deps->board.beat(kCache, kIdlePatience, /*vital=*/false);
}

void cache_state::quit() {
  deps->board.silent(kCache);
  self->quit();
}

void cache_state::tick() {
  beat();
  give_up_late();
  desk->tick();
  settle();
  // Parts are complete by their time, too.
  if (writer && desk->memory().queue()->due().value_or(base::Clock::TimePoint::max()) <= deps->clock.now())
    self->send(writer, work_atom_v);
  self->delayed_send(self, kTick, tick_atom_v);
}

void cache_state::stop() {
  // Who has not ended by then is not waited for.
  if (std::exchange(stopping, true)) return finish();
  std::vector<PastReply> replies;
  for (const auto& [ticket, asker] : askers) {
    desk->forget(ticket);
    replies.push_back({ticket, PastOutcome::unavailable, "this process ends", {}});
  }
  tell_replies(std::move(replies));
  if (devices.empty() || !writer) return finish();
  self->delayed_send(self, kDevicesPatience, stop_atom_v);
}

void cache_state::finish() {
  if (std::exchange(finishing, true)) return;
  for (const Reader& each : readers) self->send(each.who, stop_atom_v);
  if (!writer) return quit();
  desk->finish();
  settle();
  self->send(writer, stop_atom_v);
}

cache_actor::behavior_type cache(cache_actor::stateful_pointer<cache_state> self, CacheDeps deps) {
  set_handlers(self, deps.logger);
  self->set_down_handler([self](caf::down_msg& message) { self->state.ended(message); });
  self->state.start(std::move(deps));
  return {
      [self](join_atom, const std::string& device) {
        self->state.join(device, caf::actor_cast<recalling_actor>(self->current_sender()));
      },
      [self](const WatchPtr& watch) {
        self->state.desk->watch(watch);
        self->state.settle();
      },
      [self](end_atom, const std::string& camera) {
        self->state.desk->end(camera);
        self->state.settle();
      },
      [self](const KeepsPtr& keeps) {
        self->state.desk->keep(*keeps);
        self->state.settle();
      },
      [self](const LeftPagesPtr& pages) {
        self->state.desk->take(*pages);
        self->state.settle();
      },
      [self](const ShownPtr& shown) {
        const auto device =
            self->state.devices.find(caf::actor_cast<caf::actor_addr>(self->current_sender()));
        if (device == self->state.devices.end() || device->second.shows.erase(shown->ticket) == 0) return;
        self->state.shown(shown->ticket);
        self->state.settle();
      },
      [self](const RecalledPtr& recalled) {
        const auto device =
            self->state.devices.find(caf::actor_cast<caf::actor_addr>(self->current_sender()));
        if (device != self->state.devices.end()) device->second.recalls.erase(recalled->ticket);
        self->state.desk->recalled(*recalled);
        self->state.settle();
      },
      [self](const PastRequestPtr& request) {
        self->state.take(*request, caf::actor_cast<past_listener_actor>(self->current_sender()));
      },
      [self](forget_atom, std::uint64_t ticket) {
        self->state.forget(ticket, caf::actor_cast<past_listener_actor>(self->current_sender()));
      },
      [self](const ReadPagesPtr& pages) { self->state.take(*pages); },
      [self](const DiskNewsPtr& news) {
        self->state.desk->hear(*news);
        self->state.settle();
      },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->state.stop(); },
  };
}

}  // namespace vigil::actors
