#include "actors/cache/disk_actors.h"

#include <exception>
#include <memory>
#include <utility>

#include "actors/messages/shell.h"
#include "actors/status/work_beat.h"
#include "engine/memory/memory.h"

namespace vigil::actors {
namespace {

ReadPages pages_of(const history::HistoryStore& store, const PagesToRead& wanted) {
  ReadPages pages;
  pages.id = wanted.id;
  try {
    if (wanted.names.empty()) {
      pages.verified = store.verify(wanted.camera, memory::Memory::kNumbersAPage);
    } else {
      pages.values = store.read(wanted.camera.value(), wanted.names);
    }
  } catch (const std::exception& error) {
    return unread(wanted, error.what());
  }
  return pages;
}

}  // namespace

void reader_state::idle() {
  deps->board.beat(deps->name, kIdlePatience, /*vital=*/false);
}

void reader_state::read(const PagesToRead& wanted) {
  // To verify takes as long as there is to be read.
  if (wanted.names.empty()) {
    deps->board.silent(deps->name);
  } else {
    deps->board.beat(deps->name, kReadingPatience, /*vital=*/false);
  }
  self->send(caf::actor_cast<cache_actor>(self->current_sender()),
             std::make_shared<ReadPages>(pages_of(deps->store, wanted)));
  idle();
}

void reader_state::tick() {
  idle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
}

reader_actor::behavior_type reader(reader_actor::stateful_pointer<reader_state> self, ReaderDeps deps) {
  set_handlers(self, deps.logger);
  self->state.deps.emplace(std::move(deps));
  self->send(self, tick_atom_v);
  return {
      [self](const PagesToReadPtr& wanted) { self->state.read(*wanted); },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->quit(); },
  };
}

void writer_state::tell(DiskNews news) {
  if (news.written.empty() && !news.has_erased && news.failure.empty() && news.retired.pages == 0) return;
  self->send(cache, std::make_shared<const DiskNews>(std::move(news)));
}

void writer_state::idle() {
  deps->board.beat(deps->name, kIdlePatience, /*vital=*/false);
}

void writer_state::work() {
  deps->board.beat(deps->name, kWritingPatience, /*vital=*/false);
  bool goes_on = false;
  tell(writing->turn(goes_on));
  if (goes_on) self->send(self, work_atom_v);
  idle();
}

void writer_state::finish() {
  // One turn after the other.
  deps->board.silent(deps->name);
  tell(writing->finish());
  self->quit();
}

void writer_state::tick() {
  idle();
  self->delayed_send(self, kBeatTick, tick_atom_v);
}

writer_actor::behavior_type writer(writer_actor::stateful_pointer<writer_state> self, WriterDeps deps,
                                   cache_actor cache) {
  set_handlers(self, deps.logger);
  self->state.writing.emplace(deps.store, deps.queue, deps.clock);
  self->state.cache = std::move(cache);
  self->state.deps.emplace(std::move(deps));
  self->send(self, tick_atom_v);
  return {
      [self](work_atom) { self->state.work(); },
      [self](const ExpiriesPtr& expiries) {
        self->state.writing->retire(expiries->expiries);
        self->state.writing->forget(expiries->forgotten);
        self->state.writing->note(expiries->notes);
        self->state.work();
      },
      [self](tick_atom) { self->state.tick(); },
      [self](stop_atom) { self->state.finish(); },
  };
}

}  // namespace vigil::actors
