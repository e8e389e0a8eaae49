#include "actors/supervisor/fleet.h"

#include <utility>

namespace vigil::actors {

Fleet::Fleet(const std::vector<CameraPtr>& cameras, std::uint64_t seed) {
  for (const CameraPtr& camera : cameras) {
    cameras_.emplace(camera->name, Camera{.camera = camera,
                                          .pulse = std::make_shared<Pulse>(),
                                          .state = std::nullopt,
                                          .reason = {},
                                          .own_state = CameraState::connecting,
                                          .generations = 0,
                                          .running = false,
                                          .ended = false,
                                          .backoff = Backoff(camera->stream.reconnect, seed++),
                                          .restart_at = std::nullopt});
  }
}

std::uint32_t Fleet::started(const std::string& camera) {
  Camera& each = cameras_.at(camera);
  each.running = true;
  return each.generations++;
}

std::optional<Fleet::Change> Fleet::report(const std::string& camera, CameraState state,
                                           const std::string& reason) {
  Camera& each = cameras_.at(camera);
  each.own_state = state;
  if (state == CameraState::up) each.backoff.reset();
  return enter(each, state, reason);
}

void Fleet::gave_up(const std::string& camera, const std::string& reason) {
  failures_.push_back("camera " + camera + ": " + reason);
}

std::optional<Fleet::Change> Fleet::lost(const std::string& camera, bool failed, TimePoint now) {
  Camera& each = cameras_.at(camera);
  each.running = false;
  each.pulse->awaited();
  if (!failed) return std::nullopt;
  each.own_state = CameraState::down;
  if (!stopping_) each.restart_at = now + each.backoff.next();
  return enter(each, CameraState::down, "the camera's actor failed");
}

void Fleet::ended(const std::string& camera) {
  cameras_.at(camera).ended = true;
}

std::vector<Fleet::Change> Fleet::watch(TimePoint now) {
  std::vector<Change> changes;
  for (auto& [name, each] : cameras_) {
    const auto since = each.pulse->awaiting_since();
    const bool silent = since && now - *since >= each.camera->stream.stall_after;
    std::optional<Change> change;
    if (silent && each.state == CameraState::up) {
      change = enter(each, CameraState::stalled,
                     "silent for " + config::format_duration(each.camera->stream.stall_after));
    } else if (!silent && each.state == CameraState::stalled) {
      change = enter(each, each.own_state, "delivers again");
    }
    if (change) changes.push_back(std::move(*change));
  }
  return changes;
}

std::vector<std::string> Fleet::due(TimePoint now) {
  std::vector<std::string> names;
  for (auto& [name, each] : cameras_) {
    if (!each.restart_at || now < *each.restart_at) continue;
    each.restart_at.reset();
    names.push_back(name);
  }
  return names;
}

void Fleet::stop() {
  stopping_ = true;
  for (auto& [name, each] : cameras_) each.restart_at.reset();
}

std::vector<CameraPtr> Fleet::remaining() const {
  std::vector<CameraPtr> cameras;
  for (const auto& [name, each] : cameras_) {
    if (!each.ended) cameras.push_back(each.camera);
  }
  return cameras;
}

std::vector<CameraPtr> Fleet::orphans() const {
  std::vector<CameraPtr> cameras;
  for (const auto& [name, each] : cameras_) {
    if (!each.ended && !each.running && !each.restart_at) cameras.push_back(each.camera);
  }
  return cameras;
}

std::optional<Fleet::Change> Fleet::enter(Camera& camera, CameraState state, const std::string& reason) {
  // A camera that is still down for another reason is news.
  const bool news = camera.state != state || (state == CameraState::down && camera.reason != reason);
  if (!news) return std::nullopt;
  camera.state = state;
  camera.reason = reason;
  return Change{camera.camera, state, reason};
}

}  // namespace vigil::actors
