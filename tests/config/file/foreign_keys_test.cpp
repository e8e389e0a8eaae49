// Keys as other programs write them.
#include "config/file/foreign_keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace testing;

TEST(Load, KeysOfOtherProgramsAreTranslated) {
  const auto problems = problems_of(
      "model: m\n"
      "mqtt: {host: x}\n"
      "cameras:\n"
      "  a:\n"
      "    ffmpeg: {inputs: [{path: 'rtsp://h/live'}]}\n"
      "    inputs: [{path: 'rtsp://h/live', roles: [detect]}]\n"
      "    rules: [{name: r, prompt: p}]\n");
  std::vector<std::string> messages;
  for (const Problem& problem : problems) messages.push_back(problem.message);
  EXPECT_THAT(messages, ::testing::UnorderedElementsAre(
                            "mqtt: unknown key; events go out on `alerts.bind` (docs/topics.md)",
                            "cameras.a.ffmpeg: unknown key; a camera has its `url`, or `inputs`, itself",
                            "cameras.a.inputs[0].path: unknown key; Vigil calls it `url`",
                            "cameras.a.inputs[0].url: is missing"));
}

TEST(Load, NoKeyOfOursIsTakenForAnothersProgram) {
  for (const std::string& path : known_keys()) {
    const std::string key = path.substr(path.rfind('.') + 1);
    EXPECT_EQ(in_place_of(key), std::nullopt) << path;
  }
}

}  // namespace
}  // namespace vigil::config
