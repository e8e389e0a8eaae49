#include "config/checks/short_grace.h"

#include <chrono>

#include "base/duration.h"

namespace vigil::config {
namespace {

/// Until streams are at their new nodes.
constexpr std::chrono::seconds kOnTheWay{5};

}  // namespace

std::vector<std::string> short_grace(const Settings& settings) {
  const CameraSettings* longest = nullptr;
  for (const CameraSettings& camera : settings.cameras)
    if (camera.enabled && (longest == nullptr || camera.stream.window.length > longest->stream.window.length))
      longest = &camera;
  if (longest == nullptr) return {};
  const base::Duration length = longest->stream.window.length;
  if (settings.shutdown_grace > length) return {};
  return {"shutdown_grace: " + base::format_duration(settings.shutdown_grace) +
          " is not longer than the window of camera `" + longest->name + "`, " +
          base::format_duration(length) + ": a node that computes it and ends loses windows; " +
          base::format_duration(length + kOnTheWay) + " or more are enough"};
}

}  // namespace vigil::config
