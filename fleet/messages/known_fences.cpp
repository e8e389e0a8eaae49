#include "fleet/messages/known_fences.h"

#include <algorithm>
#include <vector>

namespace vigil::fleet {

void KnownFences::saw(const std::string& camera, std::uint64_t fence) {
  std::uint64_t& known = fences_.try_emplace(camera, floor_).first->second;
  known = std::max(known, fence);
  // An eighth at once, so that it is seldom looked at all of them.
  if (fences_.size() <= most_ + most_ / 8) return;
  std::vector<std::uint64_t> all;
  all.reserve(fences_.size());
  for (const auto& [name, each] : fences_) all.push_back(each);
  const auto last = all.begin() + static_cast<std::ptrdiff_t>(all.size() - most_ - 1);
  std::nth_element(all.begin(), last, all.end());
  floor_ = std::max(floor_, *last);
  std::erase_if(fences_, [this](const auto& each) { return each.second <= floor_; });
}

}  // namespace vigil::fleet
