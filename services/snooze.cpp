// vigil snooze: silence for a camera or a rule while a process runs.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/timestamp.h"
#include "cluster/process/clock.h"
#include "config/file/load.h"
#include "config/running/snoozes.h"
#include "config/values/meant_name.h"
#include "services/command.h"
#include "services/snooze_store.h"

namespace vigil::services {
namespace {

struct SnoozeArguments {
  std::string config;
  std::string target;
  std::string length;
  bool list = false;
  bool clear = false;
};

/// Throws UsageError for what can be no name.
config::Snooze named(const std::string& text) {
  const auto target = config::parse_target(text);
  if (!target) throw UsageError("expected CAMERA or CAMERA/RULE, not '" + text + "'");
  return *target;
}

[[noreturn]] void missing(std::string text, const std::string& name, const std::vector<std::string>& known) {
  if (const auto meant = config::meant_name(name, known)) text += "; did you mean `" + *meant + "`?";
  throw std::runtime_error(text);
}

/// The target, which the configuration has.
config::Snooze target_of(const SnoozeArguments& arguments, SnoozeStore& store) {
  config::Snooze target = named(arguments.target);
  const config::Settings settings = store.settings();
  if (config::has_target(settings, target)) return target;
  std::vector<std::string> names;
  const auto camera = std::find_if(settings.cameras.begin(), settings.cameras.end(),
                                   [&](const auto& each) { return each.name == target.camera; });
  if (camera == settings.cameras.end()) {
    for (const config::CameraSettings& each : settings.cameras) names.push_back(each.name);
    missing(arguments.config + ": has no camera `" + target.camera + '`', target.camera, names);
  }
  for (const config::RuleSettings& each : camera->rules) names.push_back(each.name);
  missing(arguments.config + ": the camera `" + target.camera + "` has no rule `" + target.rule + '`',
          target.rule, names);
}

std::string in_words(const config::Snooze& snooze) {
  return snooze.target() + " until " + base::format_rfc3339(snooze.until);
}

int list(const SnoozeArguments& arguments, base::Clock::WallTime now) {
  if (!arguments.target.empty()) throw UsageError("--list shows all: it takes no TARGET and no DURATION");
  const auto store = snooze_store(arguments.config);
  std::vector<config::Snooze> configured = config::configured_snoozes(store->settings());
  config::Snoozes snoozes = store->read();
  for (const std::string& fault : snoozes.faults) std::cerr << "vigil: " << fault << '\n';
  config::forget_past(snoozes.entries, now);
  config::forget_past(configured, now);
  for (const config::Snooze& each : snoozes.entries) std::cout << in_words(each) << '\n';
  for (const config::Snooze& each : configured) std::cout << in_words(each) << " (configuration)\n";
  if (snoozes.entries.empty() && configured.empty()) std::cout << "nothing is snoozed\n";
  return snoozes.faults.empty() ? kDone : kFailed;
}

int clear(const SnoozeArguments& arguments, base::Clock::WallTime now) {
  // The configuration may have it no more, but is there.
  const config::Snooze target = named(arguments.target);
  std::error_code unknown;
  if (!std::filesystem::exists(arguments.config, unknown))
    throw std::runtime_error(arguments.config + ": no such file");
  bool lifted = false;
  std::optional<config::Snooze> whole;
  snooze_store(arguments.config)->change([&](auto& entries) {
    config::forget_past(entries, now);
    lifted = config::lift(entries, target);
    whole = config::snooze_of_camera(entries, target);
  });
  std::cout << arguments.target << (lifted ? " is not snoozed any more" : " was not snoozed");
  if (whole) std::cout << " by itself, but with all of " << in_words(*whole);
  std::cout << '\n';
  return kDone;
}

int snooze(const SnoozeArguments& arguments) {
  const cluster::SystemClock clock;
  if (arguments.list) return list(arguments, clock.wall());
  if (arguments.target.empty()) throw UsageError("name a CAMERA or CAMERA/RULE, or --list");
  if (arguments.clear != arguments.length.empty())
    throw UsageError("give either how long, such as 30m, or --clear");
  if (arguments.clear) return clear(arguments, clock.wall());
  constexpr std::chrono::hours kLongest{8760};
  const auto length = base::parse_duration(arguments.length);
  if (!length || length->count() == 0 || *length > kLongest)
    throw UsageError("expected a duration up to 365d, such as 30m or 2h, not '" + arguments.length + "'");
  const auto store = snooze_store(arguments.config);
  config::Snooze snooze = target_of(arguments, *store);
  snooze.until = clock.wall() + *length;
  store->change([&](auto& entries) {
    config::forget_past(entries, clock.wall());
    config::put(entries, snooze);
  });
  std::cout << in_words(snooze) << '\n';
  return kDone;
}

}  // namespace

void add_snooze(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("snooze", "Silence a camera or a rule for some time");
  auto arguments = std::make_shared<SnoozeArguments>();
  command->add_option("TARGET", arguments->target, "CAMERA, or CAMERA/RULE")->type_name("");
  command->add_option("DURATION", arguments->length, "how long from now on, such as 30m, 2h or 1d")
      ->type_name("");
  command->add_option("--config", arguments->config, "the configuration of the `vigil run`, or of the fleet")
      ->required()
      ->type_name("FILE");
  auto* list =
      command->add_flag("--list", arguments->list, "show what is snoozed, also by the configuration itself");
  command->add_flag("--clear", arguments->clear, "end the snooze; of a CAMERA, also those of its rules")
      ->excludes(list);
  command->footer(
      "What runs follows within a second, without a restart. What is set is kept in FILE.snoozes, beside the "
      "configuration, or in the registry of a fleet whose configuration it is, also over restarts; "
      "`snooze_until` in the configuration itself counts beside it.\n"
      "Example: vigil snooze gate-7/person 30m --config site.yaml");
  command->callback([arguments, &chosen] {
    chosen = [arguments] {
      try {
        return snooze(*arguments);
      } catch (const config::ConfigError& error) {
        std::cerr << error.what() << '\n';
        return static_cast<int>(kFailed);
      }
    };
  });
}

}  // namespace vigil::services
