// The configuration of a running process, and what becomes of it when its file changes: all of it, or
// nothing.
#pragma once

#include <functional>
#include <string>

#include "config/running/changes.h"
#include "config/settings.h"

namespace vigil::config {

/// Not thread-safe.
class Reloader {
 public:
  /// Reads the file; throws what `load` throws.
  using Load = std::function<Settings()>;

  Reloader(Settings running, Load load);

  struct Outcome {
    /// Whether the file is what runs now, be it that nothing had changed. Otherwise what ran goes on
    /// unchanged.
    bool applied = false;
    Changes changes;
    /// What changed, or why nothing did: a line for each problem.
    std::string message;
  };

  /// Reads the file again. It is refused as a whole if it has a problem, or if a key differs that takes
  /// effect at a start only: what runs is always what one file says.
  Outcome reload();

  const Settings& running() const { return running_; }

 private:
  Settings running_;
  Load load_;
};

}  // namespace vigil::config
