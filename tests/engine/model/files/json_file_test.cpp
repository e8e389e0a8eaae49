#include "engine/model/files/json_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/model/support.h"

namespace vigil::model {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(ParseJson, BoundsTheNesting) {
  const std::string bomb(2'000'000, '[');
  EXPECT_EQ(error_of([&] { parse_json(bomb, "x.json"); }), "x.json: nested deeper than 64 levels");
  EXPECT_EQ(error_of([&] { parse_json(R"({"a":{"b":{}}})", "x.json", {.depth = 2}); }),
            "x.json: nested deeper than 2 levels");
  EXPECT_NO_THROW(parse_json(R"({"a":{"b":{}}})", "x.json", {.depth = 3}));
}

TEST(ParseJson, RefusesRepeatedKeysWhereToldTo) {
  constexpr auto kText = R"({"a": {"k": 1}, "b": {"k": 2}, "a": 3})";
  EXPECT_EQ(parse_json(kText, "x.json")["a"], 3);
  EXPECT_EQ(error_of([&] { parse_json(kText, "x.json", {.unique_keys = true}); }),
            "x.json: the key 'a' occurs twice");
  EXPECT_NO_THROW(
      parse_json(R"({"a": {"k": 1}, "b": [{"k": 2}, {"k": 3}]})", "x.json", {.unique_keys = true}));
}

TEST(ParseJson, SaysWhatIsWrongInOneLine) {
  EXPECT_THAT(error_of([] { parse_json("", "x.json"); }), StartsWith("x.json: not valid JSON: "));
  EXPECT_THAT(error_of([] { parse_json("{\"a\": \"\xFF\"}", "x.json"); }), HasSubstr("UTF-8"));
  EXPECT_THAT(error_of([] { parse_json("{\"a\": 1}\n\n}", "x.json"); }), HasSubstr("line 3"));
  EXPECT_THAT(error_of([] { parse_json("[1e999]", "x.json"); }), HasSubstr("number"));
  EXPECT_THAT(error_of([] { parse_json("[\"" + std::string(100'000, 'x'), "x.json"); }),
              StartsWith("x.json"));
}

TEST(ReadTextFile, SaysWhyItCannot) {
  const testing::ScratchFolder folder;
  EXPECT_EQ(error_of([&] { read_text_file(folder.path() / "none"); }),
            (folder.path() / "none").string() + ": no such file");
  EXPECT_THAT(error_of([&] { read_text_file(folder.path()); }), HasSubstr("not a regular file"));
  // Not searched either: a folder whose permissions forbid it is none for the tests of an administrator.
  std::filesystem::create_symlink("loop", folder.path() / "loop");
  EXPECT_EQ(error_of([&] { read_text_file(folder.path() / "loop" / "file"); }),
            (folder.path() / "loop" / "file").string() + ": Too many levels of symbolic links");
  folder.write("big", "0123456789");
  EXPECT_THAT(error_of([&] { read_text_file(folder.path() / "big", 9); }),
              HasSubstr("10 bytes, more than the 9"));
  EXPECT_EQ(read_text_file(folder.path() / "big", 10), "0123456789");
}

TEST(InQuotes, MakesAnyNameFitForALine) {
  EXPECT_EQ(in_quotes("a\nb\x1b[31m"), "'a?b?[31m'");
  EXPECT_EQ(in_quotes("人"), "'人'");
  EXPECT_EQ(in_quotes("\xFF\x41"),
            "'\xEF\xBF\xBD"
            "A'");
  EXPECT_EQ(in_quotes(std::string(500, 'x')), "'" + std::string(120, 'x') + "...'");
  EXPECT_EQ(in_quotes(""), "''");
}

TEST(JsonObject, NamesTheWayToTheFault) {
  const Json json = parse_json(
      R"({"o": {"i": 3, "f": 1.5, "s": "x", "b": true, "n": null, "l": [1, 2], "big": 18446744073709551615}})",
      "x.json");
  const JsonObject object = JsonObject(json, "x.json").object("o");
  EXPECT_EQ(object.integer("i", 0, 3), 3);
  EXPECT_EQ(object.integer("n", 0, 3, 2), 2);
  EXPECT_EQ(object.number("i", 0, 9), 3.0);
  EXPECT_EQ(error_of([&] { object.integer("i", 0, 2); }), "x.json: o.i: 3 is not between 0 and 2");
  EXPECT_EQ(error_of([&] { object.integer("big", 0, 2); }),
            "x.json: o.big: 18446744073709551615 is not between 0 and 2");
  EXPECT_EQ(error_of([&] { object.integer("f", 0, 2); }),
            "x.json: o.f: an integer was expected, this is number");
  EXPECT_EQ(error_of([&] { object.integer("n", 0, 2); }), "x.json: o.n: missing");
  EXPECT_EQ(error_of([&] { object.number("s", 0, 2); }),
            "x.json: o.s: a number was expected, this is string");
  EXPECT_EQ(error_of([&] { object.number("f", 0, 1); }), "x.json: o.f: 1.5 is not between 0.0 and 1.0");
  EXPECT_EQ(error_of([&] { object.boolean("i"); }),
            "x.json: o.i: true or false was expected, this is number");
  EXPECT_EQ(error_of([&] { object.string("i"); }), "x.json: o.i: a string was expected, this is number");
  EXPECT_EQ(error_of([&] { object.integers("l", 2, 9); }),
            "x.json: o.l: the list may hold integers from 2 to 9 only");
  EXPECT_EQ(error_of([&] { object.object("l"); }), "x.json: o.l: an object was expected, this is array");
  EXPECT_EQ(error_of([&] { object.object("none"); }), "x.json: o.none: missing");
}

}  // namespace
}  // namespace vigil::model
