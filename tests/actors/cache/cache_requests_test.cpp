// Questions, verifications and erasures, from a request to its last word.
#include <chrono>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/cache/asked_cache.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct CacheRequestsTest : AskedCache {
  CacheRequestsTest() { see_all(); }
  void happens(std::int64_t from, std::int64_t to) {
    device = [from, to](const Recall& recall) {
      const int patches = shown(recall, from, to);
      return Recalled{recall.ticket, answer_of(patches > 0 ? 2 + patches : -6), "", false};
    };
  }
  std::uint64_t erase(const history::WallRange& wall = from_begin(0, 80)) {
    return ask(PastErasure{{"yard", {}}, wall});
  }
  bool is_told(std::uint64_t ticket) const {
    return std::any_of(heard.replies.begin(), heard.replies.end(),
                       [&](const PastReply& reply) { return reply.ticket == ticket; });
  }
};

TEST_F(CacheRequestsTest, AQuestionIsAnswered) {
  happens(20, 24);
  const std::uint64_t ticket = ask(question({"yard", {}}, "When did a car stop?"));
  ASSERT_FALSE(heard.recalls.empty());
  for (const Recall& recall : heard.recalls) {
    EXPECT_EQ(recall.text, "Did a car stop?");
    EXPECT_EQ(recall.max_tokens, 1);
    EXPECT_EQ(recall.what.due, clock.now() + 1h) << "after all that is due by then";
  }
  settle();
  const json told = answer(ticket);
  EXPECT_EQ(told.at("camera"), "yard");
  EXPECT_EQ(told.at("tenant"), "city");
  EXPECT_EQ(told.at("answer"), "2026-08-01T10:00:20.000Z");
  EXPECT_EQ(told.at("coverage").at("share"), 1);
  EXPECT_EQ(told.at("bytes").at("host"), 640);
  // Six windows by what stands out, then those that begin apart, the neighbour of the one that says "Yes",
  // and its moment; all of it in order, the answer last.
  std::vector<json> progress;
  for (const PastReply& each : heard.replies)
    if (each.ticket == ticket && each.outcome == PastOutcome::progress)
      progress.push_back(json::parse(each.text));
  ASSERT_THAT(progress, SizeIs(6 + 2 + 1 + 39));
  EXPECT_EQ(progress.front(), json::parse(R"({"windows": 1, "of": 6, "brief": true})"));
  EXPECT_EQ(progress[5], json::parse(R"({"windows": 6, "of": 6, "brief": true})"));
  EXPECT_EQ(heard.replies.back().outcome, PastOutcome::answer);
  EXPECT_EQ(desk->open_questions(), 0U);
}

TEST_F(CacheRequestsTest, OfWhatIsOnTheDiskTheReadersRead) {
  begin();
  happens(20, 24);
  const std::uint64_t ticket = ask(question({"yard", {}}));
  EXPECT_THAT(heard.recalls, IsEmpty());
  ASSERT_FALSE(heard.to_read.empty());
  EXPECT_EQ(heard.to_read.front().camera, kYard);
  settle();
  EXPECT_EQ(answer(ticket).at("answer"), "Yes");
  EXPECT_EQ(answer(ticket).at("bytes"), json::parse(R"({"host": 0, "disk": 640})"));
  // A disk that cannot be read.
  after_reading = [](ReadPages& pages) {
    for (history::Value& value : pages.values) value = history::Value(history::Missing::damaged);
  };
  const std::uint64_t other = ask(question({"yard", {}}));
  settle();
  EXPECT_TRUE(answer(other).at("answer").is_null());
  EXPECT_EQ(answer(other).at("coverage").at("gaps").at(0).at("why"), "damaged");
  EXPECT_EQ(answer(other).at("windows_lost"), 6);
}

TEST_F(CacheRequestsTest, WhatHasNotComeYetIsCutOff) {
  const auto asked = [&](std::int64_t from, std::int64_t to) {
    const std::uint64_t ticket = ask(question({"yard", {}}, "Did a car stop?", from_begin(from, to)));
    settle();
    return answer(ticket);
  };
  // It is 200 s after the begin; 80 of them are remembered.
  json told = asked(0, 4000);
  EXPECT_EQ(told.at("to"), "2026-08-01T10:03:20.000Z");
  EXPECT_EQ(told.at("coverage").at("share"), 0.4);
  EXPECT_EQ(asked(0, 100).at("to"), "2026-08-01T10:01:39.999Z") << "that was";
  // A file that is read ahead of its time.
  see(kYard, 240, 320);
  settle();
  told = asked(240, 4000);
  EXPECT_EQ(told.at("to"), "2026-08-01T10:05:19.999Z");
  EXPECT_EQ(told.at("coverage").at("share"), 1);
  EXPECT_EQ(asked(240, 280).at("to"), "2026-08-01T10:04:39.999Z");
  // Nothing of it has come.
  told = asked(1000, 4000);
  EXPECT_EQ(told.at("to"), "2026-08-01T11:06:39.999Z");
  EXPECT_EQ(told.at("coverage").at("share"), 0);
}

TEST_F(CacheRequestsTest, WhoForgetsAQuestionHearsNothingMore) {
  const std::uint64_t ticket = ask(question({"yard", {}})), other = ask(question({"gate", "city"}));
  std::vector<std::uint64_t> own;
  for (const Recall& recall : heard.recalls)
    if (own.size() < 6) own.push_back(recall.ticket);
  desk->forget(ticket);
  hear();
  EXPECT_EQ(heard.forgotten, own);
  settle();
  EXPECT_FALSE(is_told(ticket));
  EXPECT_TRUE(is_told(other));
  desk->forget(ticket);
  desk->forget(777);
  hear();
  EXPECT_EQ(heard.forgotten, own);
}

TEST_F(CacheRequestsTest, WhatADeviceLostIsAskedAgain) {
  const std::uint64_t ticket = ask(question({"yard", {}}));
  std::vector<std::uint64_t> lost;
  for (const Recall& recall : std::exchange(heard.recalls, {})) lost.push_back(recall.ticket);
  desk->lost(lost);
  desk->lost({});
  desk->tick();
  hear();
  EXPECT_THAT(heard.recalls, IsEmpty());
  clock.advance(250ms);
  desk->tick();
  hear();
  std::vector<std::uint64_t> again;
  for (const Recall& recall : heard.recalls) again.push_back(recall.ticket);
  EXPECT_EQ(again, lost);
  settle();
  EXPECT_EQ(answer(ticket).at("answer"), "No");
  EXPECT_EQ(answer(ticket).at("windows_lost"), 0);
}

TEST_F(CacheRequestsTest, AWindowThatCannotBeAnsweredIsLostAndToldInTheLog) {
  device = [](const Recall& recall) {
    if (shown(recall, 0, 8) > 0) return Recalled{recall.ticket, {}, "the text has a special token", false};
    return Recalled{recall.ticket, answer_of(5), "", false};
  };
  const std::uint64_t ticket = ask(question({"yard", {}}));
  settle();
  EXPECT_EQ(answer(ticket).at("windows_lost"), 1);
  EXPECT_EQ(answer(ticket).at("answer"), "Yes");
  EXPECT_THAT(heard.warnings,
              ElementsAre("a window of the past was not answered: camera yard of tenant city, question " +
                          std::to_string(ticket) + ": the text has a special token"));
  // One that is only busy is no news.
  heard = {};
  device = [](const Recall& recall) { return Recalled{recall.ticket, {}, "no room", true}; };
  const std::uint64_t busy = ask(question({"yard", {}}));
  settle();
  EXPECT_FALSE(is_told(busy));
  EXPECT_THAT(heard.warnings, IsEmpty());
}

TEST_F(CacheRequestsTest, ACameraWhoseWindowsAreNotAnsweredHasALineAMinute) {
  device = [](const Recall& recall) { return Recalled{recall.ticket, {}, "no such text", false}; };
  const auto lines = [&](const PastCamera& camera) {
    heard.warnings.clear();
    const std::uint64_t ticket = ask(question(camera));
    settle();
    EXPECT_TRUE(answer(ticket).at("answer").is_null());
    return heard.warnings;
  };
  EXPECT_THAT(lines({"yard", {}}), SizeIs(1)) << "of six windows";
  EXPECT_THAT(lines({"yard", {}}), IsEmpty());
  EXPECT_THAT(lines({"gate", "village"}), ElementsAre(HasSubstr("camera gate of tenant village, question ")));
  EXPECT_THAT(lines({"gate", "city"}), SizeIs(1)) << "another tenant's is another camera";
  clock.advance(59s);
  EXPECT_THAT(lines({"yard", {}}), IsEmpty());
  clock.advance(1s);
  // All but the first of 3 questions' windows, and none of other cameras'.
  EXPECT_THAT(lines({"yard", {}}), ElementsAre(::testing::AllOf(
                                       HasSubstr("camera yard of tenant city"), HasSubstr(": no such text"),
                                       HasSubstr("(and 17 times since this was last said)"))));
}

TEST_F(CacheRequestsTest, ACameraThatGoesIsWarnedOfAnew) {
  device = [](const Recall& recall) { return Recalled{recall.ticket, {}, "no such text", false}; };
  const auto lines = [&] {
    heard.warnings.clear();
    ask(question({"gate", "village"}));
    settle();
    return heard.warnings;
  };
  const auto is_first = ElementsAre(::testing::EndsWith(": no such text"));
  const auto watch = [&](const std::string& tenant, base::Duration keep) {
    desk->watch(watch_of_tenant(tenant, "gate", keep));
  };
  watch("village", 24h);
  EXPECT_THAT(lines(), is_first);
  EXPECT_THAT(lines(), IsEmpty());
  watch("village", 24h);
  EXPECT_THAT(lines(), IsEmpty()) << "it goes on";
  desk->end("gate");
  EXPECT_THAT(lines(), is_first) << "it has ended";
  watch("village", 24h);
  EXPECT_THAT(lines(), IsEmpty());
  watch("village", 0h);
  EXPECT_THAT(lines(), IsEmpty()) << "nothing of it is found any more";
  watch("village", 24h);
  EXPECT_THAT(lines(), is_first) << "nothing of it was kept in between";
  watch("city", 24h);
  EXPECT_THAT(lines(), is_first) << "it is somebody else's";
}

TEST_F(CacheRequestsTest, OfAWindowWhoseQuestionWasGivenUpNothingIsSaid) {
  const std::uint64_t ticket = ask(question({"yard", {}}));
  ASSERT_FALSE(heard.recalls.empty());
  const std::uint64_t window = heard.recalls.front().ticket;
  desk->forget(ticket);
  desk->recalled(Recalled{window, {}, "no such text", false});
  hear();
  EXPECT_THAT(heard.warnings, IsEmpty());
}

TEST_F(CacheRequestsTest, AllThatIsThereIsVerifiedOneCameraAtATime) {
  const std::uint64_t ticket = ask(PastVerify{});
  std::vector<history::CameraId> verified;
  while (!heard.to_read.empty()) {
    ASSERT_THAT(heard.to_read, SizeIs(1));
    const PagesToRead wanted = std::exchange(heard.to_read, {}).front();
    EXPECT_THAT(wanted.names, IsEmpty());
    verified.push_back(wanted.camera.value());
    EXPECT_FALSE(is_told(ticket));
    ReadPages pages = read(wanted);
    pages.verified = history::VerifyReport{10, verified.size()};
    desk->read(pages);
    hear();
  }
  EXPECT_THAT(verified, ElementsAre(kGate, kYard, kOther));
  const json told = answer(ticket);
  EXPECT_THAT(cameras(told), ElementsAre("city/gate", "city/yard", "village/gate"));
  EXPECT_EQ(told.at("cameras").at(2).at("damaged"), 3);
  const std::uint64_t one = ask(PastVerify{{{"yard", {}}}});
  settle();
  EXPECT_EQ(answer(one),
            json::parse(R"({"cameras": [{"camera": "yard", "tenant": "city", "whole": 10, "damaged": 0}]})"));
}

TEST_F(CacheRequestsTest, AVerificationThatFailsIsToldAndOneThatIsForgottenIsNot) {
  after_reading = [](ReadPages& pages) {
    pages.verified.reset();
    pages.failure = "the disk is gone";
  };
  const std::uint64_t ticket = ask(PastVerify{});
  settle();
  EXPECT_EQ(last_word(ticket).outcome, PastOutcome::unavailable);
  EXPECT_EQ(last_word(ticket).text, "the disk is gone");
  const std::uint64_t forgotten = ask(PastVerify{});
  desk->forget(forgotten);
  settle();
  EXPECT_FALSE(is_told(forgotten));
  begin(/*with_store=*/false);
  desk->watch(watch_of_tenant("city", "gate"));
  EXPECT_EQ(last_word(ask(PastVerify{})).text, "nothing is kept on a disk (memory.dir)");
}

TEST_F(CacheRequestsTest, AnErasureIsAnsweredWhenNoByteIsLeft) {
  const std::uint64_t ticket = erase(from_begin(0, 40));
  EXPECT_FALSE(is_told(ticket));
  EXPECT_TRUE(heard.wakes_writer);
  // It holds at once.
  EXPECT_EQ(answer(ask(PastList{{{"yard", {}}}})).at("cameras").at(0).at("pages"), 5);
  // A turn that had begun before.
  desk->hear(DiskNews{});
  hear();
  EXPECT_FALSE(is_told(ticket));
  settle();
  const json told = answer(ticket);
  EXPECT_EQ(told.at("finished"), true);
  EXPECT_EQ(told.at("camera"), "yard");
  EXPECT_EQ(told.at("from"), "2026-08-01T10:00:00.000Z");
  EXPECT_GE(told.at("pages").get<int>(), 5);
  EXPECT_TRUE(store.erasures().at(0).finished);
  EXPECT_EQ(store.pages(kYard, from_begin(0, 80)).size(), 5U);
}

TEST_F(CacheRequestsTest, AnErasureThatComesWhileTheWriterIsAtOneWaitsForTheNextTurn) {
  const std::uint64_t first = erase(from_begin(0, 8));
  bool goes_on = false;
  const DiskNews news = writing->turn(goes_on);
  const std::uint64_t second = erase(from_begin(16, 24));
  heard.wakes_writer = false;
  desk->hear(news);
  hear();
  EXPECT_EQ(answer(first).at("finished"), true);
  EXPECT_FALSE(is_told(second));
  EXPECT_TRUE(heard.wakes_writer);
  settle();
  EXPECT_EQ(answer(second).at("finished"), true);
  // One that comes between what the writer looked at and what it finished is of that turn.
  const std::uint64_t third = erase(from_begin(32, 40));
  std::uint64_t fourth = 0;
  store.while_finishing = [&] {
    if (fourth == 0) fourth = erase(from_begin(48, 56));
  };
  settle();
  EXPECT_EQ(answer(third).at("finished"), true);
  EXPECT_EQ(answer(fourth).at("finished"), true);
}

TEST_F(CacheRequestsTest, ADiskThatFailsIsToldToWhoErases) {
  store.finishes = false;
  const std::uint64_t unfinished = erase(from_begin(0, 8));
  settle();
  EXPECT_EQ(last_word(unfinished).outcome, PastOutcome::unavailable);
  EXPECT_EQ(last_word(unfinished).text,
            "nothing of it is told any more, and its bytes are still on the disk: a file cannot be removed");
  EXPECT_THAT(heard.warnings, ElementsAre("what is over could not be removed: a file cannot be removed"));
  // Hours that could not be retired keep no erasure from being finished.
  store.finishes = true;
  store.retires = false;
  writing->retire({{kYard, 1}});
  const std::uint64_t finished = erase(from_begin(8, 16));
  settle();
  EXPECT_EQ(answer(finished).at("finished"), true);
  store.retires = true;
  store.fails = true;
  const std::uint64_t refused = erase(from_begin(16, 24));
  EXPECT_EQ(last_word(refused).outcome, PastOutcome::unavailable);
  EXPECT_EQ(
      last_word(refused).text,
      "nothing of it is told any more until this process ends, and its bytes are still on the disk: the disk "
      "is full");
  settle();
  EXPECT_EQ(answer(ask(PastList{{{"yard", {}}}})).at("cameras").at(0).at("pages"), 7);
}

TEST_F(CacheRequestsTest, WithoutADiskAnErasureIsDoneAtOnce) {
  begin(/*with_store=*/false);
  desk->watch(watch_of_tenant("city", "yard"));
  see(kYard, 0, 80);
  EXPECT_EQ(answer(erase(from_begin(0, 40))).at("pages"), 5);
  EXPECT_EQ(answer(erase(from_begin(0, 40))).at("pages"), 0);
}

TEST_F(CacheRequestsTest, AQuestionAboutWhatIsErasedMeanwhileIsNotAnswered) {
  has_device = false;
  const std::uint64_t about = ask(question({"yard", {}})), other = ask(question({"gate", "city"}));
  const std::uint64_t later = ask(question({"yard", {}}, "Was it dark?", from_begin(48, 80)));
  erase(from_begin(0, 40));
  EXPECT_EQ(last_word(about).outcome, PastOutcome::unavailable);
  EXPECT_EQ(last_word(about).text, "what it was about was erased meanwhile");
  EXPECT_THAT(heard.forgotten, SizeIs(6));
  has_device = true;
  settle();
  EXPECT_EQ(answer(other).at("answer"), "No");
  EXPECT_EQ(answer(later).at("answer"), "No");
}

}  // namespace
}  // namespace vigil::actors
