#include "config/checks/idle_rules.h"

#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"

namespace vigil::config {
namespace {

using ::testing::ElementsAre;

TEST(IdleRules, AreThoseWhoseLabelsNoCameraHas) {
  const Settings settings = parse(
      "model: m\n"
      "cameras:\n"
      "  gate: {url: x, labels: {site: north}, rules: [{name: r, prompt: p}]}\n"
      "  roof: {url: x, enabled: false, labels: {site: south}, rules: [{name: r, prompt: p}]}\n"
      "rules:\n"
      "  - {name: all, prompt: p}\n"
      "  - {name: r, prompt: p, labels: {site: north}}\n"
      "  - {name: off, prompt: p, labels: {site: south}}\n"
      "  - {name: idle, prompt: p, labels: {site: nort, tenant: demo}}\n",
      "/etc/vigil/site.yaml", [](const std::string&) { return std::nullopt; });
  EXPECT_THAT(
      idle_rules(settings),
      ElementsAre("rules: `idle` is a rule of no camera: none has its labels {site: nort, tenant: demo}"));
}

}  // namespace
}  // namespace vigil::config
