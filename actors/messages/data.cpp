#include "actors/messages/data.h"

#include <algorithm>
#include <cmath>

namespace vigil::actors {

double patch_duration(const config::CameraSettings& camera, int frames_per_patch) {
  return frames_per_patch / camera.stream.fps;
}

int patches_in(const config::CameraSettings& camera, config::Duration time, int frames_per_patch) {
  // A hair less than exact, so that 2 s at 1 s each are 2 patches whatever the rounding of fps.
  const double patches = config::seconds(time) / patch_duration(camera, frames_per_patch) - 1e-6;
  return std::max(1, static_cast<int>(std::ceil(patches)));
}

double time_tolerance(const config::CameraSettings& camera) {
  return 0.5 / camera.stream.fps;
}

std::int64_t stride_at(const config::CameraSettings& camera, double seconds) {
  const double strides = (seconds + time_tolerance(camera)) / config::seconds(camera.stream.window.stride);
  return static_cast<std::int64_t>(std::floor(strides));
}

std::string alert_topic(const config::CameraSettings& camera, const config::RuleSettings& rule) {
  return "alert/" + camera.tenant() + '/' + camera.name + '/' + rule.name + '/';
}

std::vector<std::string> alert_topics(const config::CameraSettings& camera,
                                      const config::RuleSettings& rule) {
  std::vector<std::string> topics = {alert_topic(camera, rule)};
  for (const std::string& name : rule.topics) {
    topics.push_back("topic/" + name + '/' + camera.tenant() + '/' + camera.name + '/' + rule.name + '/');
  }
  return topics;
}

std::string status_topic(const config::CameraSettings& camera) {
  return "status/" + camera.tenant() + '/' + camera.name + '/';
}

}  // namespace vigil::actors
