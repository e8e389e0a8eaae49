// What several nodes say of a camera's past, as one.
#include "fleet/past/joined.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vigil::fleet {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// "2026-11-29T10:MM:SS.000Z"
std::string at(int minute, const std::string& second = "00.000") {
  return "2026-11-29T10:" + std::string(minute < 10 ? "0" : "") + std::to_string(minute) + ':' + second + 'Z';
}

json gap(const std::string& from, const std::string& to, const std::string& why) {
  return {{"from", from}, {"to", to}, {"why", why}};
}

/// A node's answer about 10:00 to 10:10 (the last millisecond included).
json answer(double probability, json gaps, json evidence = json::array()) {
  return {{"camera", "gate"},
          {"tenant", "acme"},
          {"question", "Is a car there?"},
          {"about", "Is a car there?"},
          {"from", at(0)},
          {"to", at(9, "59.999")},
          {"method", "windows"},
          {"answer", probability > 0.95 ? "Yes" : "No"},
          {"probability", probability},
          {"moment", nullptr},
          {"moments", json::array()},
          {"evidence", std::move(evidence)},
          {"coverage", {{"share", 0.5}, {"gaps", std::move(gaps)}}},
          {"bytes", {{"host", 10}, {"disk", 5}}},
          {"tokens", {{"read", 100}, {"exhaustive", 1000}}},
          {"windows_lost", 1},
          {"seconds", {{"find", 0.1}, {"read", 0.2}, {"look", 0.3}, {"total", 0.6}}}};
}

json joined_of(const Joined& joined) {
  const auto* const text = std::get_if<std::string>(&joined);
  EXPECT_NE(text, nullptr) << std::get<NotOne>(joined).line;
  return text == nullptr ? json() : json::parse(*text);
}

json window(int minute, double score) {
  return {{"from", at(minute)}, {"to", at(minute, "40.000")}, {"score", score}};
}

TEST(JoinedTest, WhoIsSurestAnswersAndAllShowWhatTheySaw) {
  const json first = answer(0.2, json::array(), json::array({window(1, 0.2), window(2, 0.1)}));
  const json second =
      answer(0.99, json::array(), json::array({window(6, 0.99), window(7, 0.5), window(8, 0.15)}));
  const json one = joined_of(join_answers({{"gpu-1", first.dump()}, {"gpu-2", second.dump()}}, {}));
  EXPECT_EQ(one.at("answer"), "Yes");
  EXPECT_EQ(one.at("probability"), 0.99);
  std::vector<std::pair<std::string, double>> seen;
  for (const json& each : one.at("evidence")) seen.emplace_back(each.at("node"), each.at("score"));
  EXPECT_THAT(seen, ElementsAre(std::pair("gpu-2", 0.99), std::pair("gpu-2", 0.5), std::pair("gpu-1", 0.2),
                                std::pair("gpu-2", 0.15)));
  EXPECT_EQ(one.at("bytes"), json({{"host", 20}, {"disk", 10}}));
  EXPECT_EQ(one.at("tokens"), json({{"read", 200}, {"exhaustive", 2000}}));
  EXPECT_EQ(one.at("windows_lost"), 2);
  EXPECT_EQ(one.at("seconds").at("total"), 0.6) << "they look at the same time";
  EXPECT_EQ(one.at("coverage").at("share"), 1.0);
  EXPECT_THAT(one.at("silent"), IsEmpty());
}

TEST(JoinedTest, MomentsAreThoseOfAllNodesInOrder) {
  json first = answer(0.97, json::array()), second = answer(0.99, json::array());
  first["moments"] = json::array({at(1), at(4, "10.000"), at(8)});
  first["moment"] = first["answer"] = at(8);
  second["moments"] = json::array({at(4, "30.500"), at(6)});
  second["moment"] = second["answer"] = at(6);
  json one = joined_of(join_answers({{"a", first.dump()}, {"b", second.dump()}}, {}));
  EXPECT_THAT(one.at("moments"), ElementsAre(at(1), at(4, "10.000"), at(6), at(8)))
      << "where a camera moved, both tell the same";
  EXPECT_EQ(one.at("moment"), at(6));
  EXPECT_EQ(one.at("answer"), at(6));
  // What the best one tells began at the other.
  second["moment"] = second["answer"] = at(4, "30.500");
  one = joined_of(join_answers({{"a", first.dump()}, {"b", second.dump()}}, {}));
  EXPECT_EQ(one.at("moment"), at(4, "10.000"));
  EXPECT_EQ(one.at("answer"), one.at("moment"));
  // 24 s later it is another one.
  second["moments"] = json::array({at(4, "34.000")});
  second["moment"] = second["answer"] = at(4, "34.000");
  one = joined_of(join_answers({{"a", first.dump()}, {"b", second.dump()}}, {}));
  EXPECT_THAT(one.at("moments"), ElementsAre(at(1), at(4, "10.000"), at(4, "34.000"), at(8)));
  EXPECT_EQ(one.at("moment"), at(4, "34.000"));
}

TEST(JoinedTest, WhatIsNoMomentIsNotTaken) {
  // A node of a build before has no moments; an answer in words stays as it is.
  json before = answer(0.97, json::array()), words = answer(0.99, json::array());
  before.erase("moments");
  before["moment"] = before["answer"] = at(3);
  words["answer"] = "At dawn.";
  json one = joined_of(join_answers({{"a", before.dump()}, {"b", words.dump()}}, {}));
  EXPECT_THAT(one.at("moments"), ElementsAre(at(3)));
  EXPECT_TRUE(one.at("moment").is_null()) << "the best one tells none";
  EXPECT_EQ(one.at("answer"), "At dawn.");
  for (const json& odd :
       {json("soon"), json(json::array({7})), json(json::array({"soon"})), json(json::array({nullptr}))}) {
    words["moments"] = odd;
    EXPECT_TRUE(std::holds_alternative<NotOne>(join_answers({{"a", words.dump()}}, {}))) << odd;
  }
}

TEST(JoinedTest, ClipsAreWantedOfWhatAnAnswerShows) {
  EXPECT_FALSE(clips_of(answer(0.9, json::array()).dump())) << "it shows nothing";
  EXPECT_FALSE(clips_of("{}"));
  EXPECT_FALSE(clips_of("no JSON"));
  const auto wish =
      clips_of(answer(0.9, json::array(), json::array({window(1, 0.9), window(6, 0.2)})).dump());
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->camera, (history::CameraId{"acme", "gate"}));
  // 10:01:00 to 10:01:40, in nanoseconds.
  const std::int64_t first = 1'795'946'460'000'000'000;
  EXPECT_THAT(wish->walls, ElementsAre(history::WallRange{first, first + 40'000'000'000},
                                       history::WallRange{first + 300'000'000'000, first + 340'000'000'000}));
  json open = window(1, 0.9);
  open["from"] = nullptr;
  const auto timeless = clips_of(answer(0.9, json::array(), json::array({open})).dump());
  ASSERT_TRUE(timeless);
  EXPECT_THAT(timeless->walls, ElementsAre(history::WallRange{0, 0}));
}

TEST(JoinedTest, OfAllNodesTheClipThatShowsMostIsNamed) {
  const std::string said =
      answer(0.9, json::array(), json::array({window(1, 0.9), window(4, 0.3), window(6, 0.2)})).dump();
  const auto clip = [](const std::string& name, std::int64_t from, std::int64_t shown) {
    return std::optional(actors::ShownClip{name, name + ".jpg", from, shown});
  };
  std::vector<FoundClips> found = {{clip("a", 5, 10), clip("a", 5, 10), std::nullopt},
                                   {clip("b", 5, 12), clip("b", 4, 10), std::nullopt},
                                   {},
                                   {clip("c", 5, 11)}};
  const auto named = [&] {
    std::vector<std::string> clips;
    const json told = json::parse(with_clips(said, found));
    for (const json& each : told.at("evidence"))
      clips.push_back(each.at("clip").is_null() ? "" : each.at("clip").get<std::string>());
    return clips;
  };
  EXPECT_THAT(named(), ElementsAre("b", "b", ""));
  std::swap(found[0], found[1]);
  EXPECT_THAT(named(), ElementsAre("b", "b", "")) << "whoever answers first";
  found[0][0]->thumb.clear();
  const json told = json::parse(with_clips(said, found));
  EXPECT_TRUE(told.at("evidence").at(0).at("thumb").is_null());
  EXPECT_EQ(told.at("evidence").at(1).at("thumb"), "b.jpg");
  EXPECT_EQ(told.at("answer"), "No");
  EXPECT_EQ(json::parse(with_clips(said, {})).at("evidence").at(0).at("clip"), json());
}

TEST(JoinedTest, WhoHasLookedAtNothingSaysNothing) {
  json nothing = answer(0, json::array({gap(at(0), at(9, "59.999"), "down")}));
  nothing["probability"] = nullptr;
  nothing["answer"] = nullptr;
  const json some = answer(0.1, json::array());
  const json one = joined_of(join_answers({{"a", nothing.dump()}, {"b", some.dump()}}, {}));
  EXPECT_EQ(one.at("answer"), "No");
  const json none = joined_of(join_answers({{"a", nothing.dump()}}, {}));
  EXPECT_TRUE(none.at("answer").is_null());
}

TEST(JoinedTest, OnlyWhatNobodyRemembersIsMissingForTheReasonThatSaysMost) {
  // One has it until 10:04 and from 10:08 on; the other one from 10:03 to 10:06, before which it saw nothing.
  const json first = answer(0.1, json::array({gap(at(4), at(7, "59.999"), "evicted")}));
  const json second =
      answer(0.1, json::array({gap(at(0), at(2, "59.999"), "down"), gap(at(6), at(9, "59.999"), "down")}));
  const json one = joined_of(join_answers({{"a", first.dump()}, {"b", second.dump()}}, {}));
  EXPECT_EQ(one.at("coverage").at("gaps"), json::array({gap(at(6), at(7, "59.999"), "evicted")}));
  EXPECT_EQ(one.at("coverage").at("share"), 0.8);
}

TEST(JoinedTest, GapsThatTouchLeaveNoSlit) {
  const json first =
      answer(0.1, json::array({gap(at(1), at(1, "59.999"), "down"), gap(at(2), at(2, "59.999"), "erased")}));
  const json second = answer(0.1, json::array({gap(at(1, "30.000"), at(4), "down")}));
  const json one = joined_of(join_answers({{"a", first.dump()}, {"b", second.dump()}}, {}));
  EXPECT_EQ(one.at("coverage").at("gaps"), json::array({gap(at(1, "30.000"), at(1, "59.999"), "down"),
                                                        gap(at(2), at(2, "59.999"), "erased")}));
}

TEST(JoinedTest, WhatMayBeAtASilentNodeIsUnreachable) {
  const json first =
      answer(0.1, json::array({gap(at(1), at(1, "59.999"), "down"), gap(at(3), at(4), "erased")}));
  const json one = joined_of(join_answers({{"a", first.dump()}}, {"gpu-2"}));
  EXPECT_EQ(one.at("coverage").at("gaps"),
            json::array({gap(at(1), at(1, "59.999"), "unreachable"), gap(at(3), at(4), "erased")}));
  EXPECT_THAT(one.at("silent"), ElementsAre("gpu-2"));
}

TEST(JoinedTest, ATimeWithoutABeginningHasOne) {
  json open = answer(0.1, json::array());
  open["from"] = nullptr;
  open["coverage"]["gaps"] = json::array({{{"from", nullptr}, {"to", at(3)}, {"why", "down"}}});
  const json one = joined_of(join_answers({{"a", open.dump()}}, {}));
  EXPECT_TRUE(one.at("coverage").at("gaps").at(0).at("from").is_null());
  EXPECT_EQ(one.at("coverage").at("gaps").at(0).at("to"), at(3));
}

TEST(JoinedTest, CamerasOfSeveralTenantsAreNotOne) {
  json other = answer(0.9, json::array());
  other["tenant"] = "zoo";
  const Joined joined = join_answers({{"a", answer(0.1, json::array()).dump()}, {"b", other.dump()}}, {});
  EXPECT_EQ(std::get<NotOne>(joined).line,
            "several tenants have or had a camera gate: name one of acme, zoo");
}

TEST(JoinedTest, WhatMakesNoSenseIsTold) {
  const Joined broken = join_answers({{"a", "no JSON"}}, {});
  EXPECT_EQ(std::get<NotOne>(broken).node, "a");
  for (const char* const key : {"evidence", "coverage", "bytes", "windows_lost", "from", "probability"}) {
    json lacking = answer(0.1, json::array());
    lacking.erase(key);
    EXPECT_TRUE(std::holds_alternative<NotOne>(join_answers({{"a", lacking.dump()}}, {}))) << key;
    lacking[key] = "odd";
    EXPECT_TRUE(std::holds_alternative<NotOne>(join_answers({{"a", lacking.dump()}}, {}))) << key;
  }
}

json listed(const std::string& tenant, int pages, json from, json to, std::vector<std::string> forms) {
  return {{"camera", "gate"}, {"tenant", tenant}, {"watched", false},
          {"keep_s", 60.0},   {"pages", pages},   {"bytes", {{"host", 1}, {"disk", 2}}},
          {"from", from},     {"to", to},         {"forms", forms}};
}

json cameras(json rows) {
  return {{"cameras", std::move(rows)}};
}

TEST(JoinedTest, AListHasARowACamera) {
  json there = listed("acme", 3, at(5), at(9), {"int4"});
  there["watched"] = true;
  const json one = joined_of(
      join_lists({{"a", cameras(json::array({listed("acme", 2, at(1), at(4), {"int4", "sketch"})})).dump()},
                  {"b", cameras(json::array({there, listed("zoo", 1, nullptr, nullptr, {})})).dump()}},
                 {"c"}, /*of_one=*/false));
  ASSERT_EQ(one.at("cameras").size(), 2U);
  const json& gate = one.at("cameras").at(0);
  EXPECT_EQ(gate.at("pages"), 5);
  EXPECT_EQ(gate.at("bytes"), json({{"host", 2}, {"disk", 4}}));
  EXPECT_EQ(gate.at("from"), at(1));
  EXPECT_EQ(gate.at("to"), at(9));
  EXPECT_EQ(gate.at("watched"), true);
  EXPECT_THAT(gate.at("forms"), ElementsAre("int4", "sketch"));
  EXPECT_THAT(gate.at("nodes"), ElementsAre("a", "b"));
  EXPECT_THAT(one.at("cameras").at(1).at("nodes"), ElementsAre("b"));
  EXPECT_THAT(one.at("silent"), ElementsAre("c"));
}

TEST(JoinedTest, ACameraWithoutPagesYetTakesTheTimesOfWhoHasSome) {
  const json one =
      joined_of(join_lists({{"a", cameras(json::array({listed("acme", 0, nullptr, nullptr, {})})).dump()},
                            {"b", cameras(json::array({listed("acme", 1, at(2), at(3), {"int4"})})).dump()}},
                           {}, /*of_one=*/true));
  EXPECT_EQ(one.at("cameras").at(0).at("from"), at(2));
  EXPECT_EQ(one.at("cameras").at(0).at("to"), at(3));
}

TEST(JoinedTest, AListOfOneCameraIsOfOneTenant) {
  const std::vector<NodeBody> bodies{
      {"a", cameras(json::array({listed("acme", 1, nullptr, nullptr, {})})).dump()},
      {"b", cameras(json::array({listed("zoo", 1, nullptr, nullptr, {})})).dump()}};
  EXPECT_TRUE(std::holds_alternative<NotOne>(join_lists(bodies, {}, /*of_one=*/true)));
  EXPECT_TRUE(std::holds_alternative<std::string>(join_lists(bodies, {}, /*of_one=*/false)));
}

TEST(JoinedTest, VerifiedPagesAreCountedTogether) {
  const auto row = [](int whole, int damaged) {
    return cameras(json::array(
                       {{{"camera", "gate"}, {"tenant", "acme"}, {"whole", whole}, {"damaged", damaged}}}))
        .dump();
  };
  const json one = joined_of(join_verified({{"a", row(5, 0)}, {"b", row(7, 2)}}, {}, /*of_one=*/true));
  EXPECT_EQ(one.at("cameras").at(0).at("whole"), 12);
  EXPECT_EQ(one.at("cameras").at(0).at("damaged"), 2);
}

TEST(JoinedTest, ProgressIsThatOfAll) {
  const json one = joined_of(join_progress({{"a", R"({"windows": 3, "of": 10, "brief": true})"},
                                            {"b", R"({"windows": 1, "of": 4, "brief": false})"}}));
  EXPECT_EQ(one, json({{"windows", 4}, {"of", 14}, {"brief", true}}));
}

TEST(JoinedTest, TenantsOfAList) {
  EXPECT_THAT(tenants_of(cameras(json::array({listed("b", 1, nullptr, nullptr, {}),
                                              listed("a", 1, nullptr, nullptr, {})}))
                             .dump()),
              ElementsAre("a", "b"));
  EXPECT_THAT(tenants_of("nothing"), IsEmpty());
  EXPECT_THAT(tenants_of(R"({"cameras": [1, {"tenant": 2}]})"), IsEmpty());
}

}  // namespace
}  // namespace vigil::fleet
