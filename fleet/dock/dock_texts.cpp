// The part of the dock's shell by which texts of this node's streams go on at other nodes, and theirs here.
#include <algorithm>
#include <string>
#include <utility>

#include "actors/messages/carried_text.h"
#include "fleet/dock/dock_actor.h"

namespace vigil::fleet {
namespace {

/// To one node at once: texts, and bytes of their pages. Others stay.
constexpr std::size_t kMostTexts = 32;
constexpr std::uint64_t kMostUnderWay = std::uint64_t{512} << 20;
/// How long a text may be with another node: then there is still time to explain it here, before whoever has
/// asked gives it up (actors::kExplanationPatience).
constexpr std::chrono::seconds kTextPatience{6};

}  // namespace

// --- of this node's streams ---

void dock_state::know(const TextsAt& place) {
  Generating& known = generating[place.camera];
  if (place.fence < known.fence) return;
  known = {place.node, place.fence};
  // So that it is there when the first text is.
  if (!place.node.empty() && place.node != deps->node) has_way(place.node);
}

std::string dock_state::goes_to(const std::string& camera) {
  const auto place = generating.find(camera);
  if (place == generating.end()) return {};
  const std::string& to = place->second.node;
  if (to.empty() || to == deps->node || !has_way(to)) return {};
  std::size_t texts = 0;
  std::uint64_t bytes = 0;
  for (const auto& [ticket, each] : asked) {
    if (each.node != to) continue;
    ++texts;
    bytes += each.bytes;
  }
  return texts < kMostTexts && bytes < kMostUnderWay ? to : std::string();
}

void dock_state::ask_device(std::uint64_t ticket) {
  const Asked& text = asked.at(ticket);
  const actors::Explain own{text.window, text.rule, ticket};
  const auto source = sources.find(text.window.camera);
  if (source == sources.end())
    return explained({ticket, "", "the stream of camera " + text.window.camera + " has ended"});
  if (text.node.empty()) return self->send(source->second, own);
  for (const auto& [device, desk] : desks)
    if (desk.address() == source->second.address()) return self->send(desk, actors::tokens_atom_v, own);
  stay(ticket, "");
}

void dock_state::send_text(const actors::CarriedTextPtr& text) {
  const auto found = asked.find(text->ticket);
  if (found == asked.end() || found->second.node.empty()) return;
  const auto way = ways.find(found->second.node);
  if (way == ways.end() || !way->second.desk.is_up()) return stay(text->ticket, "");
  if (!can_pack(*text)) return stay(text->ticket, "its pages are too large to be sent");
  found->second.bytes = text->pages.size() * text->page_bytes;
  send(way->second, TextFrame{form_of(*text, deps->clock)});
  for (const PackedPages& pages : pages_of(text)) send(way->second, pages);
}

void dock_state::stay(std::uint64_t ticket, const std::string& why) {
  Asked& text = asked.at(ticket);
  if (!why.empty())
    deps->logger.warn("dock: a text of camera {} comes from here, not from node {}: {}", text.window.camera,
                      text.node, why);
  text.node.clear();
  ask_device(ticket);
}

void dock_state::stay_all(const std::string& to, const std::string& why) {
  std::vector<std::uint64_t> tickets;
  for (const auto& [ticket, text] : asked)
    if (text.node == to) tickets.push_back(ticket);
  for (const std::uint64_t ticket : tickets) stay(ticket, why);
}

void dock_state::hear_text(const actors::Explanation& text) {
  const auto found = asked.find(text.ticket);
  // It was explained here meanwhile, or is being.
  if (found == asked.end() || found->second.node.empty()) return;
  if (!text.failure.empty()) return stay(text.ticket, text.failure);
  const Asked& own = found->second;
  if (const auto source = sources.find(own.window.camera); source != sources.end())
    self->send(source->second, actors::Returned{own.window, own.rule});
  explained(text);
}

// --- of other nodes' streams ---

void dock_state::take(const std::string& from, TextFrame& frame) {
  const auto sender = senders.find(from);
  if (sender == senders.end()) return;
  const actors::WatchRef& watch = frame.form.watch;
  if (!book.admits(watch.camera, actors::fence_of(watch.version))) {
    const actors::Explanation refusal{frame.form.ticket, "", "its owner is another node by now"};
    return self->send(sender->second, actors::tokens_atom_v, refusal);
  }
  tell_arrivals(from, arrivals->begin(from, std::move(frame.form)));
}

void dock_state::take(const std::string& from, PackedPages& pages) {
  tell_arrivals(from, arrivals->take(from, pages));
}

void dock_state::tell_arrivals(const std::string& from, const std::vector<TextArrivals::News>& news) {
  const auto sender = senders.find(from);
  if (sender == senders.end()) return;
  for (const TextArrivals::News& each : news) {
    if (each.text) {
      begin_text(from, each.text);
    } else {
      self->send(
          sender->second, actors::tokens_atom_v,
          actors::Explanation{each.ticket, "", each.refusal.empty() ? "that is no text" : each.refusal});
    }
  }
}

void dock_state::begin_text(const std::string& from, const actors::CarriedTextPtr& text) {
  // The device that has the fewest.
  const auto texts_of = [&](const actors::tokens_actor& desk) {
    return std::count_if(guest_texts.begin(), guest_texts.end(),
                         [&](const auto& each) { return each.second.desk == desk; });
  };
  const auto desk = std::min_element(desks.begin(), desks.end(), [&](const auto& a, const auto& b) {
    return texts_of(a.second) < texts_of(b.second);
  });
  const dock_actor& sender = senders.at(from);
  if (desk == desks.end())
    return self->send(sender, actors::tokens_atom_v,
                      actors::Explanation{text->ticket, "", "none of its devices is up"});
  auto own = std::make_shared<actors::CarriedText>(*text);
  own->ticket = ++last_ticket;
  guest_texts[own->ticket] = {sender, text->ticket, desk->second, deps->clock.now()};
  self->send(desk->second, actors::CarriedTextPtr(std::move(own)));
}

bool dock_state::give_back_text(const actors::Explanation& text) {
  const auto found = guest_texts.extract(text.ticket);
  if (!found) return false;
  actors::Explanation own = text;
  own.ticket = found.mapped().ticket;
  self->send<caf::message_priority::high>(found.mapped().from, actors::tokens_atom_v, own);
  return true;
}

void dock_state::end_overdue_texts() {
  const auto now = deps->clock.now();
  std::vector<std::uint64_t> late;
  for (const auto& [ticket, text] : asked)
    if (!text.node.empty() && text.at + kTextPatience < now) late.push_back(ticket);
  for (const std::uint64_t ticket : late) stay(ticket, "it did not come back in time");
  // Its device was started again, or its time is over there.
  std::erase_if(guest_texts,
                [&](const auto& each) { return each.second.at + 2 * actors::kExplanationPatience < now; });
}

}  // namespace vigil::fleet
