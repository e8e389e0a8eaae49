// vigil check-config: every problem of a configuration file at once.
#include <iostream>
#include <memory>

#include <CLI/CLI.hpp>

#include "config/load.h"
#include "services/command.h"

namespace vigil::services {
namespace {

int check(const std::string& file, bool effective) {
  config::Settings settings;
  try {
    settings = config::load(file);
  } catch (const config::ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
  if (effective) {
    std::cout << config::effective(settings);
    return kDone;
  }
  std::size_t watched = 0;
  std::size_t rules = 0;
  for (const config::CameraSettings& camera : settings.cameras) {
    if (!camera.enabled) continue;
    ++watched;
    rules += camera.rules.size();
  }
  std::cout << "ok: " << watched << (watched == 1 ? " camera, " : " cameras, ") << rules
            << (rules == 1 ? " rule" : " rules");
  if (watched < settings.cameras.size()) {
    std::cout << "; " << settings.cameras.size() - watched << " not enabled";
  }
  std::cout << '\n';
  return kDone;
}

}  // namespace

void add_check_config(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("check-config", "Check a configuration file");
  auto file = std::make_shared<std::string>();
  auto effective = std::make_shared<bool>(false);
  command->add_option("FILE", *file, "the configuration")->required();
  command->add_flag("--effective", *effective, "print every setting as it applies, secrets masked");
  command->footer(
      "Problems go to stderr as FILE:LINE:COLUMN: MESSAGE, all at once. config/vigil.schema.json is for "
      "editors.");
  command->callback(
      [file, effective, &chosen] { chosen = [file, effective] { return check(*file, *effective); }; });
}

}  // namespace vigil::services
