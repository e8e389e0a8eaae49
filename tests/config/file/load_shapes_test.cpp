// Files that are no configuration at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/config/file/texts.h"

namespace vigil::config {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Load, SaysWhereTheFileIsNotYaml) {
  const auto problems = problems_of("model: m\ncameras: [unclosed\n");
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_THAT(problems[0].message, HasSubstr("not YAML"));
  EXPECT_GE(problems[0].line, 2);
}

TEST(Load, AFileThatCannotBeReadIsSaidSo) {
  try {
    load("/proc/self/mem");
    FAIL() << "nothing was refused";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/proc/self/mem: cannot be read");
  }
}

TEST(Load, AMissingFileIsOneLine) {
  try {
    load("/nowhere/site.yaml", kNothing);
    FAIL() << "no error";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/nowhere/site.yaml: no such file");
  }
  EXPECT_THROW(load("/tmp", kNothing), ConfigError);
}

TEST(Load, AFileWithoutAnEndIsNoConfiguration) {
  try {
    load("/dev/zero");
    ADD_FAILURE() << "it is read";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "/dev/zero: is larger than 16 MiB, and so no configuration");
  }
}

TEST(Load, WhatBelongsToNothingIsNotReadForEver) {
  for (const char* text : {",", ",\xc2\xb6M,", "---\n,", "{model: m}\n,\n"}) {
    const auto problems = problems_of(text);
    ASSERT_EQ(problems.size(), 1U) << text;
    EXPECT_THAT(problems[0].message, HasSubstr("not YAML")) << text;
  }
  EXPECT_EQ(problems_of(minimal() + "...\n,\n")[0].line, 7) << "the line of the comma";
}

TEST(Load, ATextThatIsNotUtf8HasOnePlace) {
  const auto latin = problems_of("model: m\n# caf\xc3\xa9: \xe9t\xe9\ncameras: {}\n");
  ASSERT_EQ(latin.size(), 1U);
  EXPECT_EQ(latin[0], (Problem{2, 9, "not UTF-8: in another encoding, or no text at all"}));
  for (const std::string& text :
       {std::string("\xff\xfem\0o\0", 6), std::string("\xa0"), std::string("model: m\n\xf0\x9f")}) {
    const auto problems = problems_of(text);
    ASSERT_EQ(problems.size(), 1U);
    EXPECT_THAT(problems[0].message, HasSubstr("not UTF-8"));
  }
}

TEST(Load, AFileHoldsOneDocument) {
  const auto again = [](int line, int first) {
    return Problem{line, 1,
                   "another document, behind the one that begins in line " + std::to_string(first) +
                       "; a file holds one"};
  };
  EXPECT_THAT(problems_of(minimal() + "---\nlog: {level: info}\n"), ElementsAre(again(7, 1)));
  EXPECT_THAT(problems_of("---\n" + minimal() + "...\n---\n---\nx: 1\n--- y\n"),
              ElementsAre(again(10, 2), Problem{11, 5, again(11, 2).message}));
  EXPECT_THAT(problems_of(minimal() + "---\nlog: [\n"), ::testing::SizeIs(1)) << "no YAML, there either";
  for (const char* end : {"---\n", "...\n", "---\n# the end\n", "---\n---\n", "...\n---\n...\n"}) {
    for (const char* begin : {"", "---\n", "%YAML 1.2\n---\n", "# site\n---\n", "---\n---\n"}) {
      EXPECT_THAT(problems_of(begin + minimal() + end), ::testing::IsEmpty()) << begin << end;
    }
  }
}

TEST(Load, SurvivesShapesThatAreNoConfiguration) {
  for (const std::string& text :
       {std::string(), std::string("- a\n- b\n"), std::string("just words"),
        std::string("model: [1, 2]\ncameras: 7\n"), std::string("cameras: {a: [1]}\n"),
        std::string("cameras: {a: {rules: {x: 1}}}\n"), std::string("? [a]\n: b\n"),
        std::string("a: &a [*a]\n"), std::string(10'000, '['), std::string("\0\x01\xff", 3)}) {
    EXPECT_FALSE(problems_of(text).empty()) << text.substr(0, 40);
  }
}

}  // namespace
}  // namespace vigil::config
