// Which cameras' pages the cache keeps, and what becomes of them.
#include "actors/cache/cache_desk.h"

#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/cache/asked_cache.h"

namespace vigil::actors {
namespace {

using namespace testing;
using kv::Form;
using memory::Gap;
using nlohmann::json;
using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct CacheDeskTest : AskedCache {
  /// "city/gate watched 10" of all that are listed, with their pages.
  std::vector<std::string> listed() {
    std::vector<std::string> lines;
    const json list = answer(ask(PastList{}));
    for (const json& each : list.at("cameras"))
      lines.push_back(each.at("tenant").get<std::string>() + '/' + each.at("camera").get<std::string>() +
                      (each.at("watched").get<bool>() ? " watched " : " ") +
                      std::to_string(each.at("pages").get<int>()));
    return lines;
  }
};

TEST_F(CacheDeskTest, SaysAtOnceWhatIsWanted) {
  begin();
  hear();
  ASSERT_TRUE(heard.wanted);
  EXPECT_THAT(heard.wanted->forms, ElementsAre(Form::fp8, Form::int4));
  heard = {};
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 80);
  settle();
  EXPECT_FALSE(heard.wanted) << "it is the same";
}

TEST_F(CacheDeskTest, SaysWhatIsWantedWhenTheDiskIsBehindAndWhenItIsNot) {
  options.memory.parts = {.most_waiting = 1024, .part_bytes = 256};
  begin();
  has_disk = false;
  see(kGate, 0, 64);
  ASSERT_TRUE(heard.wanted);
  heard.wanted.reset();
  see(kGate, 64, 128);
  ASSERT_TRUE(heard.wanted);
  EXPECT_THAT(heard.wanted->forms, ElementsAre(Form::fp8)) << "nothing for the disk";
  heard.wanted.reset();
  has_disk = true;
  settle();
  ASSERT_TRUE(heard.wanted);
  EXPECT_THAT(heard.wanted->forms, ElementsAre(Form::fp8, Form::int4));
}

TEST_F(CacheDeskTest, PagesAreKeptAndCounted) {
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 80);
  EXPECT_EQ(heard.counts.pages, 10U);
  EXPECT_TRUE(heard.wakes_writer);
  settle();
  EXPECT_EQ(heard.counts.written_bytes, 0U) << "no part is complete yet";
  desk->end("gate");
  settle();
  EXPECT_EQ(heard.counts.written_bytes, 640U);
  EXPECT_THAT(heard.counts.lost, IsEmpty());
  EXPECT_EQ(store.pages(kGate, from_begin(0, 80)).size(), 10U);
  desk->end("gate");
  desk->end("nobody");
  hear();
  EXPECT_FALSE(heard.wakes_writer);
}

TEST_F(CacheDeskTest, WhatIsLostIsCountedByWhy) {
  begin(/*with_store=*/false);
  desk->watch(watch_of_tenant("city", "gate"));
  LeftPages left;
  left.news.lost = {{kGate, memory::Forgotten::no_room, 3, from_begin(0, 3)},
                    {kGate, memory::Forgotten::keyless, 2, from_begin(3, 5)}};
  // Larger than all there is.
  left.news.pages.push_back(page_from(kGate, 8, {Form::fp8}, memory, std::size_t{17} << 20U));
  desk->take(left);
  hear();
  EXPECT_EQ(heard.counts.lost,
            (std::map<Gap, std::uint64_t>{{Gap::evicted, 1}, {Gap::late, 1}, {Gap::keyless, 1}}));
  const json gaps =
      answer(ask(question({"gate", {}}, "Did it?", from_begin(0, 16)))).at("coverage").at("gaps");
  std::vector<std::string> reasons;
  for (const json& gap : gaps) reasons.push_back(gap.at("why").get<std::string>());
  EXPECT_THAT(reasons, ElementsAre("late", "keyless", "down", "evicted"));
}

// A camera whose clock was never set.
TEST_F(CacheDeskTest, APageThatNoPartMayHaveIsLostAlone) {
  desk->watch(watch_of_tenant("city", "gate"));
  LeftPages left;
  left.news.pages.push_back(page_from(kGate, -kBegin / 1'000'000'000 - 100, desk->memory().wanted(), memory));
  left.news.pages.push_back(page_from(kGate, 0, desk->memory().wanted(), memory));
  EXPECT_NO_THROW(desk->take(left));
  hear();
  EXPECT_EQ(heard.counts.pages, 1U);
  EXPECT_EQ(heard.counts.lost, (std::map<Gap, std::uint64_t>{{Gap::late, 1}}));
  EXPECT_THAT(heard.warnings, ElementsAre(HasSubstr("a page of a time before 1970")));
}

TEST_F(CacheDeskTest, APartThatTheDiskDoesNotTakeIsToldAndLate) {
  options.memory.host = {};
  begin();
  desk->watch(watch_of_tenant("city", "gate"));
  store.fails = true;
  see(kGate, 0, 80);
  desk->end("gate");
  settle();
  EXPECT_THAT(heard.warnings, ElementsAre("what camera gate saw was not written: the disk is full"));
  EXPECT_EQ(heard.counts.written_bytes, 0U);
  const json told = answer(ask(question({"gate", {}})));
  EXPECT_EQ(told.at("coverage").at("gaps").at(0).at("why"), "late");
  EXPECT_EQ(told.at("coverage").at("share"), 0);
}

TEST_F(CacheDeskTest, CamerasComeAndGo) {
  EXPECT_THAT(listed(), IsEmpty());
  desk->watch(watch_of_tenant("city", "gate"));
  desk->watch(watch_of_tenant("city", "yard", hours(0)));
  EXPECT_THAT(listed(), ElementsAre("city/gate watched 0")) << "nothing is kept of the other";
  see(kGate, 0, 80);
  desk->watch(watch_of_tenant("city", "gate", hours(48)));
  EXPECT_THAT(listed(), ElementsAre("city/gate watched 10"));
  // From now on it is not to be remembered, nor is what is there.
  desk->watch(watch_of_tenant("city", "gate", hours(0)));
  EXPECT_THAT(listed(), IsEmpty());
  desk->watch(watch_of_tenant("city", "gate"));
  EXPECT_THAT(listed(), ElementsAre("city/gate watched 0")) << "what was on its way is gone";
  see(kGate, 80, 160);
  EXPECT_THAT(listed(), ElementsAre("city/gate watched 10"));
  desk->end("gate");
  EXPECT_THAT(listed(), ElementsAre("city/gate 10"));
  settle();
  // The next process knows what the disk has.
  begin();
  EXPECT_THAT(listed(), ElementsAre("city/gate 10"));
}

TEST_F(CacheDeskTest, ACameraOfAnotherTenantIsAnotherOne) {
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 40);
  desk->watch(watch_of_tenant("village", "gate"));
  EXPECT_THAT(listed(), ElementsAre("city/gate 5", "village/gate watched 0"));
  see(kOther, 40, 80);
  EXPECT_THAT(listed(), ElementsAre("city/gate 5", "village/gate watched 5"));
  // Of the former tenant's page, which comes late.
  see(kGate, 40, 48);
  EXPECT_THAT(listed(), ElementsAre("city/gate 6", "village/gate watched 5"));
  desk->watch(watch_of_tenant("town", "gate", hours(0)));
  EXPECT_THAT(listed(), ElementsAre("city/gate 6", "village/gate 5"));
}

TEST_F(CacheDeskTest, OfAConfigurationOnlyCamerasThatWereSeenHereAreKept) {
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 8);
  desk->end("gate");
  desk->keep(Keeps{{{kGate, hours(1)}, {history::CameraId{"city", "never"}, hours(1)}}});
  const auto list = desk->memory().list(kBegin);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].camera, kGate);
  EXPECT_EQ(list[0].keep, hours(1));
}

TEST_F(CacheDeskTest, NothingThatIsOlderThanItsCameraKeepsIsSentOrToldOf) {
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 80);
  // It is 200 s after the begin: what is older than 44 s of it goes, in the middle of a page.
  desk->watch(watch_of_tenant("city", "gate", std::chrono::seconds(156)));
  const std::uint64_t ticket = ask(question({"gate", {}}, "When did a car stop?"));
  int sent = 0;
  device = [&](const Recall& recall) {
    EXPECT_EQ(shown(recall, 0, 44), 0);
    sent += shown(recall, 44, 80);
    return Recalled{recall.ticket, answer_of(6), "", false};
  };
  settle();
  EXPECT_GE(sent, 36);
  const json told = answer(ticket);
  EXPECT_EQ(told.at("answer"), "2026-08-01T10:00:44.000Z");
  EXPECT_EQ(told.at("evidence").at(0).at("from"), "2026-08-01T10:00:44.000Z");
  EXPECT_EQ(told.at("coverage"), json::parse(R"({"share": 0.45, "gaps": [{"from": "2026-08-01T10:00:00.000Z",
      "to": "2026-08-01T10:00:43.999Z", "why": "evicted"}]})"));
  clock.advance(std::chrono::seconds(4));
  const json list = answer(ask(PastList{})).at("cameras").at(0);
  EXPECT_EQ(list.at("from"), "2026-08-01T10:00:48.000Z");
  EXPECT_EQ(list.at("pages"), 4);
}

TEST_F(CacheDeskTest, QuestionsAboutWhatIsKeptNoMoreAreNotAnswered) {
  has_device = false;
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 80);
  const auto outcome = [&](std::uint64_t ticket) {
    hear();
    std::vector<std::string> texts;
    for (const PastReply& each : heard.replies)
      if (each.ticket == ticket) texts.push_back(each.text);
    return texts;
  };
  const std::uint64_t old = ask(question({"gate", {}}, "Was it?", from_begin(0, 40)));
  const std::uint64_t later = ask(question({"gate", {}}, "Was it?", from_begin(56, 80)));
  desk->watch(watch_of_tenant("city", "gate", std::chrono::seconds(156)));
  EXPECT_THAT(outcome(old), ElementsAre("what it was about is not kept any more"));
  EXPECT_THAT(outcome(later), IsEmpty());
  // A fleet's configuration, of a camera that is read elsewhere.
  desk->end("gate");
  desk->keep(Keeps{{{kGate, hours(24)}}});
  EXPECT_THAT(outcome(later), IsEmpty()) << "for longer";
  heard = {};
  clock.advance(1s);
  desk->keep(Keeps{{{kGate, hours(24)}}});
  hear();
  EXPECT_THAT(outcome(later), IsEmpty()) << "for as long as before";
  EXPECT_FALSE(heard.was_aged) << "nothing is looked at anew";
  desk->keep(Keeps{{{kGate, hours(0)}}});
  EXPECT_THAT(outcome(later), ElementsAre("what it was about is not kept any more"));
}

TEST_F(CacheDeskTest, ACameraThatIsTurnedOffIsForgottenAtOnce) {
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 80);
  desk->memory().queue()->flush(std::nullopt);
  settle();
  desk->watch(watch_of_tenant("city", "yard"));
  see(kYard, 0, 80);
  heard.aged = {};
  desk->watch(watch_of_tenant("city", "gate", hours(0)));
  hear();
  ASSERT_EQ(heard.aged.expiries.size(), 1U) << "it does not wait for the next time";
  EXPECT_EQ(heard.aged.expiries[0].camera, kGate);
  EXPECT_THAT(listed(), ElementsAre("city/yard watched 10"));
  const json told = answer(ask(question({"gate", {}})));
  EXPECT_TRUE(told.at("answer").is_null());
  EXPECT_EQ(told.at("coverage").at("gaps").at(0).at("why"), "evicted");
  writing->retire(heard.aged.expiries);
  heard.wakes_writer = true;
  settle();
  EXPECT_THAT(store.pages(kGate, from_begin(0, 80)), IsEmpty());
}

TEST_F(CacheDeskTest, WhatIsTooOldGoesFromTimeToTime) {
  desk->watch(watch_of_tenant("city", "gate"));
  see(kGate, 0, 8);
  desk->memory().queue()->flush(std::nullopt);
  ASSERT_TRUE(desk->memory().queue()->write_next(clock.now()).has_value());
  desk->tick();
  hear();
  EXPECT_THAT(heard.aged.expiries, IsEmpty());
  clock.advance(9s);
  desk->tick();
  hear();
  EXPECT_EQ(desk->memory().host().used(), 4096U);
  clock.advance(hours(3));
  desk->tick();
  hear();
  EXPECT_EQ(desk->memory().host().used(), 0U) << "on the host for two hours";
  EXPECT_THAT(heard.aged.expiries, IsEmpty()) << "on the disk for longer";
  clock.advance(hours(48));
  desk->tick();
  hear();
  ASSERT_FALSE(heard.aged.expiries.empty());
  EXPECT_EQ(heard.aged.expiries[0].camera, kGate);
  EXPECT_GT(heard.aged.expiries[0].before_hour, static_cast<std::uint32_t>(kBegin / 3'600'000'000'000));
}

}  // namespace
}  // namespace vigil::actors
