// One word about the past, made of those of all nodes that remember.
#include "fleet/past/past_desk.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::PastOutcome;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string list_of(const std::string& tenant) {
  return json{{"cameras",
               {{{"camera", "gate"},
                 {"tenant", tenant},
                 {"watched", true},
                 {"keep_s", 60.0},
                 {"pages", 2},
                 {"bytes", {{"host", 1}, {"disk", 2}}},
                 {"from", nullptr},
                 {"to", nullptr},
                 {"forms", json::array()}}}}}
      .dump();
}

std::string answer_of(double probability, const json& evidence = json::array()) {
  return json{{"camera", "gate"},
              {"tenant", "acme"},
              {"from", "2026-11-29T10:00:00.000Z"},
              {"to", "2026-11-29T10:09:59.999Z"},
              {"answer", "No"},
              {"probability", probability},
              {"evidence", evidence},
              {"coverage", {{"share", 1.0}, {"gaps", json::array()}}},
              {"bytes", {{"host", 0}, {"disk", 0}}},
              {"tokens", {{"read", 0}, {"exhaustive", 0}}},
              {"windows_lost", 0},
              {"seconds", {{"find", 0.0}, {"read", 0.0}, {"look", 0.0}, {"total", 0.0}}}}
      .dump();
}

class PastDeskTest : public ::testing::Test {
 protected:
  /// Asks, and says what is put to nodes; nothing if nothing is.
  std::optional<std::uint64_t> ask(decltype(actors::PastRequest::what) what,
                                   actors::PastRights rights = {std::nullopt, true}) {
    actors::PastRequest request;
    request.ticket = 7;
    request.rights = std::move(rights);
    request.what = std::move(what);
    request.deadline = clock_.now() + 60s;
    desk_.take(request);
    hear();
    return wanted_.empty() ? std::nullopt : std::optional(wanted_.back().id);
  }
  void hear() {
    PastDesk::News news = desk_.take_news();
    for (auto& each : news.wanted) wanted_.push_back(std::move(each));
    for (auto& each : news.clips) clips_.push_back(std::move(each));
    for (auto& each : news.orders) orders_.push_back(std::move(each));
    for (auto& each : news.replies) replies_.push_back(std::move(each));
    over_.insert(over_.end(), news.over.begin(), news.over.end());
  }
  void nodes(std::uint64_t id, const std::vector<std::string>& asked,
             const std::vector<std::string>& silent = {}) {
    desk_.nodes(id, asked, silent);
    hear();
  }
  void word(std::uint64_t id, const std::string& node, PastOutcome outcome, const std::string& text,
            bool is_unknown = false) {
    actors::PastReply reply;
    reply.outcome = outcome;
    reply.text = text;
    reply.is_unknown = is_unknown;
    reply.retry_after = outcome == PastOutcome::busy ? 700ms : 0ms;
    desk_.hear(id, node, reply);
    hear();
  }
  /// What the registry has, and which nodes have done it.
  void book(const std::string& erasure, const std::vector<std::string>& nodes,
            const std::vector<std::string>& done) {
    ErasureBook::Entries entries;
    const auto put = [&](const std::string& key, const std::string& value, cluster::Revision created) {
      const std::string whole = "/vigil/city/past/" + key;
      entries[whole] = {whole, value, created, created, 0};
    };
    for (const std::string& node : nodes) put("nodes/" + node, R"({"disk": true})", 1);
    if (!erasure.empty()) put("erasures/" + erasure, print(FleetErasure{{"acme", "gate"}, {0, 10}}), 2);
    for (const std::string& node : done) put("erased/" + erasure + '/' + node, R"({"pages": 3})", 3);
    book_.see(entries);
    desk_.see_book();
    hear();
  }
  json answered() {
    EXPECT_THAT(replies_, SizeIs(1));
    if (replies_.empty()) return json();
    EXPECT_EQ(replies_.back().outcome, PastOutcome::answer) << replies_.back().text;
    EXPECT_EQ(replies_.back().ticket, 7U);
    return json::parse(replies_.back().text);
  }
  void expect_refused(PastOutcome outcome, const std::string& text) {
    ASSERT_THAT(replies_, SizeIs(1));
    EXPECT_EQ(replies_.back().outcome, outcome);
    EXPECT_THAT(replies_.back().text, HasSubstr(text));
    EXPECT_EQ(replies_.back().ticket, 7U);
  }

  static actors::PastQuestion question() {
    return {{"gate", std::nullopt}, "Is a car there?", "", {0, 10}, memory::Method::windows, 64};
  }
  static actors::PastErasure erasure(std::optional<std::string> tenant = std::nullopt) {
    return {{"gate", std::move(tenant)}, {0, 10}};
  }

  actors::testing::ManualClock clock_;
  ErasureBook book_{"city", "gw"};
  PastDesk desk_{book_, clock_, "run"};
  std::vector<PastDesk::News::Wanted> wanted_;
  std::vector<PastDesk::News::Clips> clips_;
  std::vector<PastDesk::News::Order> orders_;
  std::vector<actors::PastReply> replies_;
  std::vector<std::uint64_t> over_;
};

TEST_F(PastDeskTest, AllAreAskedAndTheLastOneMakesTheAnswer) {
  const auto id = ask(question());
  ASSERT_TRUE(id);
  EXPECT_EQ(wanted_.back().what.ticket, *id);
  nodes(*id, {"a", "b", "c"});
  word(*id, "a", PastOutcome::progress, R"({"windows": 1, "of": 2, "brief": true})");
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_.back().outcome, PastOutcome::progress);
  replies_.clear();
  word(*id, "a", PastOutcome::answer, answer_of(0.1));
  word(*id, "b", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  EXPECT_THAT(replies_, IsEmpty());
  word(*id, "c", PastOutcome::answer, answer_of(0.7));
  EXPECT_EQ(answered().at("probability"), 0.7);
  EXPECT_THAT(over_, ElementsAre(*id));
  // What comes later is nobody's.
  word(*id, "c", PastOutcome::answer, answer_of(0.9));
  EXPECT_THAT(replies_, SizeIs(1));
}

TEST_F(PastDeskTest, ClipsAreLookedForWhenTheAnswerIsThere) {
  const json evidence = {
      {{"from", "2026-11-29T10:01:00.000Z"}, {"to", "2026-11-29T10:01:40.000Z"}, {"score", 0.7}}};
  const auto id = ask(question());
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::answer, answer_of(0.1));
  EXPECT_THAT(clips_, IsEmpty());
  word(*id, "b", PastOutcome::answer, answer_of(0.7, evidence));
  EXPECT_THAT(replies_, IsEmpty());
  ASSERT_THAT(clips_, SizeIs(1));
  EXPECT_EQ(clips_[0].id, *id);
  EXPECT_EQ(clips_[0].wish.camera, (history::CameraId{"acme", "gate"}));
  EXPECT_THAT(clips_[0].wish.walls, SizeIs(1));
  // Before it is known who is asked, nobody is heard.
  const FoundClips found = {actors::ShownClip{"x.mp4", "", 1, 2}};
  desk_.clips(*id, "c", found);
  desk_.clip_nodes(*id, {"c", "d"});
  desk_.clips(*id, "c", std::nullopt);
  desk_.clips(*id, "c", found);
  desk_.clips(*id, "e", found);
  hear();
  EXPECT_THAT(replies_, IsEmpty());
  desk_.clips(*id, "d", FoundClips{actors::ShownClip{"y.mp4", "", 1, 2}});
  hear();
  EXPECT_EQ(answered().at("evidence").at(0).at("clip"), "y.mp4");
  EXPECT_EQ(answered().at("probability"), 0.7);
  EXPECT_THAT(over_, ElementsAre(*id));
}

// A node that remembers may read cameras, too: it is waited for twice, for two things.
TEST_F(PastDeskTest, WhatNodesSayTooLateLosesNoClip) {
  const json evidence = {
      {{"from", "2026-11-29T10:01:00.000Z"}, {"to", "2026-11-29T10:01:40.000Z"}, {"score", 0.7}}};
  const auto id = ask(question());
  nodes(*id, {"a", "b"});
  EXPECT_TRUE(desk_.waits(*id, "a"));
  desk_.silent(*id, "b");
  word(*id, "a", PastOutcome::answer, answer_of(0.7, evidence));
  desk_.clip_nodes(*id, {"a", "b"});
  EXPECT_FALSE(desk_.waits(*id, "a")) << "it has answered";
  word(*id, "b", PastOutcome::progress, R"({"windows": 1, "of": 2, "brief": true})");
  word(*id, "b", PastOutcome::answer, answer_of(0.9, evidence));
  desk_.silent(*id, "a");
  desk_.absent(*id, "b");
  hear();
  EXPECT_THAT(replies_, IsEmpty()) << "neither has said which clips it has";
  desk_.clips(*id, "a", std::nullopt);
  desk_.clips(*id, "b", FoundClips{actors::ShownClip{"b.mp4", "", 1, 2}});
  hear();
  EXPECT_EQ(answered().at("evidence").at(0).at("clip"), "b.mp4");
  EXPECT_EQ(answered().at("probability"), 0.7);
  EXPECT_EQ(answered().at("silent"), json::array({"b"}));
}

TEST_F(PastDeskTest, WhereNobodyReadsCamerasNoClipIsNamed) {
  const json evidence = {
      {{"from", "2026-11-29T10:01:00.000Z"}, {"to", "2026-11-29T10:01:40.000Z"}, {"score", 0.7}}};
  const auto id = ask(question());
  nodes(*id, {"a"});
  // Not while nodes answer.
  desk_.clip_nodes(*id, {});
  hear();
  EXPECT_THAT(replies_, IsEmpty());
  word(*id, "a", PastOutcome::answer, answer_of(0.7, evidence));
  desk_.clip_nodes(*id, {});
  hear();
  EXPECT_TRUE(answered().at("evidence").at(0).at("clip").is_null());
}

TEST_F(PastDeskTest, AnAnswerIsToldInTimeThoughItIsNotKnownWhoHasClips) {
  const json evidence = {
      {{"from", "2026-11-29T10:01:00.000Z"}, {"to", "2026-11-29T10:01:40.000Z"}, {"score", 0.7}}};
  const auto id = ask(question());
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::answer, answer_of(0.7, evidence));
  clock_.advance(59s);
  desk_.tick();
  hear();
  EXPECT_THAT(replies_, IsEmpty());
  clock_.advance(600ms);
  desk_.tick();
  hear();
  EXPECT_TRUE(answered().at("evidence").at(0).at("clip").is_null());
}

TEST_F(PastDeskTest, AnErasureMeetsAnAnswerWhoseClipsAreLookedFor) {
  const json evidence = {
      {{"from", "2026-11-29T10:01:00.000Z"}, {"to", "2026-11-29T10:01:40.000Z"}, {"score", 0.7}}};
  const auto id = ask(question());
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::answer, answer_of(0.7, evidence));
  desk_.clip_nodes(*id, {"c"});
  desk_.erased({{"acme", "gate"}, {5, 6}});
  hear();
  expect_refused(PastOutcome::unavailable, "erased meanwhile");
  desk_.clips(*id, "c", FoundClips{});
  hear();
  EXPECT_THAT(replies_, SizeIs(1));
}

TEST_F(PastDeskTest, WhoCannotAnswerIsNamedInTheAnswer) {
  const auto id = ask(question());
  nodes(*id, {"a", "b", "c", "d"}, {"z"});
  word(*id, "a", PastOutcome::answer, answer_of(0.1));
  word(*id, "b", PastOutcome::busy, "later");
  desk_.silent(*id, "c");
  desk_.absent(*id, "d");
  hear();
  EXPECT_THAT(answered().at("silent"), ElementsAre("b", "c", "z"));
}

TEST_F(PastDeskTest, WhereNobodyKnowsTheCameraItIsNotThere) {
  const auto id = ask(question());
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  word(*id, "b", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  expect_refused(PastOutcome::bad_request, "nothing is remembered of a camera gate");
}

TEST_F(PastDeskTest, WhereOneIsSilentNobodyKnowsWhetherItIsThere) {
  const auto id = ask(question());
  nodes(*id, {"a"}, {"z"});
  word(*id, "a", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  expect_refused(PastOutcome::unavailable, "of these nobody knows: z");
}

TEST_F(PastDeskTest, WithoutNodesNobodyRemembers) {
  const auto id = ask(question());
  nodes(*id, {});
  expect_refused(PastOutcome::unavailable, "no node of this fleet remembers anything");
}

TEST_F(PastDeskTest, ARefusalGoesAsItIs) {
  const auto id = ask(question());
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::answer, answer_of(0.1));
  word(*id, "b", PastOutcome::bad_request, "several tenants have or had a camera gate: name one of a, b");
  expect_refused(PastOutcome::bad_request, "several tenants");
}

TEST_F(PastDeskTest, ABusyNodeAloneMakesItBusy) {
  const auto id = ask(question());
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::busy, "later");
  expect_refused(PastOutcome::busy, "node a: later");
  EXPECT_EQ(replies_.back().retry_after, 700ms);
}

TEST_F(PastDeskTest, WhoIsTooSlowIsNotWaitedFor) {
  const auto id = ask(question());
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::answer, answer_of(0.1));
  clock_.advance(59s);
  desk_.tick();
  hear();
  EXPECT_THAT(replies_, IsEmpty());
  clock_.advance(600ms);
  desk_.tick();
  hear();
  EXPECT_THAT(answered().at("silent"), ElementsAre("b"));
  EXPECT_THAT(over_, ElementsAre(*id)) << "who still looks hears that he need not";
}

TEST_F(PastDeskTest, WhatNobodyWaitsForIsOver) {
  const auto id = ask(question());
  nodes(*id, {"a"});
  desk_.forget(7);
  hear();
  EXPECT_THAT(over_, ElementsAre(*id));
  word(*id, "a", PastOutcome::answer, answer_of(0.1));
  EXPECT_THAT(replies_, IsEmpty());
}

TEST_F(PastDeskTest, AnErasureIsDoneWhenAllHaveDoneIt) {
  const auto id = ask(erasure());
  EXPECT_TRUE(std::holds_alternative<actors::PastList>(wanted_.back().what.what));
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  word(*id, "b", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  ASSERT_THAT(orders_, SizeIs(1));
  EXPECT_EQ(orders_[0].what, (FleetErasure{{"acme", "gate"}, {0, 10}}));
  desk_.ordered(*id, "");
  hear();
  EXPECT_TRUE(desk_.is_erasing());
  EXPECT_THAT(replies_, IsEmpty()) << "the registry has not said yet that it has it";
  book(orders_[0].erasure, {"a", "b"}, {});
  book(orders_[0].erasure, {"a", "b"}, {"a"});
  EXPECT_THAT(replies_, IsEmpty());
  book(orders_[0].erasure, {"a", "b"}, {"a", "b"});
  EXPECT_EQ(answered().at("pages"), 6);
  EXPECT_EQ(answered().at("finished"), true);
}

TEST_F(PastDeskTest, WhatARegistryHasForgottenIsNotDone) {
  const auto id = ask(erasure());
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  book(orders_[0].erasure, {"a"}, {});
  book("", {"a"}, {});
  expect_refused(PastOutcome::unavailable, "whether it is ordered is not known, ask again");
}

TEST_F(PastDeskTest, WhatIsNotSeenYetIsNotOrdered) {
  actors::PastErasure all = erasure();
  all.wall.to = std::numeric_limits<std::int64_t>::max();
  const auto id = ask(all);
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  ASSERT_THAT(orders_, SizeIs(1));
  EXPECT_EQ(orders_[0].what.wall.to, std::chrono::nanoseconds(clock_.wall().time_since_epoch()).count());
}

TEST_F(PastDeskTest, AnOrderThatNobodyHasAnsweredIsNotSaidToStay) {
  const auto id = ask(erasure());
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  clock_.advance(59'600ms);
  desk_.tick();
  hear();
  expect_refused(PastOutcome::unavailable, "whether it is ordered is not known");
  // Nor is one begun when there is no time to hear of it.
  replies_.clear();
  orders_.clear();
  const auto late = ask(erasure());
  nodes(*late, {"a", "b"});
  word(*late, "a", PastOutcome::answer, list_of("acme"));
  clock_.advance(59'600ms);
  desk_.tick();
  hear();
  expect_refused(PastOutcome::too_late, "whose camera that is");
  EXPECT_THAT(orders_, IsEmpty());
}

TEST_F(PastDeskTest, WhatWasSaidOfWhatIsErasedMeanwhileIsToldToNobody) {
  const auto id = ask(question());
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::answer, answer_of(0.99));
  desk_.erased({{"acme", "yard"}, {0, 10}});
  desk_.erased({{"acme", "gate"}, {11, 20}});
  hear();
  EXPECT_THAT(replies_, IsEmpty()) << "another camera, another time";
  desk_.erased({{"acme", "gate"}, {5, 20}});
  hear();
  expect_refused(PastOutcome::unavailable, "was erased meanwhile");
  EXPECT_THAT(over_, ElementsAre(*id));
}

TEST_F(PastDeskTest, ANodeThatSpeaksAnotherWayIsSilent) {
  auto id = ask(question());
  nodes(*id, {"a", "b", "c"});
  word(*id, "a", PastOutcome::answer, answer_of(0.1));
  word(*id, "b", PastOutcome::answer, R"({"camera": "gate", "tenant": "acme", "answer": "No"})");
  word(*id, "c", PastOutcome::answer, "no JSON");
  EXPECT_THAT(answered().at("silent"), ElementsAre("b", "c"));
  replies_.clear();
  id = ask(erasure());
  nodes(*id, {"a", "b"});
  word(*id, "b", PastOutcome::answer, R"({"rows": []})");
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  EXPECT_THAT(orders_, SizeIs(1)) << "what others say is enough";
}

TEST_F(PastDeskTest, ANodeWithoutADiskHasNothingToCheck) {
  const auto id = ask(actors::PastVerify{});
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::answer,
       R"({"cameras": [{"camera": "gate", "tenant": "acme", "whole": 3, "damaged": 0}]})");
  word(*id, "b", PastOutcome::unavailable, "nothing is kept on a disk", true);
  EXPECT_THAT(answered().at("silent"), IsEmpty());
}

TEST_F(PastDeskTest, OnlyWhoIsWaitedForIsAsked) {
  const auto id = ask(question());
  EXPECT_FALSE(desk_.waits(*id, "a"));
  nodes(*id, {"a"});
  EXPECT_TRUE(desk_.waits(*id, "a"));
  EXPECT_FALSE(desk_.waits(*id, "b"));
  desk_.forget(7);
  EXPECT_FALSE(desk_.waits(*id, "a"));
}

TEST_F(PastDeskTest, WhoIsAwayIsNamedBeforeTheTimeIsOver) {
  const auto id = ask(erasure());
  nodes(*id, {"a"}, {"b"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  desk_.ordered(*id, "");
  book(orders_[0].erasure, {"a", "b"}, {"a"});
  clock_.advance(59'600ms);
  desk_.tick();
  hear();
  expect_refused(PastOutcome::unavailable, "not done yet by b: who is away does it at its return");
}

TEST_F(PastDeskTest, WhatAnAbsentNodeMayHaveIsOrderedIfItIsSaidWhoseItIs) {
  auto id = ask(erasure());
  nodes(*id, {"a"}, {"b"});
  word(*id, "a", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  expect_refused(PastOutcome::unavailable, "name its tenant");
  EXPECT_THAT(orders_, IsEmpty());
  replies_.clear();
  id = ask(erasure("acme"));
  nodes(*id, {"a"}, {"b"});
  word(*id, "a", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  EXPECT_THAT(orders_, SizeIs(1));
}

TEST_F(PastDeskTest, WhoMayNotEraseOrdersNothing) {
  auto id = ask(erasure(), {std::nullopt, false});
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  expect_refused(PastOutcome::forbidden, "may not erase");
  replies_.clear();
  // Another tenant's is as one that is not there, whoever is away.
  id = ask(erasure("acme"), {std::set<std::string>{"zoo"}, true});
  nodes(*id, {"a"}, {"b"});
  word(*id, "a", PastOutcome::bad_request, "nothing is remembered of a camera gate", true);
  expect_refused(PastOutcome::unavailable, "nothing is remembered of a camera gate");
  EXPECT_THAT(orders_, IsEmpty());
}

TEST_F(PastDeskTest, CamerasOfTwoTenantsAreNotErasedTogether) {
  const auto id = ask(erasure());
  nodes(*id, {"a", "b"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  word(*id, "b", PastOutcome::answer, list_of("zoo"));
  expect_refused(PastOutcome::bad_request, "name one of acme, zoo");
  EXPECT_THAT(orders_, IsEmpty());
}

TEST_F(PastDeskTest, WithoutTheRegistryNothingIsOrdered) {
  const auto id = ask(erasure());
  nodes(*id, {"a"});
  word(*id, "a", PastOutcome::answer, list_of("acme"));
  desk_.ordered(*id, "it does not answer");
  hear();
  expect_refused(PastOutcome::unavailable, "the registry: it does not answer");
}

}  // namespace
}  // namespace vigil::fleet
