#include "fleet/dock/dock_book.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace vigil::fleet {

DockBook::Joined DockBook::join(const std::string& from, const Passage& passage,
                                const actors::WatchPtr& watch, std::uint32_t own_generation) {
  const std::string& camera = watch->name;
  const std::uint64_t fence = actors::fence_of(watch->version);
  const std::uint64_t highest = fences_.of(camera);
  const auto before = guests_.find(camera);
  const bool is_new_owner = before != guests_.end() && before->second.passage.owner != passage.owner;
  if (fence < highest || is_contested(passage.owner, watch->ref())) return {false, highest, 0};
  saw(camera, fence);
  Joined joined{true, fence, ++generation_};
  if (is_new_owner) joined.before = before->second.passage;
  if (before != guests_.end() && before->second.heir && before->second.heir->passage.owner != passage.owner)
    joined.heir = before->second.heir->passage;
  guests_[camera] = Guest{passage, from, fence, watch, joined.generation, own_generation};
  return joined;
}

std::optional<DockBook::Joined> DockBook::wait(const Heir& comer) {
  const std::string& camera = comer.watch->name;
  const std::uint64_t fence = actors::fence_of(comer.watch->version);
  const auto found = guests_.find(camera);
  if (found == guests_.end() || found->second.away || fence < fences_.of(camera) ||
      is_contested(comer.passage.owner, comer.watch->ref()))
    return std::nullopt;
  Guest& guest = found->second;
  const Passage same{guest.passage.owner, comer.passage.vision, comer.passage.stream};
  if (guest.passage != same || guest.passage.owner == comer.passage.owner || guest.fence >= fence)
    return std::nullopt;
  saw(camera, fence);
  Joined joined{true, fence};
  if (guest.heir && guest.heir->passage.owner != comer.passage.owner) joined.heir = guest.heir->passage;
  guest.heir = comer;
  return joined;
}

bool DockBook::brings(const std::string& from, const actors::WatchRef& watch) const {
  const Guest* const guest = find(watch.camera);
  return guest != nullptr && guest->heir && guest->heir->from == from &&
         actors::fence_of(guest->heir->watch->version) == actors::fence_of(watch.version);
}

bool DockBook::renew_heir(const std::string& from, const actors::WatchPtr& watch) {
  if (!brings(from, watch->ref())) return false;
  guests_.at(watch->name).heir->watch = watch;
  return true;
}

void DockBook::drop_heir(const std::string& from, const std::string& camera) {
  const auto guest = guests_.find(camera);
  if (guest != guests_.end() && guest->second.heir && guest->second.heir->from == from)
    guest->second.heir.reset();
}

std::optional<DockBook::Heir> DockBook::take_heir(const std::string& camera) {
  const auto guest = guests_.find(camera);
  return guest == guests_.end() ? std::nullopt : std::exchange(guest->second.heir, std::nullopt);
}

std::vector<std::string> DockBook::orphans() const {
  std::vector<std::string> cameras;
  for (const auto& [camera, guest] : guests_)
    if (guest.away && guest.heir) cameras.push_back(camera);
  return cameras;
}

const DockBook::Guest* DockBook::brought(const std::string& from, const actors::WatchRef& watch) const {
  const Guest* const guest = find(watch.camera);
  return guest != nullptr && guest->from == from && guest->fence == actors::fence_of(watch.version) ? guest
                                                                                                    : nullptr;
}

bool DockBook::is_contested(const std::string& owner, const actors::WatchRef& watch) const {
  const Guest* const guest = find(watch.camera);
  if (guest == nullptr) return false;
  const std::uint64_t fence = actors::fence_of(watch.version);
  return (guest->passage.owner != owner && guest->fence == fence) ||
         (guest->heir && guest->heir->passage.owner != owner &&
          actors::fence_of(guest->heir->watch->version) == fence);
}

const DockBook::Guest* DockBook::renew(const std::string& from, const actors::WatchPtr& watch) {
  const std::string& camera = watch->name;
  const auto guest = guests_.find(camera);
  if (guest == guests_.end() || guest->second.from != from) return nullptr;
  const std::uint64_t fence = actors::fence_of(watch->version);
  if (fence > guest->second.fence && fence >= fences_.of(camera)) {
    guest->second.fence = fence;
    saw(camera, fence);
  }
  const Guest* const its = brought(from, watch->ref());
  if (its != nullptr && watch->version > its->watch->version) guest->second.watch = watch;
  return its;
}

std::optional<DockBook::Heard> DockBook::heard(const actors::WindowAnswersPtr& window, bool goes_on) const {
  const actors::WatchSettings& asked = *window->watch;
  const Guest* const guest = find(asked.name);
  const std::uint64_t fence = actors::fence_of(asked.version);
  if (guest == nullptr || fence > guest->fence) return std::nullopt;
  const auto as_of = [&](const Passage& passage, const actors::WatchPtr& watch) -> std::optional<Heard> {
    if (!goes_on || asked.rules != watch->rules) return std::nullopt;
    auto own = std::make_shared<actors::WindowAnswers>(*window);
    own->watch = watch;
    return Heard{passage, std::move(own)};
  };
  if (guest->heir)
    if (auto next = as_of(guest->heir->passage, guest->heir->watch)) return next;
  if (fence == guest->fence) return Heard{guest->passage, window};
  return as_of(guest->passage, guest->watch);
}

bool DockBook::admits(const std::string& camera, std::uint64_t fence) {
  if (fence < fences_.of(camera)) return false;
  saw(camera, fence);
  return true;
}

void DockBook::saw(const std::string& camera, std::uint64_t fence) {
  fences_.saw(camera, fence);
  highest_ = std::max(highest_, fence);
}

const DockBook::Guest* DockBook::find(const std::string& camera) const {
  const auto guest = guests_.find(camera);
  return guest == guests_.end() ? nullptr : &guest->second;
}

void DockBook::leave(const std::string& from, const Passage& passage, base::Clock::TimePoint now) {
  for (auto& [camera, guest] : guests_) {
    if (guest.from == from && guest.passage == passage && !guest.away) guest.away = now;
    if (guest.heir && guest.heir->from == from && guest.heir->passage == passage) guest.heir.reset();
  }
}

void DockBook::leave(const std::string& from, base::Clock::TimePoint now) {
  for (auto& [camera, guest] : guests_) {
    if (guest.from == from && !guest.away) guest.away = now;
    if (guest.heir && guest.heir->from == from) guest.heir.reset();
  }
}

void DockBook::lose(const std::string& camera, base::Clock::TimePoint now) {
  if (const auto guest = guests_.find(camera); guest != guests_.end() && !guest->second.away)
    guest->second.away = now;
}

std::vector<std::string> DockBook::overdue(base::Clock::TimePoint now, base::Duration patience) const {
  std::vector<std::string> cameras;
  for (const auto& [camera, guest] : guests_)
    if (guest.away && now - *guest.away >= patience) cameras.push_back(camera);
  return cameras;
}

}  // namespace vigil::fleet
