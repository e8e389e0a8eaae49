// Where what `vigil snooze` says is kept: beside the configuration, or in a fleet's registry.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/running/snoozes.h"
#include "config/settings.h"

namespace vigil::services {

class SnoozeStore {
 public:
  virtual ~SnoozeStore() = default;

  virtual config::Snoozes read() = 0;
  /// Changes it as a whole; `change` gets what is there, perhaps more than once. Throws std::runtime_error
  /// with one line.
  virtual void change(const std::function<void(std::vector<config::Snooze>&)>& change) = 0;
  /// The configuration whose cameras may be snoozed, without their secrets. Throws.
  virtual config::Settings settings() = 0;
};

/// The registry's, if the configuration is of a fleet. Throws.
std::unique_ptr<SnoozeStore> snooze_store(const std::filesystem::path& configuration);

}  // namespace vigil::services
