#include "actors/alerts/evidence_promises.h"

#include <algorithm>

namespace vigil::actors {

bool EvidencePromises::has(const std::string& camera) const {
  return std::any_of(promises_.begin(), promises_.end(),
                     [&](const auto& promise) { return promise.second.camera == camera; });
}

std::vector<std::string> EvidencePromises::episodes() const {
  std::vector<std::string> result;
  result.reserve(promises_.size());
  for (const auto& [episode, promise] : promises_) result.push_back(episode);
  return result;
}

}  // namespace vigil::actors
