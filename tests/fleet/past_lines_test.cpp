// What is told about the past, for people: of bodies that are whole, that lack keys, and that are none.
#include "fleet/asks/past_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(PastLines, AnAnswerIsOneLine) {
  EXPECT_EQ(
      answer_line(
          R"({"camera": "gate", "answer": "Yes", "probability": 0.971, "moment": "2026-08-01T10:15:03.000Z",
        "evidence": [{"from": "2026-08-01T11:00:00.000Z", "to": "2026-08-01T11:00:40.000Z", "score": 0.2},
                     {"from": "2026-08-01T10:14:40.000Z", "to": "2026-08-01T10:15:20.000Z", "score": 0.97}],
        "coverage": {"share": 0.999, "gaps": [{"why": "erased"}]}})"),
      "Yes  (probability of yes 0.97), at 2026-08-01 10:15:03, from 2026-08-01 10:14:40 to 2026-08-01 "
      "10:15:20; "
      "99% of the time is remembered, 1 gap");
  EXPECT_EQ(answer_line(R"({"answer": "2026-08-01T10:15:03.000Z", "probability": 0.97,
                            "moment": "2026-08-01T10:15:03.000Z"})"),
            "2026-08-01 10:15:03  (probability of yes 0.97)")
      << "of \"When\", the moment is the answer";
  EXPECT_EQ(answer_line(R"({"answer": "a\nred\u001b[2Jcar"})"), "a?red?[2Jcar");
  EXPECT_EQ(answer_line(R"({"answer": null, "probability": null, "moment": null, "evidence": [],
                            "coverage": {"share": 0, "gaps": []}})"),
            "unknown: nothing of that time could be looked at; 0% of the time is remembered");
  EXPECT_EQ(answer_line(R"({"answer": "No", "probability": "high", "moment": 7, "evidence": [3, {"score": 1}],
                            "coverage": [], "other": {}})"),
            "No");
}

TEST(PastLines, AnAnswerTellsAllMoments) {
  const auto line = [](const std::string& answer, const std::string& moments) {
    return *answer_line(R"({"answer": ")" + answer + R"(", "probability": 0.97,
                            "moment": "2026-08-01T10:40:17.000Z", "moments": )" +
                        moments + '}');
  };
  const std::string two = R"(["2026-08-01T10:12:03.250Z", "2026-08-01T10:40:17.000Z"])";
  EXPECT_EQ(line("2026-08-01T10:40:17.000Z", two),
            "at 2026-08-01 10:12:03 and 10:40:17  (probability of yes 0.97)");
  EXPECT_EQ(line("A car.", two), "A car.  (probability of yes 0.97), at 2026-08-01 10:12:03 and 10:40:17");
  EXPECT_EQ(line("2026-08-01T10:40:17.000Z", R"(["2026-07-31T23:59:59.000Z", "2026-08-01T10:12:03.000Z",
                                                 "2026-08-01T10:40:17.000Z"])"),
            "at 2026-07-31 23:59:59, 2026-08-01 10:12:03 and 10:40:17  (probability of yes 0.97)");
  EXPECT_EQ(line("2026-08-01T10:40:17.000Z", R"(["2026-08-01T10:40:17.000Z"])"),
            "2026-08-01 10:40:17  (probability of yes 0.97)");
  EXPECT_EQ(line("2026-08-01T10:40:17.000Z", "[]"), "2026-08-01 10:40:17  (probability of yes 0.97)");
  // Whatever came over the wire.
  EXPECT_EQ(line("Yes", R"([7, "\u001b[2J", null])"), "Yes  (probability of yes 0.97), at ?[2J");
  EXPECT_EQ(line("Yes", R"([1, 2])"), "Yes  (probability of yes 0.97)");
  EXPECT_EQ(line("Yes", R"({"a": 1, "b": 2})"), "Yes  (probability of yes 0.97), at 2026-08-01 10:40:17");
}

TEST(PastLines, AListIsATable) {
  EXPECT_EQ(memory_table(R"({"cameras": [
      {"camera": "gate", "tenant": "north", "pages": 12, "bytes": {"host": 1048576, "disk": 524288},
       "from": "2026-08-01T10:00:00.000Z", "to": "2026-08-01T11:00:00.000Z", "forms": ["fp8", "int4"], "gaps": []},
      {"camera": "a-long-name", "forms": "int4", "pages": null}]})"),
            "camera       tenant  pages  bytes    from                 to                   forms     gaps\n"
            "gate         north   12     1.5 MiB  2026-08-01 10:00:00  2026-08-01 11:00:00  fp8,int4  0\n"
            "a-long-name                 0 B");
  EXPECT_EQ(memory_table(R"({"cameras": []})"), "nothing is remembered");
  EXPECT_EQ(memory_table(R"({"cameras": [], "silent": ["gpu-2"]})", "nort"),
            "nothing is remembered of a tenant nort; gpu-2 does not answer");
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
  EXPECT_EQ(verified_table(R"({"cameras": []})", "nort")->text, "nothing is remembered of a tenant nort");
}

TEST(PastLines, NodesThatDoNotAnswerAreNamed) {
  EXPECT_EQ(answer_line(R"({"answer": "No", "silent": ["gpu-2"]})"), "No; gpu-2 does not answer");
  EXPECT_EQ(answer_line(R"({"answer": "No", "silent": ["gpu-1", 7, "gpu\u001b2"]})"),
            "No; gpu-1, gpu?2 do not answer");
  EXPECT_EQ(answer_line(R"({"answer": "No", "silent": []})"), "No");
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
      "gate (north): 3 pages are erased, from 2026-08-01 10:00:00 to 2026-08-01 11:00:00");
  EXPECT_EQ(
      erasure_line(R"({"camera": "gate", "pages": 3, "from": null, "to": "2026-08-01T11:00:00.000Z",
                             "finished": false})"),
      "gate: 3 pages are erased, until 2026-08-01 11:00:00; nobody sees them any more, and what is on the "
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
  EXPECT_EQ(answer_line(R"({"answer": "Yes", "evidence": )" + deep + "}"), "Yes");
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
