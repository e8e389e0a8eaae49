#include "actors/cache/past_text.h"

#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/engine/memory/made_pages.h"

namespace vigil::actors {
namespace {

using memory::testing::kNoon;
using memory::testing::kSecond;
using nlohmann::json;
using std::chrono::hours;
using std::chrono::milliseconds;
using Verdict = memory::Search::Verdict;

const history::CameraId kGate{"city", "gate"};

PastQuestion question() {
  PastQuestion asked;
  asked.camera = {"gate", std::nullopt};
  asked.question = "When did a \"red\" car stop?";
  asked.wall = {kNoon, kNoon + 3600 * kSecond};
  return asked;
}

memory::PastAnswer answer() {
  memory::PastAnswer answer;
  answer.wanted = memory::Wanted::when;
  answer.about = "Did a \"red\" car stop?";
  answer.found.verdict = Verdict::yes;
  answer.found.log_odds = std::log(4);
  answer.found.windows = {{{kNoon + 60 * kSecond, kNoon + 100 * kSecond}, {}, std::log(4)},
                          {{kNoon + 10 * kSecond, kNoon + 50 * kSecond}, {}, -std::log(3)}};
  answer.found.moment = kNoon + 75 * kSecond + kSecond / 4;
  answer.found.moments = {kNoon + 12 * kSecond, *answer.found.moment};
  answer.found.tokens = 700;
  answer.found.all_tokens = 9000;
  answer.found.failed = 2;
  answer.coverage.share = 2.0 / 3;
  answer.coverage.gaps = {{{kNoon, kNoon + 10 * kSecond}, memory::Gap::damaged},
                          {{kNoon + 20 * kSecond, kNoon + 30 * kSecond}, memory::Gap::other_model}};
  answer.host_bytes = 123;
  answer.disk_bytes = std::uint64_t{1} << 40U;
  answer.finding = milliseconds(1);
  answer.reading = milliseconds(250);
  answer.looking = milliseconds(1500);
  answer.total = milliseconds(1751);
  return answer;
}

json told(const memory::PastAnswer& answer, const Clips* clips = nullptr) {
  return json::parse(answer_text(kGate, question(), answer, clips));
}

TEST(PastTextTest, AnAnswerHasAllThatOthersWantToKnow) {
  EXPECT_EQ(told(answer()), json::parse(R"({
    "camera": "gate", "tenant": "city",
    "question": "When did a \"red\" car stop?", "about": "Did a \"red\" car stop?",
    "from": "2024-10-04T12:00:00.000Z", "to": "2024-10-04T13:00:00.000Z",
    "method": "windows",
    "answer": "2024-10-04T12:01:15.250Z", "probability": 0.8, "moment": "2024-10-04T12:01:15.250Z",
    "moments": ["2024-10-04T12:00:12.000Z", "2024-10-04T12:01:15.250Z"],
    "evidence": [
      {"from": "2024-10-04T12:01:00.000Z", "to": "2024-10-04T12:01:40.000Z", "score": 0.8, "clip": null, "thumb": null},
      {"from": "2024-10-04T12:00:10.000Z", "to": "2024-10-04T12:00:50.000Z", "score": 0.25, "clip": null, "thumb": null}],
    "coverage": {"share": 0.6667, "gaps": [
      {"from": "2024-10-04T12:00:00.000Z", "to": "2024-10-04T12:00:10.000Z", "why": "damaged"},
      {"from": "2024-10-04T12:00:20.000Z", "to": "2024-10-04T12:00:30.000Z", "why": "other_model"}]},
    "bytes": {"host": 123, "disk": 1099511627776},
    "tokens": {"read": 700, "exhaustive": 9000},
    "windows_lost": 2,
    "seconds": {"find": 0.001, "read": 0.25, "look": 1.5, "total": 1.751}
  })"));
  PastQuestion other = question();
  other.method = memory::Method::exhaustive;
  EXPECT_EQ(json::parse(answer_text(kGate, other, answer(), nullptr)).at("method"), "exhaustive");
}

/// Knows one clip of one camera, with a still or without.
struct OneClip final : Clips {
  std::optional<ShownClip> showing(const history::CameraId& camera,
                                   const history::WallRange& wall) const override {
    asked.emplace_back(camera, wall);
    if (camera != kGate || !wall.meets({kNoon + 90 * kSecond, kNoon + 200 * kSecond})) return std::nullopt;
    return ShownClip{"gate/clip.mp4", thumb, 0, 1};
  }
  std::string thumb = "gate/clip.jpg";
  mutable std::vector<std::pair<history::CameraId, history::WallRange>> asked;
};

TEST(PastTextTest, EvidenceNamesTheClipThatShowsIt) {
  OneClip clips;
  json evidence = told(answer(), &clips).at("evidence");
  EXPECT_EQ(evidence.at(0).at("clip"), "gate/clip.mp4");
  EXPECT_EQ(evidence.at(0).at("thumb"), "gate/clip.jpg");
  EXPECT_TRUE(evidence.at(1).at("clip").is_null());
  EXPECT_TRUE(evidence.at(1).at("thumb").is_null());
  ASSERT_EQ(clips.asked.size(), 2U);
  EXPECT_EQ(clips.asked[0], std::pair(kGate, answer().found.windows[0].wall));
  EXPECT_EQ(clips.asked[1], std::pair(kGate, answer().found.windows[1].wall));
  clips.thumb.clear();
  evidence = told(answer(), &clips).at("evidence");
  EXPECT_EQ(evidence.at(0).at("clip"), "gate/clip.mp4");
  EXPECT_TRUE(evidence.at(0).at("thumb").is_null());
  const json other = json::parse(answer_text({"town", "gate"}, question(), answer(), &clips));
  EXPECT_TRUE(other.at("evidence").at(0).at("clip").is_null()) << "another tenant's camera";
}

TEST(PastTextTest, WhatIsAnsweredGoesByWhatWasWantedAndFound) {
  const auto said = [](memory::Wanted wanted, Verdict verdict, const std::string& text = "",
                       bool has_moment = false) {
    memory::PastAnswer each = answer();
    each.wanted = wanted;
    each.found.verdict = verdict;
    each.text = text;
    if (!has_moment) each.found.moment.reset();
    return told(each).at("answer");
  };
  using memory::Wanted;
  EXPECT_EQ(said(Wanted::whether, Verdict::yes), "Yes");
  EXPECT_EQ(said(Wanted::whether, Verdict::unsure), "unsure");
  EXPECT_EQ(said(Wanted::whether, Verdict::no), "No");
  EXPECT_EQ(said(Wanted::when, Verdict::yes), "Yes") << "nobody knows when";
  EXPECT_EQ(said(Wanted::when, Verdict::no), "No");
  EXPECT_EQ(said(Wanted::when, Verdict::yes, "", true), "2024-10-04T12:01:15.250Z");
  EXPECT_EQ(said(Wanted::words, Verdict::yes, "A red car."), "A red car.");
  EXPECT_EQ(said(Wanted::words, Verdict::unsure, "A red car?"), "A red car?");
  EXPECT_EQ(said(Wanted::words, Verdict::yes), "Yes") << "there are no words";
  EXPECT_EQ(said(Wanted::words, Verdict::unsure), "unsure");
  EXPECT_EQ(said(Wanted::words, Verdict::no), "No");
}

TEST(PastTextTest, WhereNothingWasLookedAtNobodyKnows) {
  for (const memory::Wanted wanted : {memory::Wanted::whether, memory::Wanted::when, memory::Wanted::words}) {
    memory::PastAnswer none;
    none.wanted = wanted;
    none.coverage.gaps = {{question().wall, memory::Gap::down}};
    const json text = told(none);
    EXPECT_TRUE(text.at("answer").is_null());
    EXPECT_TRUE(text.at("probability").is_null());
    EXPECT_TRUE(text.at("moment").is_null());
    EXPECT_EQ(text.at("moments"), json::array());
    EXPECT_EQ(text.at("evidence"), json::array());
    EXPECT_EQ(text.at("coverage").at("share"), 0);
    EXPECT_EQ(text.at("coverage").at("gaps").at(0).at("why"), "down");
  }
}

// One line of JSON, whatever bytes a name, a question or a model has.
TEST(PastTextTest, WhatIsNoTextIsReplaced) {
  memory::PastAnswer words = answer();
  words.wanted = memory::Wanted::words;
  words.text = "a\ncar \xff\xc3";
  PastQuestion asked = question();
  asked.question = "\xed\xa0\x80?";
  const std::string text = answer_text({"\xfe", std::string("g\0te", 4)}, asked, words, nullptr);
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const json parsed = json::parse(text);
  EXPECT_EQ(parsed.at("answer"), "a\ncar \xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(parsed.at("tenant"), "\xEF\xBF\xBD");
  EXPECT_EQ(parsed.at("camera"), std::string("g\0te", 4));
  EXPECT_NE(parsed.at("question").get<std::string>().find("\xEF\xBF\xBD"), std::string::npos);
  for (const std::string& other :
       {list_text({{.camera = {"\xff", "\xff"}, .wall = {}, .forms = {}}}),
        verify_text({{{"\xff", "\xff"}, {}}}), erasure_text({"\xff", "\xff"}, {}, 0, true)})
    EXPECT_FALSE(json::parse(other).empty());
}

TEST(PastTextTest, AnEndOfTimeIsNone) {
  PastQuestion asked = question();
  asked.wall = {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()};
  const json text = json::parse(answer_text(kGate, asked, answer(), nullptr));
  EXPECT_TRUE(text.at("from").is_null());
  EXPECT_TRUE(text.at("to").is_null());
  asked.wall = {-1, 0};
  EXPECT_EQ(json::parse(answer_text(kGate, asked, answer(), nullptr)).at("from"), "1969-12-31T23:59:59.999Z");
}

TEST(PastTextTest, ProgressTellsTheRound) {
  EXPECT_EQ(json::parse(progress_text({7, 3, 40, true})),
            json::parse(R"({"windows": 3, "of": 40, "brief": true})"));
}

TEST(PastTextTest, AListHasACameraAnEntry) {
  memory::Memory::Summary gate;
  gate.camera = kGate;
  gate.is_watched = true;
  gate.keep = hours(24);
  gate.pages = 12;
  gate.host_bytes = 100;
  gate.disk_bytes = 2000;
  gate.wall = {kNoon, kNoon + 60 * kSecond};
  gate.forms = {kv::Form::fp8, kv::Form::embeddings};
  memory::Memory::Summary yard;
  yard.camera = {"village", "yard"};
  yard.keep = milliseconds(1500);
  EXPECT_EQ(json::parse(list_text({gate, yard})), json::parse(R"({"cameras": [
    {"camera": "gate", "tenant": "city", "watched": true, "keep_s": 86400, "pages": 12,
     "bytes": {"host": 100, "disk": 2000},
     "from": "2024-10-04T12:00:00.000Z", "to": "2024-10-04T12:01:00.000Z", "forms": ["fp8", "embeddings"]},
    {"camera": "yard", "tenant": "village", "watched": false, "keep_s": 1.5, "pages": 0,
     "bytes": {"host": 0, "disk": 0}, "from": null, "to": null, "forms": []}]})"));
  EXPECT_EQ(json::parse(list_text({})), json::parse(R"({"cameras": []})"));
}

TEST(PastTextTest, VerificationsAndErasures) {
  EXPECT_EQ(json::parse(verify_text({{kGate, {7, 2}}, {{"", "yard"}, {}}})), json::parse(R"({"cameras": [
    {"camera": "gate", "tenant": "city", "whole": 7, "damaged": 2},
    {"camera": "yard", "tenant": "", "whole": 0, "damaged": 0}]})"));
  EXPECT_EQ(
      json::parse(erasure_text(kGate, {kNoon, std::numeric_limits<std::int64_t>::max()}, 3, true)),
      json::parse(R"({"camera": "gate", "tenant": "city", "from": "2024-10-04T12:00:00.000Z", "to": null,
                            "pages": 3, "finished": true})"));
  EXPECT_EQ(json::parse(erasure_text(kGate, {0, 0}, 0, false)).at("finished"), false);
}

}  // namespace
}  // namespace vigil::actors
