// Follows the configuration's file while the pipeline runs.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>

#include <spdlog/logger.h>

#include "actors/status/metrics.h"
#include "cluster/process/file_watch.h"
#include "config/running/reload.h"

namespace vigil::services {

/// What is told of a file that was read again, in the log and in the metrics. Thread-safe.
class ReloadNews {
 public:
  /// Both have to outlive it.
  ReloadNews(actors::Metrics& metrics, spdlog::logger& logger) : metrics_(metrics), logger_(logger) {}

  /// It holds from now on: what has changed.
  void applied(const std::string& line);
  /// It does not: what is wrong with it, a line each.
  void refused(const std::string& problems);
  void warn(const std::string& line) { logger_.warn("configuration: {}", line); }

 private:
  actors::Metrics& metrics_;
  spdlog::logger& logger_;
  std::atomic<bool> was_refused_ = false;
};

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
