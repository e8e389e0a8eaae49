#include "engine/memory/tier_pool.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace vigil::memory {

void TierPool::share(std::span<const std::string> cameras) {
  for (auto& [name, camera] : cameras_) camera.has_share = false;
  for (const std::string& name : cameras) cameras_[name].has_share = true;
  shares_ = 0;
  for (auto camera = cameras_.begin(); camera != cameras_.end();) {
    if (camera->second.has_share) ++shares_;
    const bool is_over = !camera->second.has_share && camera->second.pages.empty();
    camera = is_over ? cameras_.erase(camera) : std::next(camera);
  }
}

std::uint64_t TierPool::share_of(const std::string& camera) const {
  const auto entry = cameras_.find(camera);
  return entry == cameras_.end() || !entry->second.has_share ? 0 : bytes_ / shares_;
}

std::uint64_t TierPool::used_by(const std::string& camera) const {
  const auto entry = cameras_.find(camera);
  return entry == cameras_.end() ? 0 : entry->second.used;
}

double TierPool::worth_of(const Page& page, const Uses& uses, base::Clock::WallTime newest) {
  const double hours = std::chrono::duration<double, std::ratio<3600>>(newest - page.to).count();
  return (1 + page.change + uses.hits + (uses.is_alerted ? 2 : 0)) / (1 + std::max(0.0, hours));
}

double TierPool::rank_of(const Camera& camera, const Entry& entry) const {
  return eviction_ == Eviction::lru ? static_cast<double>(entry.used)
                                    : worth_of(entry.page, entry.uses, camera.newest);
}

std::vector<std::uint64_t> TierPool::order_of(const std::string& camera) const {
  std::vector<std::pair<double, std::uint64_t>> ranks;
  const auto found = cameras_.find(camera);
  if (found != cameras_.end())
    for (const auto& [id, entry] : found->second.pages) ranks.emplace_back(rank_of(found->second, entry), id);
  std::sort(ranks.begin(), ranks.end());
  std::vector<std::uint64_t> order;
  order.reserve(ranks.size());
  for (const auto& [rank, id] : ranks) order.push_back(id);
  return order;
}

std::optional<std::vector<std::uint64_t>> TierPool::put(const std::string& camera, const Page& page,
                                                        const Uses& uses) {
  if (places_.contains(page.id)) throw std::invalid_argument("this page is in the tier already");
  if (page.bytes > bytes_) return std::nullopt;
  // What goes is found first, so that nothing has gone where it does not suffice.
  std::vector<std::uint64_t> gone;
  std::map<std::string, std::uint64_t> left;
  for (const auto& [name, each] : cameras_) left[name] = each.used;
  left[camera] += page.bytes;
  std::map<std::string, std::vector<std::uint64_t>> orders;
  std::uint64_t used = used_;
  while (used + page.bytes > bytes_) {
    const std::string* from = nullptr;
    std::uint64_t most = 0;
    for (const auto& [name, bytes] : left) {
      const std::uint64_t share = share_of(name);
      if (bytes <= share || bytes - share <= most) continue;
      const auto entry = cameras_.find(name);
      if (entry == cameras_.end() || entry->second.pages.empty()) continue;
      const auto order = orders.find(name);
      if (order != orders.end() && order->second.empty()) continue;
      from = &name;
      most = bytes - share;
    }
    if (from == nullptr) return std::nullopt;
    auto [order, is_new] = orders.try_emplace(*from);
    if (is_new) {
      order->second = order_of(*from);
      std::reverse(order->second.begin(), order->second.end());
    }
    const std::uint64_t id = order->second.back();
    order->second.pop_back();
    const std::uint64_t bytes = cameras_.at(*from).pages.at(id).page.bytes;
    gone.push_back(id);
    left.at(*from) -= bytes;
    used -= bytes;
  }
  for (const std::uint64_t id : gone) remove(id);
  Camera& to = cameras_[camera];
  to.pages.emplace(page.id, Entry{page, uses, ++uses_});
  to.used += page.bytes;
  to.newest = std::max(to.newest, page.to);
  places_.emplace(page.id, camera);
  used_ += page.bytes;
  return gone;
}

bool TierPool::remove(std::uint64_t id) {
  const auto place = places_.find(id);
  if (place == places_.end()) return false;
  const auto camera = cameras_.find(place->second);
  const auto entry = camera->second.pages.find(id);
  camera->second.used -= entry->second.page.bytes;
  used_ -= entry->second.page.bytes;
  camera->second.pages.erase(entry);
  if (!camera->second.has_share && camera->second.pages.empty()) cameras_.erase(camera);
  places_.erase(place);
  return true;
}

void TierPool::shrink(std::uint64_t id, std::uint64_t bytes) {
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  Camera& camera = cameras_.at(place->second);
  Page& page = camera.pages.at(id).page;
  const std::uint64_t less = page.bytes - std::min(page.bytes, bytes);
  page.bytes -= less;
  camera.used -= less;
  used_ -= less;
}

void TierPool::hit(std::uint64_t id) {
  const auto place = places_.find(id);
  if (place == places_.end()) return;
  Entry& entry = cameras_.at(place->second).pages.at(id);
  ++entry.uses.hits;
  entry.used = ++uses_;
}

}  // namespace vigil::memory
