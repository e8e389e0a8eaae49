// What is looked at before a fleet's configuration goes into its registry.
#include "config/file/offer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace testing;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kOwn =
    "name: '{NODE}'\n"
    "model: m\n"
    "cluster: {name: city, configuration: registry, listen: '127.0.0.1:7400', bulk: '127.0.0.1:7401', "
    "registry: {endpoints: ['127.0.0.1:2379']}}\n";
const std::string kCameras =
    "cameras:\n  gate: {url: gate.mp4, rules: [{name: person, prompt: 'A person?'}]}\n";

std::vector<Problem> offered(const std::string& text, const std::string& own = kOwn) {
  return problems_of_offer(text, "/etc/vigil/cameras.yaml", own, "/etc/vigil/node.yaml", kNothing);
}

auto message(const auto& matcher) {
  return Field(&Problem::message, matcher);
}

TEST(Offer, OfWhatNodesCanRunByNothingIsWrong) {
  EXPECT_THAT(offered(kCameras), IsEmpty());
  EXPECT_THAT(offered("# of the city\n" + kCameras + "defaults: {fps: 1}\n"), IsEmpty());
  EXPECT_THAT(
      offered(
          "cameras: {gate: {url: 'rtsp://{GATE}@10.0.0.7/live', rules: [{name: p, prompt: 'A person?'}]}}\n"),
      IsEmpty())
      << "a variable that a node alone has";
}

TEST(Offer, WhatIsWrongHasItsPlaceInTheTextThatIsOffered) {
  const auto problems = offered("cameras:\n  gate: {url: gate.mp4, fps: many}\n");
  EXPECT_THAT(problems,
              Contains(Problem{2, 30, "cameras.gate.fps: expected a number from 0.01 to 120, not `many`"}));
}

TEST(Offer, WhatIsWrongOfBothTogetherHasNoPlace) {
  const auto problems = offered(kCameras, kOwn + "colour: red\n");
  ASSERT_THAT(problems, ElementsAre(message(HasSubstr("colour"))));
  EXPECT_EQ(problems[0].line, 0);
  EXPECT_EQ(problems[0].column, 0);
}

TEST(Offer, OfATextThatCannotBeReadOneThingIsTold) {
  for (const auto& [text, begin] : std::vector<std::pair<std::string, std::string>>{
           {"cameras: [\n", "not YAML: "},
           {"cameras: {gate: {url: caf\xe9.mp4}}\n", "not UTF-8"},
           {kCameras + "---\n" + kCameras, "another document"},
           {"- gate\n- yard\n", "the file: expected keys and values"},
           {"cameras\n", "the file: expected keys and values"}})
    EXPECT_THAT(offered(text),
                ElementsAre(AllOf(message(StartsWith(begin)), Field(&Problem::of_whole, true))))
        << text;
}

TEST(Offer, PasswordsAreToldAloneAndNotShown) {
  const auto problems =
      offered("cameras:\n  gate: {url: 'rtsp://viewer:hunter2@10.0.0.7/live', fps: many}\n");
  EXPECT_THAT(
      problems,
      ElementsAre(message(AllOf(StartsWith("cameras.gate.url: a password"), Not(HasSubstr("hunter2"))))));
}

TEST(Offer, WhatIsTheFleetsMustNotStandInTheNodesOwnText) {
  EXPECT_THROW(offered(kCameras, kOwn + "defaults: {fps: 2}\n"), ConfigError);
  EXPECT_THROW(offered(kCameras, "cluster: [\n"), std::runtime_error);
}

}  // namespace
}  // namespace vigil::config
