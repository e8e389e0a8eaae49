#include "actors/messages/watch_book.h"

namespace vigil::actors {

bool WatchBook::put(const WatchPtr& watch) {
  if (!watch) return false;
  Camera& camera = cameras_[watch->name];
  if (watch->version < camera.oldest) return false;
  camera.versions[watch->version] = watch;
  return true;
}

WatchPtr WatchBook::find(const WatchRef& ref) const {
  const auto camera = cameras_.find(ref.camera);
  if (camera == cameras_.end()) return nullptr;
  const auto found = camera->second.versions.find(ref.version);
  return found == camera->second.versions.end() ? nullptr : found->second;
}

WatchPtr WatchBook::refer(const WatchRef& ref) {
  WatchPtr watch = find(ref);
  if (!watch) return nullptr;
  Camera& camera = cameras_.at(ref.camera);
  camera.oldest = ref.version;
  camera.versions.erase(camera.versions.begin(), camera.versions.find(ref.version));
  return watch;
}

WatchPtr WatchBook::newest(const std::string& camera) const {
  const auto found = cameras_.find(camera);
  if (found == cameras_.end() || found->second.versions.empty()) return nullptr;
  return found->second.versions.rbegin()->second;
}

std::size_t WatchBook::size() const {
  std::size_t count = 0;
  for (const auto& [name, camera] : cameras_) count += camera.versions.size();
  return count;
}

}  // namespace vigil::actors
