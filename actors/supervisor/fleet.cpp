#include "actors/supervisor/fleet.h"

#include <utility>

namespace vigil::actors {

Fleet::Fleet(const std::vector<CameraPtr>& cameras, std::uint64_t seed) : seed_(seed) {
  for (const CameraPtr& camera : cameras) cameras_.emplace(camera->name, make(camera, 0));
}

Fleet::Camera Fleet::make(CameraPtr camera, std::uint32_t generations) {
  const config::ReconnectSettings& reconnect = camera->stream.reconnect;
  return {.camera = std::move(camera),
          .pulse = std::make_shared<Pulse>(),
          .state = std::nullopt,
          .reason = {},
          .own_state = CameraState::connecting,
          .own_reason = {},
          .unwatched = {},
          .generations = generations,
          .running = false,
          .ended = false,
          .leaving = false,
          .next = nullptr,
          .backoff = Backoff(reconnect, seed_++),
          .restart_at = std::nullopt};
}

std::uint32_t Fleet::started(const std::string& camera) {
  Camera& each = cameras_.at(camera);
  each.running = true;
  return each.generations++;
}

std::optional<Fleet::Change> Fleet::report(const std::string& camera, CameraState state,
                                           const std::string& reason) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return std::nullopt;
  Camera& each = entry->second;
  if (state == CameraState::up) each.backoff.reset();
  return say(each, state, reason);
}

std::optional<Fleet::Change> Fleet::unwatched(const std::string& camera, const std::string& reason) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return std::nullopt;
  entry->second.unwatched = reason;
  return show(entry->second);
}

std::optional<Fleet::Change> Fleet::watched(const std::string& camera, const std::string& where) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end() || entry->second.unwatched.empty()) return std::nullopt;
  Camera& each = entry->second;
  each.unwatched.clear();
  if (each.own_state == CameraState::down) return show(each);
  return enter(each, each.own_state, where);
}

void Fleet::gave_up(const std::string& camera, const std::string& reason) {
  failures_.push_back("camera " + camera + ": " + reason);
}

std::optional<Fleet::Change> Fleet::lost(const std::string& camera, bool failed, TimePoint now) {
  Camera& each = cameras_.at(camera);
  each.running = false;
  each.pulse->awaited();
  if (!failed) return std::nullopt;
  if (!stopping_ && !each.leaving) each.restart_at = now + each.backoff.next();
  return say(each, CameraState::down, "the camera's actor failed");
}

void Fleet::ended(const std::string& camera) {
  const auto entry = cameras_.find(camera);
  if (entry != cameras_.end()) entry->second.ended = true;
}

Fleet::Plan Fleet::reload(const std::vector<CameraPtr>& cameras) {
  Plan plan;
  if (stopping_) return plan;
  std::map<std::string, CameraPtr> wanted;
  for (const CameraPtr& camera : cameras) wanted.emplace(camera->name, camera);
  for (auto& [name, each] : cameras_) {
    const auto found = wanted.find(name);
    if (found == wanted.end()) {
      leave(each, nullptr, plan);
      continue;
    }
    CameraPtr camera = std::move(found->second);
    wanted.erase(found);
    if (each.leaving || !config::same_stream(*each.camera, *camera)) {
      leave(each, std::move(camera), plan);
    } else if (*each.camera != *camera) {
      each.camera = camera;
      if (each.running) plan.alter.push_back(std::move(camera));
    }
  }
  for (auto& [name, camera] : wanted) {
    cameras_.emplace(name, make(std::move(camera), 0));
    plan.start.push_back(name);
  }
  return plan;
}

void Fleet::leave(Camera& camera, CameraPtr next, Plan& plan) {
  camera.next = std::move(next);
  if (std::exchange(camera.leaving, true)) return;
  camera.restart_at.reset();
  if (camera.running) {
    plan.stop.push_back(camera.camera->name);
  } else if (!camera.ended) {
    plan.end.push_back(camera.camera);
  }
}

Fleet::Departed Fleet::departed() {
  Departed departed;
  for (auto entry = cameras_.begin(); entry != cameras_.end();) {
    Camera& each = entry->second;
    if (!each.leaving || !each.ended || each.running) {
      ++entry;
    } else if (each.next && !stopping_) {
      // What its predecessor still has under way earns it no credit.
      each = make(std::move(each.next), each.generations);
      departed.start.push_back(entry->first);
      ++entry;
    } else {
      departed.gone.push_back(entry->first);
      entry = cameras_.erase(entry);
    }
  }
  return departed;
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
    if (!each.ended || (each.next && !stopping_)) cameras.push_back(each.camera);
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

std::optional<Fleet::Change> Fleet::say(Camera& camera, CameraState state, const std::string& reason) {
  camera.own_state = state;
  camera.own_reason = reason;
  return show(camera);
}

std::optional<Fleet::Change> Fleet::show(Camera& camera) {
  // Of one that has not been heard of, nothing is told.
  if (camera.unwatched.empty() || camera.own_state == CameraState::down)
    return enter(camera, camera.own_state, camera.own_reason);
  return enter(camera, CameraState::down, camera.unwatched);
}

std::optional<Fleet::Change> Fleet::enter(Camera& camera, CameraState state, const std::string& reason) {
  // A camera that is still down for another reason is news.
  const bool news = camera.state != state || (state == CameraState::down && camera.reason != reason);
  if (!news) return std::nullopt;
  camera.state = state;
  camera.reason = reason;
  return Change{camera.camera, state, reason, camera.leaving};
}

}  // namespace vigil::actors
