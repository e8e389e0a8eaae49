// The part of the dock's shell by which texts of this node's streams go on at other nodes, and theirs here.
#include <algorithm>
#include <string>
#include <utility>

#include "actors/messages/carried_text.h"
#include "actors/messages/patience.h"
#include "fleet/dock/dock_actor.h"

namespace vigil::fleet {
// --- of this node's streams ---

void dock_state::know(const TextsAt& place) {
  // So that it is there when the first text is.
  if (const std::string other = texts->know(place); !other.empty()) has_way(other);
}

std::string dock_state::goes_to(const std::string& camera) {
  const std::string to = texts->place_of(camera);
  return !to.empty() && has_way(to) && texts->has_room(to) ? to : std::string();
}

void dock_state::ask_device(std::uint64_t ticket) {
  const TextsAway::Text& text = *texts->find(ticket);
  const actors::Explain own{text.window, text.rule, ticket};
  const auto source = sources.find(text.window.camera);
  if (source == sources.end())
    return explained({ticket, "", "the stream of camera " + text.window.camera + " has ended"});
  if (text.node.empty()) return self->send(source->second, own);
  for (const auto& [device, language] : languages)
    if (language.address() == source->second.address())
      return self->send(language, actors::tokens_atom_v, own);
  stay(ticket, "");
}

void dock_state::send_text(const actors::CarriedTextPtr& text) {
  const TextsAway::Text* const away = texts->find_away(text->ticket);
  if (away == nullptr) return;
  const auto way = ways.find(away->node);
  if (way == ways.end() || !way->second.desk.is_up()) return stay(text->ticket, "");
  if (!can_pack(*text)) return stay(text->ticket, "its pages are too large to be sent");
  // What is given up leaves its pages waiting, and what was chosen together was not counted then.
  const std::uint64_t bytes = text->pages.size() * text->page_bytes;
  const std::uint64_t waiting = way->second.desk.waiting_bytes();
  if (waiting > 0 && waiting + bytes > TextsAway::kMostBytes)
    return stay(text->ticket, "too much waits to be sent there");
  texts->sent(text->ticket, bytes);
  send(way->second, TextFrame{form_of(*text, deps->clock)});
  for (const PackedPages& pages : pages_of(text)) send(way->second, pages);
}

void dock_state::stay(std::uint64_t ticket, const std::string& why) {
  const TextsAway::Text& text = *texts->find(ticket);
  if (!why.empty())
    deps->logger.warn("dock: a text of camera {} comes from here, not from node {}: {}", text.window.camera,
                      text.node, why);
  texts->stay(ticket);
  ask_device(ticket);
}

void dock_state::stay_all(const std::string& to, const std::string& why) {
  for (const std::uint64_t ticket : texts->at(to)) stay(ticket, why);
}

void dock_state::hear_text(const actors::Explanation& text) {
  const TextsAway::Text* const away = texts->find_away(text.ticket);
  // It was explained here meanwhile, or is being.
  if (away == nullptr) return;
  if (!text.failure.empty()) return stay(text.ticket, text.failure);
  if (const auto source = sources.find(away->window.camera); source != sources.end())
    self->send(source->second, actors::Returned{away->window, away->rule});
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
  const auto texts_of = [&](const actors::tokens_actor& device) {
    return std::count_if(guest_texts.begin(), guest_texts.end(),
                         [&](const auto& each) { return each.second.device == device; });
  };
  const auto least = std::min_element(languages.begin(), languages.end(), [&](const auto& a, const auto& b) {
    return texts_of(a.second) < texts_of(b.second);
  });
  const dock_actor& sender = senders.at(from);
  if (least == languages.end())
    return self->send(sender, actors::tokens_atom_v,
                      actors::Explanation{text->ticket, "", "none of its devices is up"});
  auto own = std::make_shared<actors::CarriedText>(*text);
  own->ticket = ++last_ticket;
  guest_texts[own->ticket] = {sender, text->ticket, least->second, deps->clock.now()};
  self->send(least->second, actors::CarriedTextPtr(std::move(own)));
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
  for (const std::uint64_t ticket : texts->overdue()) stay(ticket, "it did not come back in time");
  for (const auto& [from, news] : arrivals->take_overdue()) tell_arrivals(from, {news});
  // Its device was started again, or its time is over there.
  const auto now = deps->clock.now();
  std::erase_if(guest_texts,
                [&](const auto& each) { return each.second.at + actors::kExplanationForgotten < now; });
}

}  // namespace vigil::fleet
