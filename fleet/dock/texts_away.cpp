#include "fleet/dock/texts_away.h"

#include <utility>

#include "actors/messages/patience.h"

namespace vigil::fleet {

std::string TextsAway::know(const TextsAt& place) {
  Place& known = places_[place.camera];
  if (place.fence < known.fence) return {};
  known = {place.node, place.fence};
  return place.node == self_ ? std::string() : place.node;
}

void TextsAway::forget(const std::string& camera, std::uint64_t fence) {
  const auto place = places_.find(camera);
  if (place != places_.end() && place->second.fence <= fence) places_.erase(place);
}

std::string TextsAway::place_of(const std::string& camera) const {
  const auto place = places_.find(camera);
  return place == places_.end() || place->second.node == self_ ? std::string() : place->second.node;
}

bool TextsAway::has_room(const std::string& node) const {
  std::size_t texts = 0;
  std::uint64_t bytes = 0;
  for (const auto& [own, text] : texts_) {
    if (text.node != node) continue;
    ++texts;
    bytes += text.bytes;
  }
  return texts < kMostTexts && bytes < kMostBytes;
}

const TextsAway::Text& TextsAway::ask(std::uint64_t own, const actors::Explain& request, link_actor link,
                                      std::string node) {
  return texts_[own] = {.link = std::move(link),
                        .ticket = request.ticket,
                        .window = request.window,
                        .rule = request.rule,
                        .at = clock_.now(),
                        .node = std::move(node)};
}

const TextsAway::Text* TextsAway::find(std::uint64_t own) const {
  const auto found = texts_.find(own);
  return found == texts_.end() ? nullptr : &found->second;
}

const TextsAway::Text* TextsAway::find_away(std::uint64_t own) const {
  const Text* const found = find(own);
  return found == nullptr || found->node.empty() ? nullptr : found;
}

void TextsAway::sent(std::uint64_t own, std::uint64_t bytes) {
  if (const auto found = texts_.find(own); found != texts_.end()) found->second.bytes = bytes;
}

void TextsAway::stay(std::uint64_t own) {
  if (const auto found = texts_.find(own); found != texts_.end()) found->second.node.clear();
}

std::optional<TextsAway::Text> TextsAway::take(std::uint64_t own) {
  auto found = texts_.extract(own);
  return found ? std::optional(std::move(found.mapped())) : std::nullopt;
}

std::vector<std::uint64_t> TextsAway::at(const std::string& node) const {
  std::vector<std::uint64_t> found;
  for (const auto& [own, text] : texts_)
    if (text.node == node) found.push_back(own);
  return found;
}

std::vector<std::uint64_t> TextsAway::overdue() const {
  std::vector<std::uint64_t> found;
  for (const auto& [own, text] : texts_)
    if (!text.node.empty() && text.at + kPatience < clock_.now()) found.push_back(own);
  return found;
}

void TextsAway::forget_old() {
  std::erase_if(texts_, [this](const auto& each) {
    return each.second.at + actors::kExplanationForgotten < clock_.now();
  });
}

}  // namespace vigil::fleet
