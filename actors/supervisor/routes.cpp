#include "actors/supervisor/routes.h"

namespace vigil::actors {
namespace {

/// Of another node nobody here knows whether anybody starts it again.
std::string away(const std::string& device, bool is_elsewhere) {
  return device + (is_elsewhere ? " cannot be reached" : " is being started again");
}

}  // namespace

std::optional<Routes::Decision> Routes::watched(const std::string& camera) const {
  const auto device = placement_.device(camera);
  const auto former = formers_.find(camera);
  const bool goes_on = former != formers_.end() && up_.contains(former->second.device);
  if (device && up_.contains(*device)) {
    const bool both = goes_on && !former->second.has_same_stream;
    return Decision{camera, *device, {}, both ? former->second.device : ""};
  }
  return goes_on ? std::optional(Decision{camera, former->second.device}) : std::nullopt;
}

Routes::Decision Routes::left(const std::string& camera, const std::string& reason) const {
  return watched(camera).value_or(Decision{camera, {}, reason});
}

std::vector<std::string> Routes::leaving(const std::string& device) const {
  std::vector<std::string> cameras;
  for (const auto& [camera, former] : formers_)
    if (former.device == device) cameras.push_back(camera);
  return cameras;
}

std::optional<Routes::Decision> Routes::start(const std::string& camera) {
  if (const auto found = withheld_.find(camera); found != withheld_.end())
    return Decision{camera, {}, found->second};
  const auto device = placement_.place(camera);
  if (!device) return std::nullopt;
  if (auto decision = watched(camera)) return decision;
  if (placement_.state(*device) == DeviceState::up) return std::nullopt;
  const bool unheard = placement_.state(*device) == DeviceState::lost;
  if (unheard) return Decision{camera, {}, "waits for " + *device, {}, true};
  return Decision{camera, {}, away(*device, placement_.is_assigned())};
}

bool Routes::is_watched(const std::string& camera) const {
  return watched(camera).has_value();
}

std::optional<Routes::Decision> Routes::assign(const std::string& camera, const std::string& device,
                                               const FormerDevice& former) {
  withheld_.erase(camera);
  const auto before = formers_.find(camera);
  if (placement_.place(camera) == device &&
      (before == formers_.end() ? FormerDevice() : before->second) == former)
    return std::nullopt;
  placement_.assign(camera, device);
  if (former.device.empty()) {
    formers_.erase(camera);
  } else {
    formers_[camera] = former;
  }
  return start(camera);
}

std::optional<Routes::Decision> Routes::withhold(const std::string& camera, const std::string& reason) {
  if (const auto known = withheld_.find(camera); known != withheld_.end() && known->second == reason)
    return std::nullopt;
  withheld_[camera] = reason;
  placement_.remove(camera);
  formers_.erase(camera);
  return Decision{camera, {}, reason};
}

Routes::Decisions Routes::enter(const std::string& device, DeviceState state, const std::string& reason) {
  if (state == DeviceState::lost) return lose(device, reason);
  placement_.enter(device, state);
  Decisions decisions;
  if (state == DeviceState::up) {
    up_.insert(device);
  } else {
    up_.erase(device);
  }
  const std::string why = away(device, placement_.is_assigned()) + ": " + reason;
  for (const std::string& camera : placement_.cameras(device)) decisions.cameras.push_back(left(camera, why));
  for (const std::string& camera : leaving(device)) decisions.cameras.push_back(left(camera, why));
  return decisions;
}

Routes::Decisions Routes::lose(const std::string& device, const std::string& reason) {
  up_.erase(device);
  const std::string lost = device + " is lost: " + reason;
  Decisions decisions;
  for (const auto& [camera, other] : placement_.lose(device)) {
    decisions.cameras.push_back(other ? Decision{camera, {}, lost} : left(camera, lost));
    if (const auto next = other ? start(camera) : std::nullopt) decisions.cameras.push_back(*next);
  }
  for (const std::string& camera : leaving(device)) decisions.cameras.push_back(left(camera, lost));
  if (!placement_.any_left() && !placement_.is_assigned()) decisions.hopeless = "no device is left: " + lost;
  return decisions;
}

}  // namespace vigil::actors
