// Which rules go to which cameras, and for how long they are silent.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> rule_names(const CameraSettings& camera) {
  std::vector<std::string> names;
  for (const RuleSettings& rule : camera.rules) names.push_back(rule.name + ':' + rule.prompt);
  return names;
}

TEST(Load, SharedRulesGoToTheCamerasWithTheirLabels) {
  const std::string text =
      "model: m\n"
      "alerts: {outbox: /var/lib/vigil}\n"
      "evidence: {dir: /var/lib/vigil/evidence}\n"
      "rules:\n"
      "  - {name: fire, prompt: 'Fire?', topics: [safety]}\n"
      "  - {name: truck, prompt: 'Truck?', labels: {zone: dock, tenant: north}}\n"
      "cameras:\n"
      "  dock: {url: a, labels: {zone: dock, tenant: north}}\n"
      "  yard: {url: b, labels: {zone: dock}, rules: [{name: dog, prompt: 'Dog?'}]}\n"
      "  kiln: {url: c, rules: [{name: fire, prompt: 'Outside the kiln?'}]}\n";
  const Settings settings = read(text);
  EXPECT_THAT(rule_names(settings.cameras[0]), ElementsAre("fire:Fire?", "truck:Truck?"));
  EXPECT_THAT(rule_names(settings.cameras[1]), ElementsAre("dog:Dog?", "fire:Fire?"));
  EXPECT_THAT(rule_names(settings.cameras[2]), ElementsAre("fire:Outside the kiln?"))
      << "its own rule of that name stands";
  EXPECT_THAT(settings.cameras[0].rules[0].topics, ElementsAre("safety"));
  const std::string printed = effective(settings);
  EXPECT_EQ(effective(read(printed)), printed);
}

TEST(Load, ACameraThatNoRuleFitsIsAProblemAtItsLine) {
  const auto problems = problems_of(
      "model: m\n"
      "rules: [{name: r, prompt: p, labels: {zone: dock}}]\n"
      "cameras:\n"
      "  a: {url: x, labels: {zone: dock}}\n"
      "  b: {url: y, labels: {zone: yard}}\n"
      "  c: {url: z, fps: 0}\n");
  ASSERT_EQ(problems.size(), 3U);
  EXPECT_EQ(problems[0].line, 5);
  EXPECT_THAT(problems[0].message, HasSubstr("cameras.b.rules: there is no rule"));
  EXPECT_EQ(problems[1].line, 6);
  EXPECT_EQ(problems[2].line, 6);
}

TEST(Load, SnoozesAreThoseOfTheRuleAndOfItsCamera) {
  const Settings settings = read(
      "model: m\n"
      "alerts: {outbox: /var/lib/vigil}\n"
      "evidence: {dir: /var/lib/vigil/evidence}\n"
      "cameras:\n"
      "  a:\n"
      "    url: x\n"
      "    snooze_until: 2026-08-01T12:00:00+02:00\n"
      "    rules:\n"
      "      - {name: early, prompt: p, snooze_until: 2026-08-01T09:00:00Z}\n"
      "      - {name: late, prompt: p, snooze_until: 2026-08-01T11:00:00Z}\n"
      "      - {name: none, prompt: p}\n"
      "  b: {url: y, rules: [{name: r, prompt: p}]}\n");
  const base::Clock::WallTime ten{std::chrono::seconds(1785578400)};
  const CameraSettings& a = settings.cameras[0];
  EXPECT_EQ(a.snoozed_until(a.rules[0]), ten);
  EXPECT_EQ(a.snoozed_until(a.rules[1]), ten + 1h);
  EXPECT_EQ(a.snoozed_until(a.rules[2]), ten);
  EXPECT_EQ(settings.cameras[1].snoozed_until(settings.cameras[1].rules[0]), std::nullopt);
  const std::string printed = effective(settings);
  EXPECT_EQ(effective(read(printed)), printed);
}

}  // namespace
}  // namespace vigil::config
