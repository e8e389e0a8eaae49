#include "fleet/node/place_book.h"

#include <utility>

#include "fleet/messages/messages.h"
#include "fleet/node/node_desk.h"

namespace vigil::fleet {

std::vector<PlaceBook::Left> PlaceBook::follow(const std::map<std::string, cluster::PlannedCamera>& cameras) {
  std::vector<Left> left;
  Places now;
  for (const auto& [camera, entry] : cameras) {
    Place place{device_of(entry.vision, entry.stream), former_device_of(entry), entry.stream_fence};
    if (const auto before = places_.find(camera); before != places_.end()) {
      if (place.device.empty() && refusal_of(entry).empty()) place = before->second;
      for (const std::string& device : {before->second.device, before->second.former})
        if (!device.empty() && device != place.device && device != place.former)
          left.push_back({device, camera, place.goes_on(stream_of(device))});
    }
    now.emplace(camera, std::move(place));
  }
  // Its next owner goes on with it where it is, and with what else has been left.
  for (const auto& [camera, place] : places_)
    if (!now.contains(camera) && place.has_same_stream()) left.push_back({place.former, camera, true});
  places_ = std::move(now);
  return left;
}

std::string refusal_of(const cluster::PlannedCamera& camera) {
  if (camera.rung != cluster::kRefused) return {};
  return camera.why_rung.empty() ? std::string(cluster::kRefused) : camera.why_rung;
}

}  // namespace vigil::fleet
