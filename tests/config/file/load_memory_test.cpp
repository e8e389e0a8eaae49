// What of cameras is remembered: where, in which forms, and for how long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace std::chrono_literals;
using namespace testing;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The smallest file with these lines of `memory`.
std::string with_memory(const std::string& memory) {
  return minimal() + "memory: {" + memory + "}\n";
}

/// The one problem of that; other counts as they are.
std::string problem_of(const std::string& memory) {
  const auto problems = problems_of(with_memory(memory));
  return problems.size() == 1 ? problems.front().message : std::to_string(problems.size()) + " problems";
}

TEST(Load, NothingIsRememberedUnlessItIsAskedFor) {
  const MemorySettings off = read(minimal()).memory;
  EXPECT_FALSE(off.enabled);
  EXPECT_EQ(off.host.budget, gibibytes(1));
  EXPECT_EQ(off.host.forms, (FormSettings{.int4 = 10min, .sketch = 10min}));
  EXPECT_EQ(off.disk.budget, gibibytes(100));
  EXPECT_EQ(off.disk.forms, (FormSettings{.int4 = 24h, .embeddings = 24h, .sketch = 168h}));
  EXPECT_EQ(off.eviction, Eviction::value);
  EXPECT_EQ(off.dir, "") << "what nobody named goes to no disk";
  EXPECT_EQ(off.key_file, "");
  EXPECT_EQ(read(with_memory("")).memory, off);
  EXPECT_EQ(read(minimal() + "memory:\n").memory, off);
}

TEST(Load, EachKeyOfMemoryIsTaken) {
  const Settings settings = read(minimal() + R"(
memory:
  enabled: true
  host: {budget: 1.5GiB, forms: {bf16: 30s}}
  disk: {budget: 2TiB, forms: {fp8: 1h, int4: 7d, embeddings: off, sketch: 0s}}
  eviction: lru
  dir: past
  key_file: keys/past
)");
  const MemorySettings& memory = settings.memory;
  EXPECT_TRUE(memory.enabled);
  EXPECT_EQ(memory.host, (TierSettings{mebibytes(1536), {.bf16 = 30s}}));
  EXPECT_EQ(memory.disk, (TierSettings{gibibytes(2048), {.fp8 = 1h, .int4 = 168h}}));
  EXPECT_EQ(memory.eviction, Eviction::lru);
  EXPECT_EQ(memory.dir, "/etc/vigil/past");
  EXPECT_EQ(memory.key_file, "/etc/vigil/keys/past");
  const std::string printed = effective(settings);
  EXPECT_THAT(printed, AllOf(HasSubstr("bf16: 30s"), HasSubstr("embeddings: off"), HasSubstr("sketch: off"),
                             HasSubstr("budget: 2TiB"), HasSubstr("eviction: lru")));
  EXPECT_EQ(read(printed).memory, memory);
  EXPECT_EQ(effective(read(printed)), printed);
}

TEST(Load, FormsThatAreNamedAreAllThereAre) {
  const auto forms = [](const std::string& host) {
    return read(with_memory("host: {" + host + "}")).memory.host.forms;
  };
  EXPECT_EQ(forms("forms: {int4: 24h}"), (FormSettings{.int4 = 24h}));
  EXPECT_EQ(forms("forms: {}"), FormSettings());
  EXPECT_EQ(forms("forms: "), MemorySettings().host.forms) << "nothing is said";
  EXPECT_EQ(forms("budget: 2GiB"), MemorySettings().host.forms);
  EXPECT_EQ(read(with_memory("host: {forms: {int4: 1h}}")).memory.disk, MemorySettings().disk)
      << "of the other tier nothing was said";
  const Settings none = read(with_memory("host: {forms: {}}, disk: {forms: {}}"));
  EXPECT_EQ(read(effective(none)).memory, none.memory) << "what is off stays so when it is read back";
}

TEST(Load, PathsOfMemoryMayComeFromTheEnvironment) {
  const Environment folders = [](const std::string& name) -> std::optional<std::string> {
    if (name == "PAST") return "/disk/past";
    if (name == "NONE") return "";
    return std::nullopt;
  };
  const std::string text = with_memory("dir: '{PAST}/1', key_file: '{PAST}.key'");
  const MemorySettings memory = read(text, folders).memory;
  EXPECT_EQ(memory.dir, "/disk/past/1");
  EXPECT_EQ(memory.key_file, "/disk/past.key");
  EXPECT_EQ(read(with_memory("dir: '{NONE}'"), folders).memory.dir, "") << "nothing is kept on a disk";
  EXPECT_THAT(problems_of(text),
              ElementsAre(Problem{6, 15, "memory.dir: the environment variable PAST is not set"},
                          Problem{6, 37, "memory.key_file: the environment variable PAST is not set"}));
}

TEST(Load, WhatIsWrongWithMemoryIsSaidWithItsLine) {
  EXPECT_THAT(
      problems_of(minimal() +
                  "memory:\n  enabled: maybe\n  host: {budget: 10, forms: [fp8]}\n"
                  "  disk: {forms: {fp8: 500ms, int8: 1h, bf16: 99999h}}\n  eviction: oldest\n  folder: x\n"),
      ElementsAre(
          Problem{7, 12, "memory.enabled: expected true or false, not `maybe`"},
          Problem{8, 18,
                  "memory.host.budget: expected an amount of bytes from 1MiB to 1024TiB, such as 64MiB or "
                  "10GiB, not `10`"},
          Problem{8, 29, "memory.host.forms: expected keys and values"},
          Problem{9, 23,
                  "memory.disk.forms.fp8: expected off, or a duration from 1s to 3650d, such as 40s or 2m, "
                  "not `500ms`"},
          Problem{9, 30, "memory.disk.forms.int8: unknown key; did you mean `int4`?"},
          Problem{9, 46,
                  "memory.disk.forms.bf16: expected off, or a duration from 1s to 3650d, such as 40s or 2m, "
                  "not `99999h`"},
          Problem{10, 13, "memory.eviction: expected one of value, lru, not `oldest`"},
          Problem{11, 3,
                  "memory.folder: unknown key; legal keys: dir, disk, enabled, eviction, host, key_file"}));
  EXPECT_EQ(problem_of("disk: {forms: {pictures: 1h}}"),
            "memory.disk.forms.pictures: unknown key; legal keys: bf16, embeddings, fp8, int4, sketch");
}

TEST(Load, AMemoryOfWhichNoWindowCouldBeMadeIsRefused) {
  const std::string refused =
      "memory.enabled: no window could be made of what is remembered; give `host.forms`, or `disk.forms` "
      "with "
      "`dir`, one of bf16, fp8, int4 and embeddings";
  for (const char* memory :
       {"host: {forms: {}}, disk: {forms: {}}, dir: d", "host: {forms: {}}",
        "host: {forms: {fp8: off}}, disk: {forms: {int4: 1h}}", "host: {forms: {sketch: 1h}}",
        "host: {forms: {sketch: 1h}}, disk: {forms: {sketch: 1h}}, dir: d"}) {
    EXPECT_EQ(problem_of(std::string("enabled: true, ") + memory), refused) << memory;
    EXPECT_EQ(problem_of(memory), "0 problems") << "it is off: " << memory;
  }
  for (const char* memory :
       {"", "dir: d", "host: {forms: {}}, dir: d", "host: {forms: {embeddings: 1h}}, disk: {forms: {}}"})
    EXPECT_EQ(problem_of(std::string("enabled: true, ") + memory), "0 problems") << memory;
}

TEST(Load, AKeyEncryptsWhatIsOnADisk) {
  EXPECT_EQ(problem_of("key_file: k"),
            "memory.key_file: encrypts nothing without a disk's folder; give `dir: FOLDER`");
  EXPECT_EQ(problem_of("key_file: k, dir: d"), "0 problems");
  EXPECT_EQ(problem_of("key_file: '', dir: d"), "0 problems");
}

TEST(Load, AMastersKeyInPlaceOfItsFileIsNotShown) {
  const std::string digits = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
  const Environment with_key = [&](const std::string&) { return digits; };
  for (const std::string& file : {digits, "keys/" + digits, std::string("{KEY}"), digits + " "})
    EXPECT_THAT(problems_of(with_memory("dir: d, key_file: '" + file + "'"), with_key),
                ElementsAre(Problem{6, 28, "memory.key_file: a key stands where its file is expected"}))
        << file;
  EXPECT_THAT(problems_of(with_memory("dir: d, key_file: '" + digits.substr(1) + "'")), IsEmpty());
}

TEST(Load, WhatACameraSawIsRememberedForADayUnlessItSaysOtherwise) {
  const auto keep = [](const std::string& text) { return read(text).cameras.front().stream.keep; };
  EXPECT_EQ(keep(minimal()), 24h);
  EXPECT_EQ(keep(minimal("    keep: 7d\n")), 168h);
  for (const char* none : {"off", "'off'", "0s", "0h"})
    EXPECT_EQ(keep(minimal(std::string("    keep: ") + none + "\n")), 0s) << none;
  EXPECT_EQ(keep(minimal() + "defaults: {keep: off}\n"), 0s);
  EXPECT_EQ(keep(minimal("    keep: 1h\n") + "defaults: {keep: off}\n"), 1h);
  const Settings settings = read(minimal("    keep: 0s\n") + "defaults: {keep: 90m}\n");
  const std::string printed = effective(settings);
  EXPECT_THAT(printed, AllOf(HasSubstr("\n  keep: 90m\n"), HasSubstr("\n    keep: off\n")));
  EXPECT_EQ(read(printed).cameras, settings.cameras);
  EXPECT_EQ(read(printed).defaults, settings.defaults);
}

TEST(Load, AKeepIsADurationOrOff) {
  for (const char* keep : {"never", "on", "false", "500ms", "-1s", "24", "99999h", "''"})
    EXPECT_THAT(
        problems_of(minimal(std::string("    keep: ") + keep + "\n")),
        ElementsAre(Problem{6, 11,
                            "cameras.gate.keep: expected off, or a duration from 1s to 3650d, such as "
                            "40s or 2m, not `" +
                                (std::string(keep) == "''" ? "" : std::string(keep)) + "`"}));
}

TEST(Load, OtherDurationsAreNotOff) {
  EXPECT_THAT(
      problems_of(minimal() + "alerts: {retention: off}\n"),
      ElementsAre(Problem{6, 21,
                          "alerts.retention: expected a duration from 0s to 3650d, such as 500ms, 40s "
                          "or 2m, not `off`"}));
  EXPECT_THAT(effective(read(minimal() + "alerts: {retention: 0s}\n")),
              AllOf(HasSubstr("retention: 0s"), Not(HasSubstr("retention: off"))));
}

TEST(Load, AKeepThatEndsWithinTheWindowIsRefusedWhereItIsSaid) {
  const auto shorter = [](const std::string& section, const std::string& keep, const std::string& window) {
    return section + ".keep: " + keep + " is shorter than the window's length, " + window +
           "; nothing would be remembered, which is `keep: off`";
  };
  EXPECT_THAT(problems_of(minimal("    keep: 30s\n")),
              ElementsAre(Problem{6, 11, shorter("cameras.gate", "30s", "40s")}));
  EXPECT_THAT(problems_of(minimal() + "defaults: {keep: 30s}\n"),
              ElementsAre(Problem{6, 18, shorter("defaults", "30s", "40s")}))
      << "and not at each camera again";
  EXPECT_THAT(problems_of(minimal("    window: {length: 2m}\n") + "defaults: {keep: 1m}\n"),
              ElementsAre(Problem{6, 13, shorter("cameras.gate", "1m", "2m")}));
  EXPECT_THAT(problems_of(minimal("    keep: 40s\n")), IsEmpty());
  EXPECT_THAT(problems_of(minimal("    keep: off\n")), IsEmpty());
}

}  // namespace
}  // namespace vigil::config
