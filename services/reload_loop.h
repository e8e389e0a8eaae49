// Follows the configuration's file while the pipeline runs.
#pragma once

#include <filesystem>
#include <functional>
#include <thread>

#include <spdlog/logger.h>

#include "actors/status/metrics.h"
#include "cluster/process/file_watch.h"
#include "config/running/reload.h"

namespace vigil::services {

/// A thread that reads the file again when it has changed or the watch was poked, and tells in the log and in
/// the metrics what came of it. What it is given has to outlive it.
class ReloadLoop {
 public:
  /// `apply` is called in the loop's thread with each configuration that runs from then on.
  ReloadLoop(config::Reloader reloader, cluster::FileWatch& watch, actors::Metrics& metrics,
             spdlog::logger& logger, std::function<void(const config::Settings&)> apply);
  ~ReloadLoop();
  ReloadLoop(const ReloadLoop&) = delete;
  ReloadLoop& operator=(const ReloadLoop&) = delete;

 private:
  cluster::FileWatch& watch_;
  std::thread thread_;
};

/// A thread that pokes a watch when another file changes that counts for what the watch's file says.
class FollowToo {
 public:
  /// `watch` has to outlive it.
  FollowToo(const std::filesystem::path& file, cluster::FileWatch& watch);
  ~FollowToo();
  FollowToo(const FollowToo&) = delete;
  FollowToo& operator=(const FollowToo&) = delete;

 private:
  cluster::FileWatch file_;
  std::thread thread_;
};

}  // namespace vigil::services
