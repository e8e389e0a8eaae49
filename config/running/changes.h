// What differs between two configurations, as far as it matters to a process that runs one of them.
#pragma once

#include <string>
#include <vector>

#include "config/settings.h"

namespace vigil::config {

struct Changes {
  /// Cameras by name, in the order of the new configuration. One that is not enabled counts as not there.
  std::vector<std::string> added;
  std::vector<std::string> removed;
  /// Another stream: they end and start again.
  std::vector<std::string> restarted;
  /// Other rules, labels or length of their windows: they go on.
  std::vector<std::string> altered;
  /// Keys, such as "alerts.bind", that differ and take effect at a start only.
  std::vector<std::string> fixed;
  bool log_level = false;

  bool empty() const;
};

Changes compare(const Settings& running, const Settings& wanted);

/// One line: "added gate-7; removed yard, dock". "nothing" if there is none.
std::string describe_changes(const Changes& changes);

/// The keys that take effect at a start only. Sorted.
std::vector<std::string> fixed_keys();

}  // namespace vigil::config
