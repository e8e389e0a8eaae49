#include "actors/supervisor/routes.h"

namespace vigil::actors {
namespace {

std::string restarting(const std::string& device) {
  return device + " is being started again";
}

}  // namespace

std::optional<Routes::Decision> Routes::start(const std::string& camera) {
  const auto device = placement_.place(camera);
  if (!device) return std::nullopt;
  if (up_.contains(*device)) return Decision{camera, *device};
  if (placement_.state(*device) == DeviceState::up) return std::nullopt;
  const bool unheard = placement_.state(*device) == DeviceState::lost;
  return Decision{camera, {}, unheard ? "waits for " + *device : restarting(*device)};
}

bool Routes::is_watched(const std::string& camera) const {
  const auto device = placement_.device(camera);
  return device && up_.contains(*device);
}

std::optional<Routes::Decision> Routes::assign(const std::string& camera, const std::string& device) {
  if (placement_.place(camera) == device) return std::nullopt;
  placement_.assign(camera, device);
  return start(camera);
}

Routes::Decisions Routes::enter(const std::string& device, DeviceState state, const std::string& reason) {
  if (state == DeviceState::lost) return lose(device, reason);
  placement_.enter(device, state);
  Decisions decisions;
  if (state == DeviceState::up) {
    up_.insert(device);
    for (const std::string& camera : placement_.cameras(device))
      decisions.cameras.push_back({camera, device});
  } else {
    up_.erase(device);
    for (const std::string& camera : placement_.cameras(device))
      decisions.cameras.push_back({camera, {}, restarting(device) + ": " + reason});
  }
  return decisions;
}

Routes::Decisions Routes::lose(const std::string& device, const std::string& reason) {
  up_.erase(device);
  const std::string lost = device + " is lost: " + reason;
  Decisions decisions;
  for (const auto& [camera, other] : placement_.lose(device)) {
    decisions.cameras.push_back({camera, {}, lost});
    if (const auto next = other ? start(camera) : std::nullopt) decisions.cameras.push_back(*next);
  }
  if (!placement_.any_left() && !placement_.is_assigned()) decisions.hopeless = "no device is left: " + lost;
  return decisions;
}

}  // namespace vigil::actors
