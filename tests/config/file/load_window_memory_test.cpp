// `window: {memory: …}`: how much of what lies before a window its rules see.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "config/running/changes.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The smallest file, with these lines of its camera and for all.
std::string site(const std::string& own, const std::string& defaults = "") {
  return minimal(own.empty() ? own : "    " + own + "\n") +
         (defaults.empty() ? defaults : "defaults: {" + defaults + "}\n");
}

base::Duration memory(const std::string& own, const std::string& defaults = "") {
  return read(site(own, defaults)).cameras[0].stream.window.memory;
}

const std::string kNoKeys =
    "window.memory: `pruning: {refresh: all}`, as of `exact`, keeps no keys, so 10m of them cannot be "
    "remembered; give another refresh, or `memory: off`";

TEST(LoadWindowMemory, IsOffUnlessItIsAskedFor) {
  EXPECT_EQ(memory(""), 0s);
  EXPECT_EQ(memory("window: {length: 10s, stride: 2s}"), 0s);
  EXPECT_EQ(memory("window:", "window:"), 0s);
}

TEST(LoadWindowMemory, IsOfAllCamerasOrOfOne) {
  EXPECT_EQ(memory("window: {memory: 10m}"), 10min);
  EXPECT_EQ(memory("", "window: {memory: 1.5h}"), 90min);
  EXPECT_EQ(memory("window: {length: 10s}", "window: {memory: 10m}"), 10min);
  EXPECT_EQ(memory("window: {memory: 1s}", "window: {memory: 24h}"), 1s);
  for (const char* none : {"off", "0s", "0ms"})
    EXPECT_EQ(memory(std::string("window: {memory: ") + none + '}', "window: {memory: 10m}"), 0s) << none;
}

TEST(LoadWindowMemory, IsPrintedAsItIsReadBack) {
  const Settings settings = read(site("window: {memory: 600s}"));
  const std::string printed = effective(settings);
  EXPECT_THAT(printed, HasSubstr("memory: 10m\n")) << "of the camera";
  EXPECT_THAT(printed, HasSubstr("memory: off\n")) << "of all";
  EXPECT_EQ(read(printed).cameras[0].stream, settings.cameras[0].stream);
  EXPECT_EQ(effective(read(printed)), printed);
}

TEST(LoadWindowMemory, WhatIsNoLengthIsRefused) {
  for (const char* wrong : {"-10m", "500ms", "999ms", "25h", "86400001ms", "10", "0", "-0s", "true", "ten",
                            "99999999999999999999h"})
    EXPECT_THAT(problems_of(site(std::string("window: {memory: ") + wrong + '}')),
                ElementsAre(Problem{6, 22,
                                    "cameras.gate.window.memory: expected off, or a duration from 1s to 1d, "
                                    "such as 40s or 2m, not `" +
                                        std::string(wrong) + '`'}));
  for (const char* wrong : {"[10m]", "{length: 10m}"})
    EXPECT_THAT(problems_of(site(std::string("window: {memory: ") + wrong + '}')),
                ElementsAre(Problem{6, 22, "cameras.gate.window.memory: expected one value"}));
}

// What all of them may take together.
TEST(LoadWindowMemory, TheEngineSaysHowMuchOfTheHostAllMayTake) {
  const auto of = [](const std::string& engine) { return read(minimal("") + engine).engine.window_memory; };
  EXPECT_EQ(of(""), ByteSize{}) << "a part of what there is";
  EXPECT_EQ(of("engine: {window_memory: 0B}\n"), ByteSize{});
  EXPECT_EQ(of("engine: {window_memory: 16GiB}\n"), gibibytes(16));
  const std::string printed = effective(read(minimal("") + "engine: {window_memory: 1.5GiB}\n"));
  EXPECT_THAT(printed, HasSubstr("window_memory: 1536MiB\n"));
  EXPECT_EQ(effective(read(printed)), printed);
  for (const char* wrong : {"16", "-1GiB", "2000000TiB", "auto"})
    EXPECT_THAT(problems_of(minimal("") + "engine: {window_memory: " + wrong + "}\n"),
                ElementsAre(Field(&Problem::message,
                                  HasSubstr("engine.window_memory: expected an amount of bytes from 0B to"))))
        << wrong;
}

TEST(LoadWindowMemory, WhatHasRoomForNothingIsRefused) {
  const auto told = [](const std::string& size) {
    return problems_of(minimal("") + "engine: {window_memory: " + size + "}\n");
  };
  for (const char* little : {"1B", "1KiB", "1023KiB"})
    EXPECT_THAT(told(little),
                ElementsAre(Field(&Problem::message,
                                  "engine.window_memory: `" + std::string(little) +
                                      "` has room for no window's memory; expected 0B (a quarter of what "
                                      "there is), or 1MiB at least")));
  EXPECT_EQ(read(minimal("") + "engine: {window_memory: 1MiB}\n").engine.window_memory, mebibytes(1));
}

TEST(LoadWindowMemory, NeedsKeysThatAreKept) {
  const std::string both = "    window: {memory: 10m}\n    pruning: exact\n";
  EXPECT_THAT(problems_of(minimal(both)), ElementsAre(Problem{6, 13, "cameras.gate." + kNoKeys}));
  EXPECT_THAT(problems_of(site("pruning: {refresh: all}", "window: {memory: 10m}")),
              ElementsAre(Problem{6, 14, "cameras.gate." + kNoKeys}));
  EXPECT_THAT(problems_of(site("window: {memory: 10m}", "pruning: exact")),
              ElementsAre(Problem{6, 13, "cameras.gate." + kNoKeys}));
  EXPECT_THAT(problems_of(site("", "window: {memory: 10m}, pruning: exact")),
              ElementsAre(Problem{6, 20, "defaults." + kNoKeys}))
      << "what is wrong for all is said once";
}

TEST(LoadWindowMemory, WhatKeepsKeysIsEveryOtherRefresh) {
  for (const char* refresh : {"none", "codecsight", "first-k", "random-k", "topk"})
    EXPECT_EQ(
        memory("window: {memory: 10m}", std::string("pruning: {preset: exact, refresh: ") + refresh + '}'),
        10min)
        << refresh;
  EXPECT_EQ(memory("window: {memory: off}", "pruning: exact"), 0s);
  EXPECT_EQ(memory("pruning: {refresh: none}", "pruning: exact"), 0s);
}

TEST(LoadWindowMemory, AChangeOfItGoesToARunningCamera) {
  const Settings before = read(site(""));
  for (const char* own : {"window: {memory: 10m}", "window: {memory: 5m}"}) {
    const Changes changes = compare(before, read(site(own)));
    EXPECT_THAT(changes.altered, ElementsAre("gate"));
    EXPECT_THAT(changes.restarted, IsEmpty());
    EXPECT_THAT(changes.fixed, IsEmpty());
  }
  EXPECT_THAT(compare(read(site("window: {memory: 10m}")), before).altered, ElementsAre("gate"));
  EXPECT_TRUE(compare(before, read(site("window: {memory: off}"))).empty());
}

}  // namespace
}  // namespace vigil::config
