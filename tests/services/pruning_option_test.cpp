// What `--pruning` and the options beside it make of a camera's pruning.
#include "services/pruning_option.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema/fields.h"

namespace vigil::services {
namespace {

using config::Pruning;
using config::PruningSettings;
using config::Refresh;

PruningSettings chosen(Pruning policy, Refresh refresh, double share = PruningSettings().refresh_share) {
  PruningSettings pruning;
  pruning.policy = policy;
  pruning.refresh = refresh;
  pruning.refresh_share = share;
  return pruning;
}

PruningSettings parsed(std::vector<std::string> arguments) {
  CLI::App command;
  PruningSettings pruning;
  add_pruning(command, pruning);
  // CLI11 takes them from the back.
  std::reverse(arguments.begin(), arguments.end());
  command.parse(arguments);
  return pruning;
}

TEST(PruningOption, APresetIsAPolicyAndARefresh) {
  EXPECT_EQ(parsed({}), PruningSettings());
  EXPECT_EQ(parsed({"--pruning", "exact"}), chosen(Pruning::none, Refresh::all));
  EXPECT_EQ(parsed({"--pruning", "balanced"}), chosen(Pruning::scene, Refresh::none));
  EXPECT_EQ(parsed({"--pruning=cheap"}), chosen(Pruning::changes, Refresh::none));
}

TEST(PruningOption, WhatStandsBesideItOverridesItInAnyOrder) {
  const PruningSettings policy = chosen(Pruning::reference, Refresh::none);
  EXPECT_EQ(parsed({"--pruning", "balanced", "--prune", "reference"}), policy);
  EXPECT_EQ(parsed({"--prune", "reference", "--pruning", "balanced"}), policy);
  const PruningSettings refresh = chosen(Pruning::scene, Refresh::topk, 0.5);
  EXPECT_EQ(parsed({"--pruning", "balanced", "--refresh", "topk", "--refresh-share", "0.5"}), refresh);
  EXPECT_EQ(parsed({"--refresh-share", "0.5", "--refresh", "topk", "--pruning", "balanced"}), refresh);
  PruningSettings budget = chosen(Pruning::changes, Refresh::none);
  budget.kv_budget = config::mebibytes(64);
  EXPECT_EQ(parsed({"--kv-budget", "64MiB", "--pruning", "cheap"}), budget);
}

TEST(PruningOption, ItsHelpSaysWhatAPresetIsShortFor) {
  CLI::App command;
  PruningSettings pruning;
  const std::vector<CLI::Option*> options = add_pruning(command, pruning);
  EXPECT_THAT(
      options.front()->get_description(),
      testing::StartsWith("Short for --prune and --refresh: exact for none and all, balanced for scene "
                          "and none, cheap for changes and none"));
  EXPECT_EQ(options.front()->get_default_str(), config::name_of(config::kDefaultPreset));
  EXPECT_EQ(options.size(), command.get_options().size() - 1) << "all but --help";
}

}  // namespace
}  // namespace vigil::services
