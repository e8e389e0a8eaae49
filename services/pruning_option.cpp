#include "services/pruning_option.h"

#include <functional>
#include <string>

#include "config/schema/fields.h"
#include "config/values/byte_size.h"
#include "services/command.h"

namespace vigil::services {
namespace {

template <class E>
CLI::Option* add_named(CLI::App& command, const std::string& option, E now, const std::function<void(E)>& set,
                       const std::string& help) {
  std::vector<std::string> names;
  for (const auto& [name, each] : config::names_of(E())) names.emplace_back(name);
  return command
      .add_option_function<std::string>(
          option,
          [set](const std::string& text) {
            for (const auto& [name, each] : config::names_of(E()))
              if (name == text) set(each);
          },
          help)
      ->check(one_of(names))
      ->default_str(std::string(config::name_of(now)));
}

template <class E>
CLI::Option* add_named(CLI::App& command, const std::string& option, E& value, const std::string& help) {
  return add_named<E>(
      command, option, value, [&value](E chosen) { value = chosen; }, help);
}

CLI::Option* add_preset(CLI::App& command, config::PruningSettings& pruning) {
  std::string help = "Short for --prune and --refresh:";
  for (const config::PresetMeaning& each : config::kPresets) {
    help.append(&each == config::kPresets.data() ? " " : ", ").append(each.name).append(" for ");
    help.append(config::name_of(each.policy)).append(" and ").append(config::name_of(each.refresh));
  }
  return add_named<config::Preset>(
      command, "--pruning", config::kDefaultPreset,
      [&pruning](config::Preset preset) { config::set_preset(pruning, preset); },
      help + "; each of the options below overrides its part");
}

CLI::Option* add_budget(CLI::App& command, config::ByteSize& budget) {
  return command
      .add_option_function<std::string>(
          "--kv-budget",
          [&budget](const std::string& text) { budget = config::parse_byte_size(text).value(); },
          "Keys and values of a camera's windows in the cache, such as 64MiB, as its `pruning: {kv_budget: "
          "…}`: "
          "beyond it, pruning gets harder, then windows get shorter; 0B: as much as there is")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return config::parse_byte_size(text) ? std::string()
                                                 : "expected a size such as 64MiB, not '" + text + "'";
          },
          ""))
      ->type_name("SIZE")
      ->default_str(config::format_byte_size(budget));
}

}  // namespace

std::vector<CLI::Option*> add_pruning(CLI::App& command, config::PruningSettings& pruning) {
  // CLI11 applies options in this order, whatever that of the arguments.
  return {add_preset(command, pruning),
          add_named(command, "--prune", pruning.policy,
                    "What of the frames is encoded, as a camera's `pruning: {policy: …}`"),
          command
              .add_option("--motion-threshold", pruning.motion_threshold,
                          "Of codecsight: pixels of motion that a patch has to exceed")
              ->check(from_to(0, 1000))
              ->capture_default_str(),
          command
              .add_option("--residual-weight", pruning.residual_weight,
                          "Of codecsight: pixels that a level of difference of a patch from its prediction "
                          "adds")
              ->check(from_to(0, 1000))
              ->capture_default_str(),
          add_named(command, "--refresh", pruning.refresh,
                    "What a window computes anew of what the one before has computed"),
          command
              .add_option("--refresh-share", pruning.refresh_share,
                          "How much that is, of its visual tokens, where the policy leaves it open")
              ->check(from_to(0, 1))
              ->capture_default_str(),
          add_budget(command, pruning.kv_budget)};
}

}  // namespace vigil::services
