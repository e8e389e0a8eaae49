// The cameras of the configuration that a node runs by, and its own ones as it opens them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "config/running/snoozes.h"
#include "config/settings.h"

namespace vigil::fleet {

using SettingsPtr = std::shared_ptr<const config::Settings>;

/// What secrets of cameras refer to is put in here, of those cameras alone that this node opens, and is
/// forgotten with them. Not thread-safe.
class CameraBook {
 public:
  struct Options {
    /// A camera with its secrets (config/file/references.h); throws std::runtime_error, one line without
    /// them.
    std::function<config::CameraSettings(config::CameraSettings)> resolve;
    /// One line.
    std::function<void(const std::string&)> warn = {};
    /// How often what could not be resolved, or is in a file, is looked at again.
    base::Duration again{10'000};
  };

  /// The clock has to outlive it.
  CameraBook(const base::Clock& clock, Options options);

  /// Another configuration holds: all secrets are looked at anew.
  void run_by(SettingsPtr settings);
  /// Null: none yet.
  const SettingsPtr& settings() const { return settings_; }
  /// What is silent beside what the configuration says.
  void snooze(std::vector<config::Snooze> entries) { snoozes_ = std::move(entries); }

  /// An enabled camera of the configuration; null if there is none.
  const config::CameraSettings* find(const std::string& camera) const;
  std::vector<std::string> names() const;

  /// Of a camera that `find` finds, to be opened by this node; one whose secrets are not there says so in
  /// place of its address (`config::without_secrets`). `rung`: what the fleet has room for (`config::lower`);
  /// one that is refused stays as it was opened last, since nothing of it is computed.
  config::CameraSettings open(const std::string& camera, const std::string& rung = "");
  /// All others than these are not this node's any more.
  void keep(const std::set<std::string>& own);
  /// Whether what secrets refer to may be another by now.
  bool is_time() const { return clock_.now() >= looked_ + options_.again; }
  /// Looks again if it is time to; whether `open` gives something else now.
  bool look_again();

  /// Why a camera that this node has open could not be opened by another configuration: one line; empty if
  /// all could.
  std::string fault_by(const config::Settings& other) const;

 private:
  struct Open {
    config::CameraSettings settings;
    /// Why not, if so.
    std::string fault;
    /// By which it was opened.
    std::string rung = {};
  };

  Open resolved(const config::CameraSettings& camera) const;
  Open& find_open(const std::string& camera);
  static void replace(Open& open, Open now);

  const base::Clock& clock_;
  const Options options_;
  SettingsPtr settings_;
  std::map<std::string, const config::CameraSettings*> cameras_;
  std::map<std::string, Open> open_;
  std::vector<config::Snooze> snoozes_;
  base::Clock::TimePoint looked_;
};

}  // namespace vigil::fleet
