// No silent fallback: what computes slower than it might is said, a line for each, once.
#pragma once

#include <string>
#include <utility>

#include "engine/run/slow_paths.h"

namespace vigil::services {

/// While this lives, `say` is given such lines, on any thread, one at a time; those from before at once. A
/// second one takes the lines over for good.
class SlowPathWarnings {
 public:
  explicit SlowPathWarnings(run::SlowPathListener say) {
    run::set_slow_path_listener(
        [say = std::move(say)](const std::string& line) { say("slower than it might be: " + line); });
  }
  ~SlowPathWarnings() { run::set_slow_path_listener({}); }
  SlowPathWarnings(const SlowPathWarnings&) = delete;
  SlowPathWarnings& operator=(const SlowPathWarnings&) = delete;
};

}  // namespace vigil::services
