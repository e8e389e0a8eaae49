#include "fleet/past/past_desk.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include "actors/cache/past_text.h"

namespace vigil::fleet {
namespace {

using actors::PastOutcome;

/// Before the asker's own time is over, so that he is told what is left and not only that it is over.
constexpr std::chrono::milliseconds kAhead{500};
const std::string kUnknownOrder = "whether it is ordered is not known, ask again: the registry: ";

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& each : names) text += (text.empty() ? "" : ", ") + each;
  return text;
}

}  // namespace

void PastDesk::take(const actors::PastRequest& request) {
  const std::uint64_t id = ++ids_;
  Asked& asked = asked_[id];
  asked.request = request;
  const auto* const erasure = std::get_if<actors::PastErasure>(&request.what);
  if (erasure == nullptr) return put(id, asked, request);
  asked.finds_camera = true;
  actors::PastRequest list = request;
  list.what = actors::PastList{erasure->camera};
  put(id, asked, list);
}

void PastDesk::put(std::uint64_t id, Asked& asked, const actors::PastRequest& what) {
  asked.waiting.reset();
  news_.wanted.push_back({id, what});
  news_.wanted.back().what.ticket = id;
}

void PastDesk::forget(std::uint64_t ticket) {
  const auto entry = std::find_if(asked_.begin(), asked_.end(),
                                  [&](const auto& each) { return each.second.request.ticket == ticket; });
  if (entry == asked_.end()) return;
  erase(entry);
}

void PastDesk::erase(Entry entry) {
  news_.over.push_back(entry->first);
  asked_.erase(entry);
}

void PastDesk::nodes(std::uint64_t id, const std::vector<std::string>& asked,
                     const std::vector<std::string>& silent) {
  const auto entry = asked_.find(id);
  if (entry == asked_.end()) return;
  entry->second.waiting.emplace(asked.begin(), asked.end());
  entry->second.silent = silent;
  gather(entry);
}

void PastDesk::absent(std::uint64_t id, const std::string& node) {
  const auto entry = asked_.find(id);
  if (entry == asked_.end() || !entry->second.waiting || entry->second.waiting->erase(node) == 0) return;
  gather(entry);
}

bool PastDesk::is_erasing() const {
  return std::any_of(asked_.begin(), asked_.end(),
                     [](const auto& each) { return !each.second.erasure.empty(); });
}

bool PastDesk::waits(std::uint64_t id, const std::string& node) const {
  const auto entry = asked_.find(id);
  return entry != asked_.end() && entry->second.waiting && entry->second.waiting->contains(node);
}

void PastDesk::silent(std::uint64_t id, const std::string& node) {
  const auto entry = asked_.find(id);
  if (entry == asked_.end() || !entry->second.waiting || entry->second.waiting->erase(node) == 0) return;
  entry->second.silent.push_back(node);
  gather(entry);
}

void PastDesk::hear(std::uint64_t id, const std::string& node, const actors::PastReply& word) {
  const auto entry = asked_.find(id);
  if (entry == asked_.end()) return;
  Asked& asked = entry->second;
  if (!asked.waiting || !asked.waiting->contains(node)) return;
  if (word.outcome == PastOutcome::progress) {
    asked.progress[node] = word.text;
    return progress(asked);
  }
  asked.waiting->erase(node);
  if (word.outcome == PastOutcome::answer) {
    // Of a build that says it otherwise, nothing is known.
    const bool makes_sense = std::holds_alternative<std::string>(joined(asked, {{node, word.text}}, {}));
    if (makes_sense) {
      asked.bodies.push_back({node, word.text});
    } else {
      asked.silent.push_back(node);
    }
  } else if (word.is_unknown) {
    asked.unknown = word;
  } else {
    asked.refusals.push_back(word);
    const bool is_asker = word.outcome == PastOutcome::bad_request || word.outcome == PastOutcome::forbidden;
    if (!is_asker) {
      asked.refusals.back().text = "node " + node + ": " + word.text;
      asked.silent.push_back(node);
    }
  }
  gather(entry);
}

void PastDesk::clip_nodes(std::uint64_t id, const std::vector<std::string>& asked) {
  const auto entry = asked_.find(id);
  if (entry == asked_.end() || !entry->second.answer) return;
  entry->second.clip_nodes.emplace(asked.begin(), asked.end());
  gather_clips(entry);
}

void PastDesk::clips(std::uint64_t id, const std::string& node, const std::optional<FoundClips>& found) {
  const auto entry = asked_.find(id);
  if (entry == asked_.end()) return;
  Asked& asked = entry->second;
  if (!asked.clip_nodes || asked.clip_nodes->erase(node) == 0) return;
  if (found) asked.clips.push_back(*found);
  gather_clips(entry);
}

void PastDesk::gather_clips(Entry entry) {
  const Asked& asked = entry->second;
  if (asked.clip_nodes->empty()) finish(entry, PastOutcome::answer, with_clips(*asked.answer, asked.clips));
}

void PastDesk::answered(Entry entry, std::string answer) {
  auto wish = clips_of(answer);
  if (!wish) return finish(entry, PastOutcome::answer, std::move(answer));
  entry->second.answer = std::move(answer);
  entry->second.waiting.reset();
  news_.clips.push_back({entry->first, *std::move(wish)});
}

void PastDesk::progress(const Asked& asked) {
  std::vector<NodeBody> bodies;
  bodies.reserve(asked.progress.size());
  for (const auto& [node, json] : asked.progress) bodies.push_back({node, json});
  const Joined one = join_progress(bodies);
  if (const auto* const text = std::get_if<std::string>(&one)) say(asked, PastOutcome::progress, *text);
}

void PastDesk::say(const Asked& asked, PastOutcome outcome, std::string text) {
  actors::PastReply reply;
  reply.ticket = asked.request.ticket;
  reply.outcome = outcome;
  reply.text = std::move(text);
  news_.replies.push_back(std::move(reply));
}

void PastDesk::finish(Entry entry, PastOutcome outcome, std::string text) {
  say(entry->second, outcome, std::move(text));
  erase(entry);
}

void PastDesk::finish(Entry entry, actors::PastReply reply) {
  reply.ticket = entry->second.request.ticket;
  news_.replies.push_back(std::move(reply));
  erase(entry);
}

std::optional<actors::PastReply> PastDesk::refusal(const Asked& asked) const {
  // What is the asker's own fault goes ahead of what nodes cannot do now.
  for (const actors::PastReply& each : asked.refusals)
    if (each.outcome == PastOutcome::bad_request || each.outcome == PastOutcome::forbidden) return each;
  if (!asked.bodies.empty()) return std::nullopt;
  if (!asked.refusals.empty()) return asked.refusals.front();
  actors::PastReply none;
  none.outcome = PastOutcome::unavailable;
  if (asked.unknown && asked.silent.empty()) return asked.unknown;
  if (asked.unknown) {
    none.text =
        asked.unknown->text + " at nodes that answer, and of these nobody knows: " + listed(asked.silent);
  } else if (!asked.silent.empty()) {
    none.text = "no node that remembers answers: " + listed(asked.silent);
  } else {
    none.text = "no node of this fleet remembers anything (memory.enabled, role stream)";
  }
  return none;
}

void PastDesk::gather(Entry entry) {
  Asked& asked = entry->second;
  if (!asked.waiting->empty()) return;
  std::sort(asked.silent.begin(), asked.silent.end());
  if (asked.finds_camera) return found_camera(entry);
  if (auto refused = refusal(asked)) return finish(entry, *std::move(refused));
  const Joined one = joined(asked, asked.bodies, asked.silent);
  const auto* const text = std::get_if<std::string>(&one);
  if (text == nullptr) return finish(entry, PastOutcome::bad_request, std::get<NotOne>(one).line);
  if (std::holds_alternative<actors::PastQuestion>(asked.request.what)) return answered(entry, *text);
  finish(entry, PastOutcome::answer, *text);
}

Joined PastDesk::joined(const Asked& asked, const std::vector<NodeBody>& bodies,
                        const std::vector<std::string>& silent) {
  if (std::holds_alternative<actors::PastQuestion>(asked.request.what)) return join_answers(bodies, silent);
  if (const auto* const list = std::get_if<actors::PastList>(&asked.request.what))
    return join_lists(bodies, silent, list->camera.has_value());
  if (const auto* const verify = std::get_if<actors::PastVerify>(&asked.request.what))
    return join_verified(bodies, silent, verify->camera.has_value());
  return join_lists(bodies, silent, /*of_one=*/true);
}

void PastDesk::found_camera(Entry entry) {
  Asked& asked = entry->second;
  const Joined list = join_lists(asked.bodies, asked.silent, /*of_one=*/true);
  if (const auto* const fault = std::get_if<NotOne>(&list))
    return finish(entry, PastOutcome::bad_request, fault->line);
  std::vector<std::string> tenants = tenants_of(std::get<std::string>(list));
  const auto& camera = std::get<actors::PastErasure>(asked.request.what).camera;
  const auto& theirs = asked.request.rights.tenants;
  // A node that is away may have it: whose it is has to be said then.
  const bool is_named = camera.tenant && (!theirs || theirs->contains(*camera.tenant));
  if (tenants.empty() && is_named && !asked.silent.empty()) tenants = {*camera.tenant};
  if (tenants.empty()) {
    auto refused = refusal(asked);
    if (!refused) return finish(entry, PastOutcome::unavailable, "no node says whose camera that is");
    if (asked.unknown && !asked.silent.empty())
      refused->text += ": name its tenant, and it is erased there at their return";
    return finish(entry, *std::move(refused));
  }
  if (!asked.request.rights.erase) return finish(entry, PastOutcome::forbidden, "this key may not erase");
  order(entry, tenants.front());
}

void PastDesk::order(Entry entry, const std::string& tenant) {
  Asked& asked = entry->second;
  const auto& erasure = std::get<actors::PastErasure>(asked.request.what);
  asked.finds_camera = false;
  asked.erasure = name_ + '-' + std::to_string(entry->first);
  // What is not seen yet is not meant, whenever a node does it.
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(clock_.wall().time_since_epoch()).count();
  asked.what = {{tenant, erasure.camera.name}, {erasure.wall.from, std::min(erasure.wall.to, now)}};
  news_.orders.push_back({entry->first, asked.erasure, asked.what});
}

void PastDesk::ordered(std::uint64_t id, const std::string& failure) {
  const auto entry = asked_.find(id);
  if (entry == asked_.end()) return;
  if (!failure.empty()) return finish(entry, PastOutcome::unavailable, kUnknownOrder + failure);
  entry->second.is_ordered = true;
}

void PastDesk::erased(const FleetErasure& what) {
  for (auto entry = asked_.begin(); entry != asked_.end();) {
    const auto each = entry++;
    const auto* const question = std::get_if<actors::PastQuestion>(&each->second.request.what);
    if (question == nullptr) continue;
    const actors::PastCamera& camera = question->camera;
    const bool is_of_it =
        camera.name == what.camera.camera && (!camera.tenant || *camera.tenant == what.camera.tenant);
    if (is_of_it && question->wall.meets(what.wall))
      finish(each, PastOutcome::unavailable, "what it was about was erased meanwhile");
  }
}

void PastDesk::see_book() {
  for (auto entry = asked_.begin(); entry != asked_.end();) {
    const auto each = entry++;
    if (!each->second.erasure.empty()) look_at(each);
  }
}

void PastDesk::look_at(Entry entry) {
  Asked& asked = entry->second;
  if (!book_.knows(asked.erasure)) {
    // Not seen yet; or the registry was set back.
    if (asked.was_seen)
      finish(entry, PastOutcome::unavailable, kUnknownOrder + std::string("it is not there any more"));
    return;
  }
  asked.was_seen = true;
  asked.pages = book_.pages(asked.erasure);
  if (book_.left(asked.erasure).empty())
    finish(entry, PastOutcome::answer,
           actors::erasure_text(asked.what.camera, asked.what.wall, asked.pages, /*is_finished=*/true));
}

void PastDesk::tick() {
  const auto now = clock_.now();
  for (auto entry = asked_.begin(); entry != asked_.end();) {
    const auto each = entry++;
    Asked& asked = each->second;
    if (asked.request.deadline == base::Clock::TimePoint::max() || asked.request.deadline - kAhead > now)
      continue;
    if (asked.answer) {
      finish(each, PastOutcome::answer, with_clips(*asked.answer, asked.clips));
      continue;
    }
    if (asked.erasure.empty()) {
      // Whoever has not answered by now is silent; what the others say is worth more than nothing.
      if (!asked.waiting) {
        finish(each, PastOutcome::too_late, "it did not become known in time who remembers");
        continue;
      }
      if (asked.finds_camera) {
        finish(each, PastOutcome::too_late, "it did not become known in time whose camera that is");
        continue;
      }
      for (const std::string& node : std::exchange(*asked.waiting, {})) asked.silent.push_back(node);
      gather(each);
      continue;
    }
    if (!asked.is_ordered && !asked.was_seen) {
      finish(each, PastOutcome::unavailable, kUnknownOrder + std::string("it has not answered in time"));
      continue;
    }
    const std::vector<std::string> left = book_.left(asked.erasure);
    finish(each, PastOutcome::unavailable,
           "it is ordered, and not done yet by " + (left.empty() ? "some nodes" : listed(left)) +
               ": who is away does it at its return");
  }
}

}  // namespace vigil::fleet
