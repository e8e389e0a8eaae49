// The configuration of a fleet as a node reads it: from its file, or from its file and the registry.
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include <spdlog/logger.h>

#include "actors/status/metrics.h"
#include "cluster/membership/fleet_store.h"
#include "cluster/process/file_watch.h"
#include "config/settings.h"
#include "fleet/messages/messages.h"
#include "services/reload_loop.h"

namespace vigil::services {

/// What a text is to a node: settings in which secrets of cameras stay references, or what is wrong with it.
/// `file` stands in messages, and relative paths are relative to its folder.
struct FleetText {
  fleet::ReadConfigurationPtr read;
  /// All problems, a line each; empty if there is none.
  std::string problems;
};
FleetText fleet_text(const std::string& text, const std::filesystem::path& file);

/// Where a node's text is: in its file, and what is the fleet's of it there, too, or in the registry.
/// Thread-safe.
class FleetSource {
 public:
  explicit FleetSource(std::filesystem::path file) : file_(std::move(file)) {}

  const std::filesystem::path& file() const { return file_; }
  /// Of the file alone until something was offered. Throws.
  std::string text() const;
  /// The registry's part, from now on.
  void offer(std::string fleet);

 private:
  const std::filesystem::path file_;
  mutable std::mutex mutex_;
  std::optional<std::string> fleet_;
};

/// Waits until the registry has a configuration and offers it to the source. `say` gets a line when that
/// takes long.
void wait_for_configuration(cluster::FleetStore& store, FleetSource& source,
                            const std::function<void(const std::string&)>& say);

/// Reads the source when its file has changed or the watch was poked.
class FleetFile {
 public:
  /// `told` is called in a thread of its own with each reading. What is wrong with it is said by `news`, and
  /// so is what differs from `started` and takes effect at a start only. All has to outlive it.
  FleetFile(const FleetSource& source, cluster::FileWatch& watch, config::Settings started, ReloadNews& news,
            std::function<void(fleet::ReadConfigurationPtr)> told);
  ~FleetFile();
  FleetFile(const FleetFile&) = delete;
  FleetFile& operator=(const FleetFile&) = delete;

 private:
  cluster::FileWatch& watch_;
  std::thread thread_;
};

}  // namespace vigil::services
