// `pruning: {preset: …}`, and `pruning: …`, which is short for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

PruningSettings chosen(Pruning policy, Refresh refresh, double share = PruningSettings().refresh_share) {
  PruningSettings pruning;
  pruning.policy = policy;
  pruning.refresh = refresh;
  pruning.refresh_share = share;
  return pruning;
}

/// Of the camera of the smallest file, with these lines of its own and for all.
PruningSettings pruning(const std::string& own, const std::string& defaults = "") {
  return read(minimal(own.empty() ? own : "    pruning: " + own + "\n") +
              (defaults.empty() ? defaults : "defaults: {pruning: " + defaults + "}\n"))
      .cameras[0]
      .stream.pruning;
}

TEST(LoadPresets, APresetIsAPolicyAndARefresh) {
  const PruningSettings exact = chosen(Pruning::none, Refresh::all);
  const PruningSettings balanced = chosen(Pruning::scene, Refresh::none);
  const PruningSettings cheap = chosen(Pruning::changes, Refresh::none);
  for (const auto& [name, wanted] :
       {std::pair("exact", exact), std::pair("balanced", balanced), std::pair("cheap", cheap)}) {
    const std::string map = std::string("{preset: ") + name + '}';
    EXPECT_EQ(pruning(map), wanted) << map;
    EXPECT_EQ(pruning(name), wanted) << name;
    EXPECT_EQ(pruning("", map), wanted) << map << " for all";
    EXPECT_EQ(pruning("", name), wanted) << name << " for all";
  }
  EXPECT_EQ(pruning("\"balanced\""), balanced) << "in quotes";
}

TEST(LoadPresets, WhatIsNotSaidIsTheDefaultPreset) {
  PruningSettings wanted;
  set_preset(wanted, kDefaultPreset);
  EXPECT_EQ(PruningSettings(), wanted);
  for (const char* nothing : {"", "{}", "~"}) EXPECT_EQ(pruning(nothing), wanted) << nothing;
}

TEST(LoadPresets, WhatStandsBesideItOverridesItInAnyOrder) {
  for (const char* order : {"{preset: balanced, policy: changes}", "{policy: changes, preset: balanced}"})
    EXPECT_EQ(pruning(order), chosen(Pruning::changes, Refresh::none)) << order;
  for (const char* order : {"{preset: cheap, refresh: first-k, refresh_share: 0.3}",
                            "{refresh_share: 0.3, refresh: first-k, preset: cheap}"})
    EXPECT_EQ(pruning(order), chosen(Pruning::changes, Refresh::first_k, 0.3)) << order;
}

TEST(LoadPresets, ACamerasOverridesTheDefaultsPolicyAndRefreshAndNoMore) {
  const std::string defaults =
      "{policy: reference, refresh: random-k, refresh_share: 0.3, kv_budget: 300MiB, motion_threshold: 2, "
      "residual_weight: 0.5}";
  PruningSettings wanted = chosen(Pruning::scene, Refresh::none);
  wanted.motion_threshold = 2;
  wanted.residual_weight = 0.5;
  wanted.kv_budget = mebibytes(300);
  EXPECT_EQ(pruning("{preset: balanced}", defaults), wanted);
  EXPECT_EQ(pruning("balanced", defaults), wanted);
  const PruningSettings exact = pruning("exact", "cheap");
  EXPECT_EQ(exact, chosen(Pruning::none, Refresh::all));
  const PruningSettings part = pruning("{refresh: all}", "balanced");
  EXPECT_EQ(part, chosen(Pruning::scene, Refresh::all))
      << "what the camera does not say, the defaults' preset does";
}

TEST(LoadPresets, WhatItStandsForIsPrinted) {
  const Settings settings =
      read(minimal("    pruning: {preset: cheap, kv_budget: 1GiB}\n") + "defaults: {pruning: balanced}\n");
  const std::string printed = effective(settings);
  EXPECT_THAT(printed, Not(HasSubstr("preset")));
  EXPECT_THAT(printed, Not(HasSubstr("balanced")));
  EXPECT_THAT(printed, HasSubstr("pruning:\n    policy: scene\n")) << "of the defaults";
  EXPECT_THAT(printed, HasSubstr("pruning:\n      policy: changes\n")) << "of the camera";
  EXPECT_EQ(effective(read(printed)), printed);
  EXPECT_EQ(read(printed).cameras[0].stream, settings.cameras[0].stream);
}

TEST(LoadPresets, AWrongOneIsOneLine) {
  EXPECT_THAT(problems_of(minimal("    pruning: {preset: fast, refresh: none}\n")),
              ElementsAre(Problem{6, 23,
                                  "cameras.gate.pruning.preset: expected one of exact, balanced, cheap, not "
                                  "`fast`"}));
  EXPECT_THAT(problems_of(minimal("    pruning: {preset: [cheap]}\n")),
              ElementsAre(Problem{6, 23, "cameras.gate.pruning.preset: expected one value"}));
  EXPECT_THAT(problems_of(minimal("    pruning: scene\n")),
              ElementsAre(Problem{6, 14,
                                  "cameras.gate.pruning: expected one of exact, balanced, cheap, or keys and "
                                  "values, not `scene`"}));
  EXPECT_THAT(problems_of(minimal() + "defaults: {pruning: Exact}\n"),
              ElementsAre(Problem{6, 21,
                                  "defaults.pruning: expected one of exact, balanced, cheap, or keys and "
                                  "values, not `Exact`"}));
  EXPECT_THAT(problems_of(minimal("    pruning: [balanced]\n")),
              ElementsAre(Problem{6, 14, "cameras.gate.pruning: expected keys and values"}));
}

}  // namespace
}  // namespace vigil::config
