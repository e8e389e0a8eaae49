// What the pipeline behind a camera has to know of it. Plain, and free of CAF.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "config/settings.h"

namespace vigil::actors {

/// Names the settings by which something was made, without holding them.
struct WatchRef {
  /// The camera's name.
  std::string camera;
  std::uint64_t version = 0;
  friend bool operator==(const WatchRef&, const WatchRef&) = default;
};

/// Of a camera's settings, what the rest of the pipeline needs: neither where it is nor how it is opened and
/// decoded, so that no address and no password leaves the camera's node.
struct WatchSettings {
  /// The camera's name.
  std::string name;
  /// Grows with every change of the camera's settings within a run.
  std::uint64_t version = 0;
  std::string tenant;
  std::map<std::string, std::string> labels;
  /// Each is snoozed as long as its camera is.
  std::vector<config::RuleSettings> rules;
  config::WindowSettings window;
  config::PruningSettings pruning;
  /// Frames sampled a second.
  double fps = 0;
  /// Whether nothing of this camera may be dropped: its source waits instead.
  bool lossless = false;

  WatchRef ref() const { return {name, version}; }
  friend bool operator==(const WatchSettings&, const WatchSettings&) = default;
};

/// Shared within a process, and does not change any more.
using WatchPtr = std::shared_ptr<const WatchSettings>;

WatchSettings watch_of(const config::CameraSettings& camera, std::uint64_t version = 0);

}  // namespace vigil::actors
