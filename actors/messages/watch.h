// What the pipeline behind a camera has to know of it. Plain, and free of CAF.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/duration.h"
#include "config/settings.h"

namespace vigil::actors {

/// The n-th version of settings that an owner of the camera makes: beyond all of the owners before.
constexpr std::uint64_t version_of(std::uint64_t fence, std::uint64_t change) {
  return (fence << 20U) + change;
}
/// Of the owner that made this version; 0 of a process that is alone.
constexpr std::uint64_t fence_of(std::uint64_t version) {
  return version >> 20U;
}

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
  /// Grows with every change of the camera's settings within a run, and with every new owner (`version_of`).
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
  /// How long what it saw is remembered; 0: not at all.
  base::Duration keep{};

  WatchRef ref() const { return {name, version}; }
  friend bool operator==(const WatchSettings&, const WatchSettings&) = default;
};

/// Shared within a process, and does not change any more.
using WatchPtr = std::shared_ptr<const WatchSettings>;

WatchSettings watch_of(const config::CameraSettings& camera, std::uint64_t version = 0);

}  // namespace vigil::actors
