// The part of the past's shell that has its cache erase what the registry says, tells that there, and cleans
// up.
#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "fleet/past/past_actor.h"

namespace vigil::fleet {
namespace {

/// Until what the registry or the disk did not do is tried again, at first and at last.
constexpr base::Duration kTryAgain{5'000};
constexpr base::Duration kTryAgainAtLast{300'000};
/// How often it is looked whether what is done can be removed.
constexpr base::Duration kLook{30'000};

/// What a cache says of an erasure that it has done.
std::size_t pages_of(const std::string& body) {
  const nlohmann::json erased = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (!erased.is_object()) return 0;
  const auto pages = erased.find("pages");
  return pages != erased.end() && pages->is_number_unsigned() ? pages->get<std::size_t>() : 0;
}

}  // namespace

void past_state::commit(cluster::RegistryTransaction transaction,
                        std::function<void(const cluster::RegistryResult<cluster::RegistryCommit>&)> then) {
  deps->registry.commit(std::move(transaction), [way = *loop, then = std::move(then)](auto result) mutable {
    way.post([then = std::move(then), result = std::move(result)] { then(result); });
  });
}

void past_state::see() {
  for (const std::string& line : book->see(mirror->entries()))
    if (faults.insert(line).second) deps->logger.error("past: {}", line);
  knows_erasures = true;
  register_here();
  for (const FleetErasure& each : book->take_new()) desk->erased(each);
  do_erasures();
  for (const auto& [ask, who] : std::exchange(held, {})) answer(ask, who);
  series->waiting(book->waiting());
  settle();
}

void past_state::register_here() {
  // Again, when the registry has forgotten it: an erasure would not wait for this node.
  if (!deps->cache || !knows_erasures || is_registering) return;
  cluster::RegistryTransaction begin = book->begin(deps->has_disk);
  if (begin.changes.empty()) return;
  is_registering = true;
  commit(std::move(begin), [this](const auto&) { is_registering = false; });
}

void past_state::look_at_erasures() {
  if (!book->has_erasures() || is_looking || !owner || !mirror->is_current()) return;
  // Nobody waits for what is only to be cleaned up.
  if (!desk->is_erasing() && deps->clock.now() < next_look) return;
  next_look = deps->clock.now() + kLook;
  is_looking = true;
  self->request(owner, deps->patience, stand_atom_v)
      .then(
          [this](const NodeStandingPtr& standing) {
            is_looking = false;
            // By what is there now, and not by what was there when an erasure was ordered.
            know_present(*standing);
            desk->see_book();
            settle();
            if (!deps->is_gateway) return;
            cluster::RegistryTransaction over = book->clean_up(deps->clock.now());
            // What is not removed now is so later.
            if (!over.changes.empty()) commit(std::move(over), [](const auto&) {});
          },
          [this](const caf::error&) { is_looking = false; });
}

void past_state::know_present(const NodeStanding& standing) {
  std::set<std::string> there;
  for (const auto& [node, record] : standing.nodes) there.insert(node);
  book->present(std::move(there));
  series->waiting(book->waiting());
}

void past_state::do_erasures() {
  if (!deps->cache) return;
  for (ErasureBook::Due& due : book->take_due()) {
    auto request = std::make_shared<actors::PastRequest>();
    request->ticket = ++tickets;
    request->rights = {std::nullopt, true};
    request->what = actors::PastErasure{{due.what.camera.camera, due.what.camera.tenant}, due.what.wall};
    erasing.emplace(request->ticket, std::move(due.id));
    self->send(deps->cache, actors::PastRequestPtr(std::move(request)));
  }
}

void past_state::erased(const std::string& id, const actors::PastReply& word) {
  if (word.outcome == actors::PastOutcome::answer || word.is_unknown) {
    const std::size_t pages = word.is_unknown ? 0 : pages_of(word.text);
    deps->logger.warn("past: erased {} pages, as the registry says ({})", pages, id);
    waits.erase(id);
    return tell_done(id, pages);
  }
  // What does not work for long is tried less often.
  base::Duration& wait = waits.try_emplace(id, kTryAgain).first->second;
  deps->logger.error("past: an erasure is not done yet, and tried again: {}", word.text);
  self->delayed_send(self, std::exchange(wait, std::min(2 * wait, kTryAgainAtLast)), Piece{[this, id] {
                       book->again(id);
                       do_erasures();
                     }});
}

void past_state::tell_done(const std::string& id, std::size_t pages) {
  if (book->had_disk() && !deps->has_disk) {
    deps->logger.error(
        "past: an erasure waits for what this node has kept on a disk before: it has no memory.dir now ({})",
        id);
    return;
  }
  cluster::RegistryTransaction done = book->done(id, pages);
  // It is over: others were done, and this node did not count.
  if (done.changes.empty()) return;
  commit(std::move(done), [this, id, pages](const auto& result) {
    if (std::holds_alternative<cluster::RegistryFailure>(result))
      self->delayed_send(self, kTryAgain, Piece{[this, id, pages] { tell_done(id, pages); }});
  });
}

}  // namespace vigil::fleet
