#include "media/name_queue.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace vigil::media {
namespace {

std::string zone_of(const std::string& host) {
  return host.substr(std::min(host.find('.'), host.size()));
}

}  // namespace

void NameQueue::add(std::uint64_t ticket, const std::string& host, const std::string& port) {
  std::deque<Name>& waiting = zones_[zone_of(host)].waiting;
  const auto same = std::find_if(waiting.begin(), waiting.end(),
                                 [&](const Name& name) { return name.host == host && name.port == port; });
  if (same != waiting.end()) {
    same->tickets.push_back(ticket);
  } else {
    waiting.push_back({host, port, {ticket}});
  }
}

void NameQueue::drop(std::uint64_t ticket) {
  for (auto zone = zones_.begin(); zone != zones_.end();) {
    for (Name& name : zone->second.waiting) std::erase(name.tickets, ticket);
    std::erase_if(zone->second.waiting, [](const Name& name) { return name.tickets.empty(); });
    const bool over = zone->second.waiting.empty() && zone->second.under_way == 0;
    zone = over ? zones_.erase(zone) : std::next(zone);
  }
}

void NameQueue::clear() {
  zones_.clear();
}

bool NameQueue::ready() const {
  return std::any_of(zones_.begin(), zones_.end(), [this](const auto& zone) {
    return !zone.second.waiting.empty() && zone.second.under_way < of_a_zone_;
  });
}

std::optional<NameQueue::Name> NameQueue::take() {
  Zone* next = nullptr;
  for (auto& [name, zone] : zones_) {
    if (zone.waiting.empty() || zone.under_way >= of_a_zone_) continue;
    if (next == nullptr || std::tie(zone.under_way, zone.turn) < std::tie(next->under_way, next->turn))
      next = &zone;
  }
  if (next == nullptr) return std::nullopt;
  Name name = std::move(next->waiting.front());
  next->waiting.pop_front();
  ++next->under_way;
  next->turn = ++turns_;
  return name;
}

void NameQueue::done(const Name& name) {
  const auto zone = zones_.find(zone_of(name.host));
  if (zone == zones_.end()) return;
  --zone->second.under_way;
  if (zone->second.waiting.empty() && zone->second.under_way == 0) zones_.erase(zone);
}

}  // namespace vigil::media
