// What is told about the past, for people: of bodies that are whole, that lack keys, and that are none.
#include "fleet/asks/past_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Of an answer that somebody knows.
std::string known(const std::string& body) {
  const auto line = answer_line(body);
  EXPECT_TRUE(line && !line->is_unknown) << body;
  return line ? line->text : "";
}

/// Of one that nobody does.
std::string unknown(const std::string& rest) {
  const auto line = answer_line(R"({"camera": "gate", "tenant": "north", "answer": null, "probability": null,
      "moment": null, "evidence": [], "from": "2026-08-01T10:00:00.000Z", "to": "2026-08-01T11:00:00.000Z")" +
                                rest + '}');
  EXPECT_TRUE(line && line->is_unknown) << rest;
  return line ? line->text : "";
}

TEST(PastLines, AnAnswerIsOneLine) {
  EXPECT_EQ(
      known(
          R"({"camera": "gate", "answer": "Yes", "probability": 0.971, "moment": "2026-08-01T10:15:03.000Z",
        "evidence": [{"from": "2026-08-01T11:00:00.000Z", "to": "2026-08-01T11:00:40.000Z", "score": 0.2},
                     {"from": "2026-08-01T10:14:40.000Z", "to": "2026-08-01T10:15:20.000Z", "score": 0.97}],
        "coverage": {"share": 0.999, "gaps": [{"why": "erased"}]}})"),
      "Yes  (probability of yes 0.97); moment 2026-08-01 10:15:03 UTC; best window 2026-08-01 10:14:40 to "
      "2026-08-01 10:15:20 UTC; 99% of the time is remembered, 1 gap");
  EXPECT_EQ(known(R"({"answer": "2026-08-01T10:15:03.000Z", "probability": 0.97,
                      "moment": "2026-08-01T10:15:03.000Z"})"),
            "2026-08-01 10:15:03 UTC  (probability of yes 0.97)")
      << "of \"When\", the moment is the answer";
  EXPECT_EQ(known(R"({"answer": "a\nred\u001b[2Jcar"})"), "a?red?[2Jcar");
  EXPECT_EQ(known(R"({"answer": "No", "probability": "high", "moment": 7, "evidence": [3, {"score": 1}],
                      "coverage": [], "other": {}})"),
            "No");
}

TEST(PastLines, AnAnswerTellsAllMoments) {
  const auto line = [](const std::string& answer, const std::string& moments) {
    return known(R"({"answer": ")" + answer + R"(", "probability": 0.97,
                     "moment": "2026-08-01T10:40:17.000Z", "moments": )" +
                 moments + '}');
  };
  const std::string two = R"(["2026-08-01T10:12:03.250Z", "2026-08-01T10:40:17.000Z"])";
  EXPECT_EQ(
      line("2026-08-01T10:40:17.000Z", two),
      "at 2026-08-01 10:12:03 and 10:40:17 UTC  (probability of yes 0.97); moment 2026-08-01 10:40:17 UTC")
      << "which of them is the best window's";
  EXPECT_EQ(line("A car.", two),
            "A car.  (probability of yes 0.97); moments 2026-08-01 10:12:03 and 10:40:17 UTC; moment "
            "2026-08-01 10:40:17 UTC");
  EXPECT_THAT(line("2026-08-01T10:40:17.000Z", R"(["2026-07-31T23:59:59.000Z", "2026-08-01T10:12:03.000Z",
                                                   "2026-08-01T10:40:17.000Z"])"),
              StartsWith("at 2026-07-31 23:59:59, 2026-08-01 10:12:03 and 10:40:17 UTC  (probability"));
  EXPECT_EQ(line("2026-08-01T10:40:17.000Z", R"(["2026-08-01T10:40:17.000Z"])"),
            "2026-08-01 10:40:17 UTC  (probability of yes 0.97)");
  EXPECT_EQ(line("2026-08-01T10:40:17.000Z", "[]"), "2026-08-01 10:40:17 UTC  (probability of yes 0.97)");
  // Whatever came over the wire.
  const std::string end = "; moment 2026-08-01 10:40:17 UTC";
  EXPECT_EQ(line("Yes", R"([7, "\u001b[2J", null])"), "Yes  (probability of yes 0.97); moments ?[2J" + end);
  EXPECT_EQ(line("Yes", R"([1, 2])"), "Yes  (probability of yes 0.97)" + end);
  EXPECT_EQ(line("Yes", R"({"a": 1, "b": 2})"), "Yes  (probability of yes 0.97)" + end);
}

TEST(PastLines, WhereNobodyKnowsItIsSaidWhy) {
  const std::string between = " between 2026-08-01 10:00:00 and 2026-08-01 11:00:00 UTC: ";
  const std::string missing = "nothing of gate (north) is remembered" + between;
  const std::string lost = "nothing of gate (north) could be looked at" + between;
  EXPECT_EQ(unknown(R"(, "coverage": {"share": 0, "gaps": [{"why": "evicted"}]}, "windows_lost": 0)"),
            missing + "evicted");
  EXPECT_EQ(
      unknown(R"(, "coverage": {"share": 0, "gaps": [{"why": "down"}, {"why": "erased"}, {"why": "down"}]})"),
      missing + "down, erased")
      << "each once";
  EXPECT_EQ(unknown(R"(, "coverage": {"share": 1, "gaps": []}, "windows_lost": 3)"),
            lost + "3 windows were lost");
  EXPECT_EQ(unknown(R"(, "coverage": {"share": 0, "gaps": [{"why": "damaged"}]}, "windows_lost": 1)"),
            lost + "1 window was lost, damaged")
      << "what was there and could not be read";
  EXPECT_EQ(unknown(R"(, "coverage": {"share": 0.5, "gaps": [{"why": "keyless"}]})"), lost + "keyless");
  EXPECT_EQ(unknown(R"(, "coverage": {"share": 1, "gaps": []}, "windows_lost": 0)"),
            lost + "nothing of it has come yet")
      << "nothing is called missing";
  EXPECT_EQ(unknown(R"(, "coverage": {"share": 0, "gaps": [{"why": "unreachable"}]}, "silent": ["gpu-2"])"),
            missing + "unreachable; gpu-2 does not answer");
  // Whatever came over the wire.
  EXPECT_EQ(answer_line(R"({"answer": 7})")->text, "nothing of  is remembered: nothing of it has come yet");
  EXPECT_THAT(
      unknown(R"(, "coverage": {"share": "all", "gaps": [7, {"why": "\u001b[2J"}]}, "windows_lost": "x")"),
      Eq(missing + "?[2J"));
}

TEST(PastLines, AListIsATable) {
  EXPECT_EQ(memory_table(R"({"cameras": [
      {"camera": "gate", "tenant": "north", "pages": 12, "bytes": {"host": 1048576, "disk": 524288},
       "from": "2026-08-01T10:00:00.000Z", "to": "2026-08-01T11:00:00.000Z", "forms": ["fp8", "int4"]},
      {"camera": "a-long-name", "forms": "int4", "pages": null}]})"),
            "camera       tenant  pages  bytes    from (UTC)           to (UTC)             forms\n"
            "gate         north   12     1.5 MiB  2026-08-01 10:00:00  2026-08-01 11:00:00  fp8,int4\n"
            "a-long-name                 0 B");
  EXPECT_EQ(memory_table(R"({"cameras": []})"), "nothing is remembered");
  EXPECT_EQ(memory_table(R"({"cameras": [], "silent": ["gpu-2"]})"),
            "nothing is remembered; gpu-2 does not answer");
  EXPECT_THAT(*memory_table(R"({"cameras": [{"camera": "x\u001b[2J"}, 7, null, []]})"),
              Not(HasSubstr("\x1b")));
}

TEST(PastLines, ACheckTellsWhetherAnythingIsDamaged) {
  const auto whole =
      verified_table(R"({"cameras": [{"camera": "gate", "tenant": "north", "whole": 7, "damaged": 0}]})");
  ASSERT_TRUE(whole);
  EXPECT_FALSE(whole->is_damaged);
  EXPECT_FALSE(whole->is_partial);
  EXPECT_EQ(whole->text, "camera  tenant  whole  damaged\ngate    north   7      0");
  EXPECT_TRUE(verified_table(R"({"cameras": [{"damaged": 1}, {"damaged": 0}]})")->is_damaged);
  EXPECT_EQ(verified_table(R"({"cameras": []})")->text, "nothing is remembered");
}

TEST(PastLines, NodesThatDoNotAnswerAreNamed) {
  EXPECT_EQ(known(R"({"answer": "No", "silent": ["gpu-2"]})"), "No; gpu-2 does not answer");
  EXPECT_EQ(known(R"({"answer": "No", "silent": ["gpu-1", 7, "gpu\u001b2"]})"),
            "No; gpu-1, gpu?2 do not answer");
  EXPECT_EQ(known(R"({"answer": "No", "silent": []})"), "No");
  EXPECT_EQ(memory_table(R"({"cameras": [], "silent": ["gpu-2"]})"),
            "nothing is remembered; gpu-2 does not answer");
  EXPECT_THAT(*memory_table(R"({"cameras": [{"camera": "gate"}], "silent": ["gpu-2"]})"),
              ::testing::EndsWith("\ngpu-2 does not answer"));
  const auto verified = verified_table(R"({"cameras": [{"damaged": 0}], "silent": ["gpu-2"]})");
  EXPECT_THAT(verified->text, ::testing::EndsWith("\ngpu-2 does not answer"));
  EXPECT_TRUE(verified->is_partial);
  EXPECT_FALSE(verified->is_damaged);
}

TEST(PastLines, AnErasureIsOneLine) {
  EXPECT_EQ(
      erasure_line(R"({"camera": "gate", "tenant": "north", "pages": 3, "from": "2026-08-01T10:00:00.000Z",
                             "to": "2026-08-01T11:00:00.000Z", "finished": true})"),
      "gate (north): 3 pages are erased, from 2026-08-01 10:00:00 to 2026-08-01 11:00:00 UTC");
  EXPECT_EQ(erasure_line(R"({"camera": "gate", "pages": 3, "from": null, "to": "2026-08-01T11:00:00.000Z",
                             "finished": false})"),
            "gate: 3 pages are erased, until 2026-08-01 11:00:00 UTC; nobody sees them any more, and what is "
            "on the "
            "disk goes now");
}

TEST(PastLines, HowFarAnAnswerHasComeIsShort) {
  EXPECT_EQ(progress_line(R"({"windows": 3, "of": 12, "brief": true})"), "3 of 12 windows");
  EXPECT_EQ(progress_line(R"({"windows": "3", "of": 12})"), std::nullopt);
}

TEST(PastLines, WhatIsNoSuchBodyIsNone) {
  for (const char* body :
       {"", "[]", "7", "null", "{", "\xff", "{}", R"({"cameras": {}})", R"({"cameras": 7})"}) {
    EXPECT_FALSE(answer_line(body)) << body;
    EXPECT_FALSE(memory_table(body)) << body;
    EXPECT_FALSE(verified_table(body)) << body;
    EXPECT_FALSE(erasure_line(body)) << body;
    EXPECT_FALSE(progress_line(body)) << body;
  }
}

std::string nested(std::size_t levels) {
  return std::string(levels, '[') + std::string(levels, ']');
}

TEST(PastLines, WhatIsDeepIsReadAsFarAsItMakesSense) {
  const std::string deep = nested(200'000);
  EXPECT_EQ(known(R"({"answer": "Yes", "evidence": )" + deep + "}"), "Yes");
  EXPECT_EQ(memory_table(R"({"cameras": )" + deep + "}").has_value(), true);
  EXPECT_FALSE(progress_line(deep));
}

TEST(PastLines, WhatIsDeepIsNotIndented) {
  EXPECT_EQ(indented(R"({"a": [1]})"), "{\n  \"a\": [\n    1\n  ]\n}");
  EXPECT_TRUE(indented(nested(32)));
  EXPECT_FALSE(indented(nested(34)));
  EXPECT_FALSE(indented(nested(500'000)));
  EXPECT_FALSE(indented("{"));
  EXPECT_FALSE(indented(""));
}

}  // namespace
}  // namespace vigil::fleet
