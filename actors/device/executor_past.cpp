// What an executor does for the cache.
#include <exception>
#include <memory>
#include <utility>

#include "actors/device/executor_actor.h"
#include "actors/messages/fault.h"

namespace vigil::actors {

void executor_state::know_here(const WatchPtr& watch) {
  windows->know(watch);
  remember(watch);
}

void executor_state::remember(const WatchPtr& watch) {
  if (past && past->watch(watch)) self->send(deps->cache.cache, watch);
}

void executor_state::want(const WantedForms& wanted) {
  if (past) past->want(wanted.forms);
}

void executor_state::show(const Show& show) {
  if (past) past->show(show);
  settle();
}

void executor_state::recall(const Recall& recall) {
  if (past) past->recall(recall);
  settle();
}

void executor_state::forget(std::uint64_t ticket) {
  if (past) past->forget(ticket);
  settle();
}

void executor_state::tell_past(const std::vector<std::string>& ended) {
  if (!past) return;
  for (const std::string& camera : ended) past->end(camera);
  MemoryDesk::News news = past->take_news();
  for (Recalled& each : news.recalled)
    self->send(deps->cache.cache, std::make_shared<const Recalled>(std::move(each)));
  if (news.pages.failure) {
    const std::string reason = reason_of(fault_of(news.pages.failure), self->system());
    if (page_failures.failed(deps->device, reason))
      deps->logger.error("stream: {}: a page of what is remembered was lost: {}", deps->device, reason);
  }
  if (news.has_pages())
    self->send(deps->cache.cache, std::make_shared<LeftPages>(LeftPages{std::move(news.pages)}));
  for (const Shown& each : news.shown) self->send(deps->cache.cache, std::make_shared<const Shown>(each));
  for (const std::string& camera : ended) self->send(deps->cache.cache, end_atom_v, camera);
}

}  // namespace vigil::actors
