#include "actors/supervisor/fleet.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "actors/camera/source_options.h"

namespace vigil::actors {

Fleet::Fleet(const std::vector<CameraPtr>& cameras, std::uint64_t seed) : seed_(seed) {
  for (const CameraPtr& camera : cameras) cameras_.emplace(camera->name, make(camera, 0));
}

WatchPtr Fleet::next_version(const CameraPtr& camera) {
  const std::uint64_t fence = camera->tenure.fence;
  const auto [entry, is_new] = versions_.try_emplace(camera->name);
  Version& version = entry->second;
  if (is_new || version.fence != fence) {
    if (!is_new) leave_behind(version);
    version = {fence, fence > past_.fence ? 0 : past_.change};
  }
  return std::make_shared<const WatchSettings>(watch_of(*camera, version_of(fence, ++version.change)));
}

void Fleet::leave_behind(const Version& version) {
  past_ = {std::max(past_.fence, version.fence), std::max(past_.change, version.change)};
}

Fleet::Camera Fleet::make(CameraPtr camera, std::uint32_t generations) {
  const config::ReconnectSettings& reconnect = camera->stream.reconnect;
  // Cameras behind one switch must not draw the same jitter.
  const std::uint64_t seed = seed_ + std::hash<std::string>{}(camera->name) + generations;
  WatchPtr watch = next_version(camera);
  return {.camera = std::move(camera),
          .watch = std::move(watch),
          .pulse = std::make_shared<Pulse>(),
          .state = std::nullopt,
          .reason = {},
          .own_state = CameraState::connecting,
          .own_reason = {},
          .unwatched = {},
          .generations = generations,
          .running = false,
          .begun = false,
          .ended = false,
          .leaving = false,
          .next = nullptr,
          .backoff = std::make_shared<Backoff>(reconnect, seed),
          .start_at = TimePoint()};
}

std::uint32_t Fleet::started(const std::string& camera) {
  Camera& each = cameras_.at(camera);
  each.running = each.begun = true;
  each.start_at.reset();
  return each.generations++;
}

std::optional<Fleet::Change> Fleet::report(const std::string& camera, CameraState state,
                                           const std::string& reason) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return std::nullopt;
  return say(entry->second, state, reason);
}

std::optional<Fleet::Change> Fleet::unwatched(const std::string& camera, const std::string& reason) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return std::nullopt;
  entry->second.awaited.clear();
  entry->second.unwatched = reason;
  return show(entry->second);
}

std::optional<Fleet::Change> Fleet::awaits(const std::string& camera, const std::string& reason,
                                           TimePoint until) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return std::nullopt;
  Camera& each = entry->second;
  if (!each.unwatched.empty()) return unwatched(camera, reason);
  if (each.awaited.empty()) each.awaited_until = until;
  each.awaited = reason;
  return std::nullopt;
}

std::optional<Fleet::Change> Fleet::watched(const std::string& camera, const std::string& where) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return std::nullopt;
  Camera& each = entry->second;
  each.awaited.clear();
  if (std::exchange(each.unwatched, {}).empty()) return std::nullopt;
  if (each.own_state == CameraState::down) return show(each);
  return enter(each, each.own_state, where);
}

void Fleet::gave_up(const std::string& camera, const std::string& reason) {
  failures_.push_back("camera " + camera + ": " + reason);
}

Fleet::Unreachable Fleet::unreachable(const std::string& camera, const std::string& reason, TimePoint now) {
  Camera& each = cameras_.at(camera);
  const TimePoint again = next_attempt(*each.backoff, media::Error::Kind::source, now);
  return {again, say(each, CameraState::down, reason)};
}

Fleet::Loss Fleet::lost(const std::string& camera, bool failed, TimePoint now) {
  Camera& each = cameras_.at(camera);
  each.running = false;
  each.pulse->awaited();
  const auto rest = std::exchange(each.rest, std::nullopt);
  const bool comes_back = !stopping_ && !each.leaving;
  Loss loss;
  if (failed) {
    if (comes_back) each.start_at = now + each.backoff->next();
    loss.change = say(each, CameraState::down, "the camera's actor failed");
  } else if (rest && comes_back) {
    each.start_at = rest->until;
  }
  if (!each.start_at) {
    loss.orphaned = !each.ended;
  } else if (rest && rest->no_descriptor) {
    loss.source = {SourceEnd::Next::no_descriptor};
  } else {
    loss.source = {SourceEnd::Next::rest, *each.start_at};
  }
  return loss;
}

bool Fleet::ended(const std::string& camera) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end()) return false;
  end(entry->second);
  return !stopping_ && !entry->second.leaving;
}

void Fleet::end(Camera& camera) {
  if (!std::exchange(camera.ended, true)) ++ended_;
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
      each.watch = next_version(camera);
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
  leaving_.insert(camera.camera->name);
  camera.start_at.reset();
  if (!camera.begun) end(camera);
  if (camera.running) {
    plan.stop.push_back(camera.camera->name);
  } else if (!camera.ended) {
    plan.end.push_back(camera.watch);
  }
}

std::vector<std::string> Fleet::leaving() const {
  std::vector<std::string> names;
  for (const std::string& name : leaving_)
    if (const Camera& each = find(name); !each.running && !each.ended) names.push_back(name);
  return names;
}

Fleet::Departed Fleet::departed() {
  Departed departed;
  for (auto name = leaving_.begin(); name != leaving_.end();) {
    const auto entry = cameras_.find(*name);
    Camera& each = entry->second;
    if (!each.ended || each.running) {
      ++name;
      continue;
    }
    --ended_;
    if (each.next && !stopping_) {
      // What its predecessor still has under way earns it no credit.
      each = make(std::move(each.next), each.generations);
      departed.start.push_back(*name);
    } else {
      departed.gone.push_back(*name);
      cameras_.erase(entry);
      const auto version = versions_.find(*name);
      leave_behind(version->second);
      versions_.erase(version);
    }
    name = leaving_.erase(name);
  }
  return departed;
}

std::vector<Fleet::Change> Fleet::watch(TimePoint now) {
  std::vector<Change> changes;
  for (auto& [name, each] : cameras_) {
    const auto since = each.pulse->awaiting_since();
    const bool silent = since && now - *since >= each.camera->stream.stall_after;
    std::optional<Change> change;
    if (!each.awaited.empty() && now >= each.awaited_until) {
      each.unwatched = std::exchange(each.awaited, {});
      if (auto unwatched = show(each)) changes.push_back(std::move(*unwatched));
    }
    if (silent && each.state == CameraState::up) {
      change = enter(each, CameraState::stalled,
                     "silent for " + base::format_duration(each.camera->stream.stall_after));
    } else if (!silent && each.state == CameraState::stalled) {
      change = enter(each, each.own_state, "delivers again");
    }
    if (change) changes.push_back(std::move(*change));
  }
  return changes;
}

void Fleet::stop() {
  stopping_ = true;
  for (auto& [name, each] : cameras_) {
    each.start_at.reset();
    if (!each.begun) end(each);
  }
}

std::vector<WatchPtr> Fleet::remaining() const {
  std::vector<WatchPtr> cameras;
  for (const auto& [name, each] : cameras_) {
    if (!each.ended || (each.next && !stopping_)) cameras.push_back(each.watch);
  }
  return cameras;
}

bool Fleet::all_ended() const {
  const auto comes_back = [this](const std::string& name) { return find(name).next && !stopping_; };
  return ended_ == cameras_.size() && std::none_of(leaving_.begin(), leaving_.end(), comes_back);
}

std::vector<WatchPtr> Fleet::orphans() const {
  std::vector<WatchPtr> cameras;
  for (const auto& [name, each] : cameras_) {
    if (!each.ended && !each.running && !each.start_at) cameras.push_back(each.watch);
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
  const bool trouble = state == CameraState::down || state == CameraState::stalled;
  const bool recovered = state == CameraState::up && std::exchange(camera.troubled, false);
  camera.troubled = camera.troubled || trouble;
  const bool first = std::exchange(camera.told_version, camera.watch->version) != camera.watch->version;
  return Change{camera.watch, first, state, reason, camera.leaving, recovered, camera.next != nullptr};
}

}  // namespace vigil::actors
