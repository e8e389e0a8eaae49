#include "fleet/dock/dock_book.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace vigil::fleet {

DockBook::Joined DockBook::join(const std::string& from, const Passage& passage,
                                const actors::WatchPtr& watch, std::uint32_t own_generation, bool goes_on) {
  const std::string& camera = watch->name;
  const std::uint64_t fence = actors::fence_of(watch->version);
  const std::uint64_t highest = fences_.of(camera);
  const auto before = guests_.find(camera);
  const bool is_new_owner = before != guests_.end() && before->second.passage.owner != passage.owner;
  if (fence < highest || is_contested(passage.owner, watch->ref())) return {false, highest, 0, {}};
  saw(camera, fence);
  Joined joined{true, fence, ++generation_, {}};
  if (is_new_owner) joined.before = before->second.passage;
  Guest next{passage, from, fence, watch, joined.generation, own_generation};
  if (before != guests_.end() && goes_on) {
    Guest& guest = before->second;
    if (is_new_owner && !guest.former && !guest.away)
      guest.former = {guest.passage, guest.fence, guest.generation, guest.own_generation};
    const bool is_same_way = guest.former && guest.former->passage.vision == passage.vision &&
                             guest.former->passage.stream == passage.stream;
    if (is_same_way) next.former = std::move(guest.former);
  }
  guests_[camera] = std::move(next);
  return joined;
}

const DockBook::Guest* DockBook::brought(const std::string& from, const actors::WatchRef& watch) const {
  const Guest* const guest = find(watch.camera);
  return guest != nullptr && guest->from == from && guest->fence == actors::fence_of(watch.version) ? guest
                                                                                                    : nullptr;
}

bool DockBook::is_contested(const std::string& owner, const actors::WatchRef& watch) const {
  const Guest* const guest = find(watch.camera);
  return guest != nullptr && guest->passage.owner != owner && guest->fence == actors::fence_of(watch.version);
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

const DockBook::Former* DockBook::brought_before(const std::string& from, const actors::WatchRef& watch,
                                                 std::uint32_t own_generation) const {
  const Guest* const guest = find(watch.camera);
  if (guest == nullptr || !guest->former) return nullptr;
  const Former& former = *guest->former;
  return former.passage.owner == from && former.fence == actors::fence_of(watch.version) &&
                 former.own_generation == own_generation
             ? &former
             : nullptr;
}

void DockBook::drop_former(const std::string& camera) {
  if (const auto guest = guests_.find(camera); guest != guests_.end()) guest->second.former.reset();
}

void DockBook::drop_former(const std::string& from, const std::string& camera) {
  const Guest* const guest = find(camera);
  if (guest != nullptr && guest->former && guest->former->passage.owner == from) drop_former(camera);
}

actors::WindowAnswersPtr DockBook::of_owner(const actors::WindowAnswersPtr& window, bool goes_on) const {
  const actors::WatchSettings& asked = *window->watch;
  const Guest* const guest = find(asked.name);
  const std::uint64_t fence = actors::fence_of(asked.version);
  if (guest == nullptr || fence > guest->fence) return nullptr;
  if (fence == guest->fence) return window;
  if (!goes_on || asked.rules != guest->watch->rules) return nullptr;
  auto own = std::make_shared<actors::WindowAnswers>(*window);
  own->watch = guest->watch;
  return own;
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
    if (guest.former && guest.former->passage == passage) guest.former.reset();
  }
}

void DockBook::leave(const std::string& from, base::Clock::TimePoint now) {
  for (auto& [camera, guest] : guests_) {
    if (guest.from == from && !guest.away) guest.away = now;
    if (guest.former && guest.former->passage.owner == from) guest.former.reset();
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
