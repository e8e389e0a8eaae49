#include "config/checks/left_behind.h"

#include <system_error>
#include <utility>

namespace vigil::config {

std::vector<std::string> left_behind(const Settings& settings,
                                     const std::filesystem::path& working_directory) {
  std::vector<std::string> lines;
  const auto look = [&](const char* key, const std::filesystem::path& now,
                        const std::filesystem::path& name) {
    const std::filesystem::path before = working_directory / name;
    std::error_code unknown;
    if (now.filename() != name || std::filesystem::exists(now, unknown)) return;
    if (!std::filesystem::is_directory(before, unknown)) return;
    lines.push_back(std::string(key) + " is " + now.string() + " now, beside the configuration; " +
                    before.string() +
                    ", where it was before, is not read: move it there, or name it in the file");
  };
  look("alerts.outbox", settings.alerts.outbox, AlertSettings().outbox);
  if (settings.evidence.enabled) look("evidence.dir", settings.evidence.dir, EvidenceSettings().dir);
  return lines;
}

}  // namespace vigil::config
