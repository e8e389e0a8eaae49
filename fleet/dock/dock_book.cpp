#include "fleet/dock/dock_book.h"

#include <algorithm>

namespace vigil::fleet {

DockBook::Joined DockBook::join(const std::string& node, const actors::WatchSettings& watch,
                                std::uint32_t own_generation) {
  const std::uint64_t fence = actors::fence_of(watch.version);
  std::uint64_t& highest = fences_[watch.name];
  const auto before = guests_.find(watch.name);
  // Two nodes with one fence: the registry never gave it twice, so one of them is not what it says.
  const bool is_others =
      before != guests_.end() && before->second.node != node && before->second.fence == fence;
  if (fence < highest || is_others) return {false, highest, 0, {}};
  highest = fence;
  highest_ = std::max(highest_, fence);
  Joined joined{true, fence, ++generations_[watch.name], {}};
  if (before != guests_.end() && before->second.node != node) joined.before = before->second.node;
  guests_[watch.name] = Guest{node, fence, joined.generation, own_generation};
  return joined;
}

const DockBook::Guest* DockBook::owner(const std::string& node, const actors::WatchRef& watch) const {
  const Guest* const guest = find(watch.camera);
  return guest != nullptr && guest->node == node && guest->fence == actors::fence_of(watch.version) ? guest
                                                                                                    : nullptr;
}

const DockBook::Guest* DockBook::find(const std::string& camera) const {
  const auto guest = guests_.find(camera);
  return guest == guests_.end() ? nullptr : &guest->second;
}

void DockBook::leave(const std::string& node, base::Clock::TimePoint now) {
  for (auto& [camera, guest] : guests_)
    if (guest.node == node && !guest.away) guest.away = now;
}

std::vector<std::string> DockBook::overdue(base::Clock::TimePoint now, base::Duration patience) const {
  std::vector<std::string> cameras;
  for (const auto& [camera, guest] : guests_)
    if (guest.away && now - *guest.away >= patience) cameras.push_back(camera);
  return cameras;
}

}  // namespace vigil::fleet
