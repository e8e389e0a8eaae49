#include "fleet/node/refusal_book.h"

#include <algorithm>

namespace vigil::fleet {

void RefusalBook::refused(const std::string& camera, cluster::Fence fence) {
  cluster::Fence& highest = highest_[camera];
  highest = std::max(highest, fence);
}

std::set<cluster::Fence> RefusalBook::too_low(const std::map<std::string, cluster::PlannedCamera>& own) {
  std::erase_if(highest_, [&](const auto& refusal) {
    const auto entry = own.find(refusal.first);
    return entry == own.end() || !entry->second.hand_to.empty() || entry->second.fence > refusal.second;
  });
  std::set<cluster::Fence> fences;
  for (const auto& [camera, fence] : highest_) fences.insert({own.at(camera).fence, fence});
  return fences;
}

}  // namespace vigil::fleet
