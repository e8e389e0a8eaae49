#include "config/checks/idle_rules.h"

#include <algorithm>

namespace vigil::config {

std::vector<std::string> idle_rules(const Settings& settings) {
  std::vector<std::string> lines;
  for (const SharedRule& shared : settings.rules) {
    const bool asked =
        std::any_of(settings.cameras.begin(), settings.cameras.end(),
                    [&shared](const CameraSettings& camera) { return camera.has_labels(shared.labels); });
    if (asked) continue;
    std::string wanted;
    for (const auto& [name, value] : shared.labels)
      wanted.append(wanted.empty() ? "" : ", ").append(name).append(": ").append(value);
    lines.push_back("rules: `" + shared.rule.name + "` is a rule of no camera: none has its labels {" +
                    wanted + '}');
  }
  return lines;
}

}  // namespace vigil::config
