// What is recorded, and where it is kept.
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

TEST(Load, EvidenceIsOffUnlessItIsAskedFor) {
  const EvidenceSettings off = read(minimal()).evidence;
  EXPECT_FALSE(off.enabled);
  EvidenceSettings beside_the_file;
  beside_the_file.dir = "/etc/vigil/vigil-evidence";
  EXPECT_EQ(off, beside_the_file);
  const Settings settings = read(minimal() + R"(
evidence: {enabled: true, dir: clips, budget: 1.5GiB, max_age: 30d, pre_roll: 10s, post_roll: 0s, memory: 8MiB}
)");
  const EvidenceSettings& on = settings.evidence;
  EXPECT_TRUE(on.enabled);
  EXPECT_EQ(on.dir, "/etc/vigil/clips");
  EXPECT_EQ(on.budget, mebibytes(1536));
  EXPECT_EQ(on.max_age, 720h);
  EXPECT_EQ(on.pre_roll, 10s);
  EXPECT_EQ(on.post_roll, 0s);
  EXPECT_EQ(on.memory, mebibytes(8));
  const std::string printed = effective(settings);
  EXPECT_THAT(printed, HasSubstr("budget: 1536MiB"));
  EXPECT_EQ(read(printed).evidence, on);
}

TEST(Load, WhatIsWrongWithEvidenceIsSaidWithItsLine) {
  EXPECT_THAT(
      problems_of(minimal() +
                  "evidence:\n  budget: 10\n  max_age: 0s\n  memory: 1kB\n  pre_roll: 1h\n  folder: x\n"),
      ElementsAre(
          Problem{7, 11,
                  "evidence.budget: expected an amount of bytes from 1MiB to 1024TiB, such as 64MiB or "
                  "10GiB, not `10`"},
          Problem{8, 12,
                  "evidence.max_age: expected a duration from 1s to 3650d, such as 40s or 2m, not `0s`"},
          Problem{9, 11,
                  "evidence.memory: expected an amount of bytes from 1MiB to 64GiB, such as 64MiB or 10GiB, "
                  "not `1kB`"},
          Problem{
              10, 13,
              "evidence.pre_roll: expected a duration from 0s to 10m, such as 500ms, 40s or 2m, not `1h`"},
          Problem{11, 3,
                  "evidence.folder: unknown key; legal keys: budget, dir, enabled, max_age, memory, "
                  "post_roll, pre_roll"}));
}

TEST(Load, TheRecordedInputIsTheWatchedOneUnlessAnotherIsNamed) {
  const Settings settings = read(
      "model: m\n"
      "cameras:\n"
      "  one: {url: 'rtsp://h/sub', rules: [{name: r, prompt: p}]}\n"
      "  two:\n"
      "    inputs: [{url: 'rtsp://h/main', roles: [record]}, {url: 'rtsp://h/sub', roles: [detect]}]\n"
      "    rules: [{name: r, prompt: p}]\n");
  EXPECT_EQ(settings.cameras[0].record_url().value, "rtsp://h/sub");
  EXPECT_EQ(settings.cameras[1].url().value, "rtsp://h/sub");
  EXPECT_EQ(settings.cameras[1].record_url().value, "rtsp://h/main");
  EXPECT_FALSE(settings.cameras[0].records_apart());
  EXPECT_TRUE(settings.cameras[1].records_apart());
  for (const char* inputs : {"[{url: a.mp4}, {url: 'rtsp://h/main', roles: [record]}]",
                             "[{url: 'rtsp://h/sub'}, {url: b.mp4, roles: [record]}]"}) {
    const auto problems = problems_of(std::string("model: m\ncameras:\n  a: {inputs: ") + inputs +
                                      ", rules: [{name: r, prompt: p}]}\n");
    ASSERT_EQ(problems.size(), 1U) << inputs;
    EXPECT_THAT(problems[0].message, HasSubstr("one of the two is a file"));
  }
}

}  // namespace
}  // namespace vigil::config
