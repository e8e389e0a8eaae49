// Whose cameras are there for who asks.
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/evidence/clip_index.h"
#include "tests/actors/cache/asked_cache.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const PastRights kCity{std::set<std::string>{"city"}, true};
const PastRights kCityReads{std::set<std::string>{"city"}, false};
const PastRights kNobodys{std::set<std::string>{}, true};

struct CacheRightsTest : AskedCache {
  CacheRightsTest() { see_all(); }
  /// Of each thing that can be asked of a camera, the outcome and the text.
  std::vector<std::pair<PastOutcome, std::string>> all_about(const PastCamera& camera,
                                                             const PastRights& rights) {
    std::vector<std::pair<PastOutcome, std::string>> told;
    for (const decltype(PastRequest::what)& what :
         {decltype(PastRequest::what)(question(camera)), decltype(PastRequest::what)(PastList{camera}),
          decltype(PastRequest::what)(PastVerify{camera}),
          decltype(PastRequest::what)(PastErasure{camera, from_begin(0, 80)})}) {
      const std::uint64_t ticket = ask(what, rights);
      settle();
      const PastReply reply = last_word(ticket);
      told.emplace_back(reply.outcome, reply.text);
    }
    return told;
  }
};

TEST_F(CacheRightsTest, AnothersCameraIsAsOneThatIsNotThere) {
  const std::pair refused{PastOutcome::bad_request, std::string("nothing is remembered of a camera gate")};
  const std::vector all(4, refused);
  for (const PastRights& rights : {kCity, kCityReads}) {
    EXPECT_EQ(all_about({"gate", "village"}, rights), all);
    EXPECT_EQ(all_about({"gate", "atlantis"}, rights), all) << "to the last byte";
  }
  EXPECT_EQ(all_about({"gate", {}}, kNobodys), all);
  EXPECT_EQ(all_about({"gate", ""}, kEverything), all);
  for (const auto& [outcome, text] : all_about({"nowhere", {}}, kEverything)) {
    EXPECT_EQ(outcome, PastOutcome::bad_request);
    EXPECT_EQ(text, "nothing is remembered of a camera nowhere");
  }
  EXPECT_TRUE(heard.recalls.empty());
  EXPECT_EQ(store.pages(kOther, from_begin(0, 80)).size(), 10U) << "nothing of it was erased";
  EXPECT_EQ(store.pages(kGate, from_begin(0, 80)).size(), 10U);
}

TEST_F(CacheRightsTest, ATenantThatIsAskedForIsNamedToWhoMayKnowOfIt) {
  const auto refused = [](const std::string& text) {
    return std::vector(4, std::pair{PastOutcome::bad_request, text});
  };
  const std::string line = "nothing is remembered of a camera ";
  EXPECT_EQ(all_about({"gate", "atlantis"}, kEverything), refused(line + "gate of a tenant atlantis"));
  EXPECT_EQ(all_about({"nowhere", "city"}, kEverything), refused(line + "nowhere of a tenant city"));
  EXPECT_EQ(all_about({"nowhere", "city"}, kCityReads), refused(line + "nowhere of a tenant city"));
  // Of a tenant whose cameras are not his, as without one, whether there is any or not.
  EXPECT_EQ(all_about({"nowhere", "village"}, kCity), refused(line + "nowhere"));
  EXPECT_EQ(all_about({"gate", "village"}, kCity), refused(line + "gate"));
}

TEST_F(CacheRightsTest, OfCamerasOfOneNameEachHasItsOwnClips) {
  ClipIndex clips;
  clips.add("theirs", {kOther, from_begin(0, 80)}, "gate/theirs.mp4", "");
  options.clips = &clips;
  begin();
  see_all();
  const auto named = [&](const char* const tenant) {
    const std::uint64_t ticket = ask(question({"gate", tenant}));
    settle();
    return answer(ticket).at("evidence").at(0).at("clip");
  };
  EXPECT_EQ(named("city"), json());
  EXPECT_EQ(named("village"), "gate/theirs.mp4");
  clips.add("ours", {kGate, from_begin(0, 80)}, "gate/ours.mp4", "");
  EXPECT_EQ(named("city"), "gate/ours.mp4");
  EXPECT_EQ(named("village"), "gate/theirs.mp4");
}

TEST_F(CacheRightsTest, ANameMeansTheOneThatIsThere) {
  const json mine = answer([&] {
    const std::uint64_t ticket = ask(question({"gate", {}}), kCityReads);
    settle();
    return ticket;
  }());
  EXPECT_EQ(mine.at("tenant"), "city");
  EXPECT_EQ(mine.at("answer"), "No");
  // Who sees both has to say which.
  for (const auto& [outcome, text] : all_about({"gate", {}}, kEverything)) {
    EXPECT_EQ(outcome, PastOutcome::bad_request);
    EXPECT_EQ(text, "several tenants have or had a camera gate: name one of city, village");
  }
  EXPECT_EQ(cameras(answer(ask(PastList{{{"gate", "village"}}}))), std::vector<std::string>{"village/gate"});
}

TEST_F(CacheRightsTest, AListHasThoseThatAreThere) {
  EXPECT_THAT(cameras(answer(ask(PastList{}))), ElementsAre("city/gate", "city/yard", "village/gate"));
  EXPECT_THAT(cameras(answer(ask(PastList{}, kCityReads))), ElementsAre("city/gate", "city/yard"));
  EXPECT_THAT(cameras(answer(ask(PastList{}, kNobodys))), IsEmpty());
  EXPECT_THAT(cameras(answer(ask(PastList{{{"yard", {}}}}))), ElementsAre("city/yard"));
  const std::uint64_t verified = ask(PastVerify{}, kCityReads);
  settle();
  EXPECT_THAT(cameras(answer(verified)), ElementsAre("city/gate", "city/yard"));
  const std::uint64_t nothing = ask(PastVerify{}, kNobodys);
  settle();
  EXPECT_THAT(cameras(answer(nothing)), IsEmpty());
}

TEST_F(CacheRightsTest, WhoMayNotEraseDoesNot) {
  const PastReply reply = last_word(ask(PastErasure{{"yard", {}}, from_begin(0, 80)}, kCityReads));
  EXPECT_EQ(reply.outcome, PastOutcome::forbidden);
  EXPECT_EQ(reply.text, "this key may not erase");
  settle();
  EXPECT_EQ(store.pages(kYard, from_begin(0, 80)).size(), 10U);
  EXPECT_TRUE(store.erasures().empty());
}

TEST_F(CacheRightsTest, AnErasureOfAFleetHoldsForACameraThatComesLater) {
  // As the registry says it: whose camera, and all rights.
  PastErasure erasure{{"lane", "city"}, from_begin(0, 40)};
  ask(erasure);
  EXPECT_TRUE(heard.replies.back().is_unknown);
  // Somebody's own wish leaves nothing behind.
  erasure.camera.name = "road";
  ask(erasure, kCity);
  std::vector<std::string> held;
  for (const history::Erasure& each : store.erasures()) held.push_back(each.camera.camera);
  EXPECT_THAT(held, ElementsAre("lane"));
}

// "Unknown" is "done" to the registry: what a restart would not know is neither.
TEST_F(CacheRightsTest, AnErasureOfAFleetThatTheDiskDoesNotTakeIsNotDone) {
  const PastErasure erasure{{"lane", "city"}, from_begin(0, 40)};
  store.fails = true;
  const PastReply refused = last_word(ask(erasure));
  EXPECT_EQ(refused.outcome, PastOutcome::unavailable);
  EXPECT_FALSE(refused.is_unknown);
  EXPECT_EQ(refused.text, "the disk does not take that it is erased: the disk is full");
  store.fails = false;
  EXPECT_TRUE(last_word(ask(erasure)).is_unknown);
  EXPECT_EQ(store.erasures().size(), 1U) << "given again, it is there";
}

}  // namespace
}  // namespace vigil::actors
