#include "actors/cache/cache_actor.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/cache/cache_world.h"

namespace vigil::actors {
namespace {

using namespace testing;
using kv::Form;
using nlohmann::json;
using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

TEST_F(CacheActorTest, QuestionsWaitForADevice) {
  begin();
  see(0, 80);
  Asker& one = asker();
  ask(one, 7, question());
  pass(5s);
  EXPECT_THAT(one.replies, IsEmpty());
  Device& device = join("cuda:0");
  EXPECT_THAT(device.wants, ElementsAre(ElementsAre(Form::fp8, Form::int4)));
  ASSERT_THAT(device.recalls, SizeIs(6));
  answer(device);
  EXPECT_EQ(last(one).at("answer"), "No");
  for (const PastReplyPtr& reply : one.replies) EXPECT_EQ(reply->ticket, 7U) << "his own name for it";
  EXPECT_EQ(one.replies.front()->outcome, PastOutcome::progress);
  EXPECT_THAT(one.replies, SizeIs(6 + 2 + 1));
}

TEST_F(CacheActorTest, WhoseTimeIsOverIsToldSo) {
  begin();
  see(0, 80);
  Asker& one = asker();
  ask(one, 7, question(), clock_.now() + 2s);
  pass(1s);
  EXPECT_THAT(one.replies, IsEmpty());
  pass(1s);
  pass(250ms);
  ASSERT_THAT(one.replies, SizeIs(1));
  EXPECT_EQ(one.replies[0]->outcome, PastOutcome::too_late);
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("vigil_past_questions_total{outcome=\"too_late\"}")))
      << "whoever has the socket counts it";
  EXPECT_EQ(one.replies[0]->ticket, 7U);
  EXPECT_THAT(join("cuda:0").recalls, IsEmpty()) << "nobody waits for them";
}

TEST_F(CacheActorTest, WhoWaitsAtTheEndIsToldSo) {
  begin();
  see(0, 80);
  Asker& one = asker();
  ask(one, 7, question());
  stop();
  ASSERT_THAT(one.replies, SizeIs(1));
  EXPECT_EQ(one.replies[0]->outcome, PastOutcome::unavailable);
  EXPECT_EQ(one.replies[0]->text, "this process ends");
}

TEST_F(CacheActorTest, TwoAskersMayCallTheirQuestionsAlike) {
  begin();
  see(0, 80);
  Asker &one = asker(), &two = asker();
  Device& device = join("cuda:0");
  ask(one, 1, question());
  ask(two, 1, PastList{});
  ask(two, 2, AskedCache::question({"nowhere", {}}));
  EXPECT_EQ(two.replies.at(1)->text, "nothing is remembered of a camera nowhere");
  EXPECT_EQ(two.replies.at(1)->ticket, 2U);
  EXPECT_THAT(two.replies, SizeIs(2));
  answer(device);
  EXPECT_EQ(last(one).at("answer"), "No");
  EXPECT_THAT(two.replies, SizeIs(2));
}

TEST_F(CacheActorTest, WhatADeviceTakesWithItGoesToAnother) {
  begin();
  see(0, 80);
  Device &first = join("cuda:0"), &second = join("cuda:1");
  Asker& one = asker();
  ask(one, 1, question());
  EXPECT_THAT(first.recalls, SizeIs(3)) << "each has as many";
  EXPECT_THAT(second.recalls, SizeIs(3));
  caf::anon_send_exit(first.who, caf::exit_reason::kill);
  settle();
  EXPECT_THAT(second.recalls, SizeIs(3));
  pass(250ms);
  EXPECT_THAT(second.recalls, SizeIs(6));
  // The last one, too: then they wait.
  caf::anon_send_exit(second.who, caf::exit_reason::kill);
  settle();
  pass(250ms);
  pass(250ms);
  Device& third = join("cuda:2");
  EXPECT_THAT(third.recalls, SizeIs(6));
  answer(third);
  EXPECT_EQ(last(one).at("answer"), "No");
  EXPECT_EQ(last(one).at("windows_lost"), 0);
}

TEST_F(CacheActorTest, AllDevicesShowWhatAQuestionAboutThePresentNeeds) {
  begin();
  see(0, 80);
  Asker& one = asker();
  ask(one, 1, question(100));
  Device &first = join("cuda:0"), &second = join("cuda:1");
  EXPECT_THAT(first.recalls, SizeIs(6)) << "nobody was there to wait for";
  const auto answer_all = [&] {
    while (!first.recalls.empty() || !second.recalls.empty()) {
      answer(first);
      answer(second);
    }
  };
  answer_all();
  EXPECT_EQ(last(one).at("answer"), "No");
  pass(1s);
  ask(one, 2, question(100));
  ASSERT_THAT(first.shows, SizeIs(1));
  ASSERT_THAT(second.shows, SizeIs(1));
  EXPECT_EQ(first.shows[0]->camera, "gate");
  see(80, 96);
  shown(first);
  shown(first);
  EXPECT_THAT(first.recalls, IsEmpty()) << "the other one has yet to say so";
  shown(second);
  EXPECT_THAT(first.recalls, Not(IsEmpty()));
  answer_all();
  EXPECT_EQ(one.replies.back()->ticket, 2U);
  EXPECT_GT(last(one).at("coverage").at("share"), 0.9);
  // One that ends has nothing more to show.
  pass(1s);
  ask(one, 3, question(100));
  ASSERT_THAT(first.shows, SizeIs(2));
  shown(first);
  EXPECT_THAT(first.recalls, IsEmpty());
  caf::anon_send_exit(second.who, caf::exit_reason::kill);
  settle();
  EXPECT_THAT(first.recalls, Not(IsEmpty()));
  answer(first);
  EXPECT_EQ(one.replies.back()->ticket, 3U);
  EXPECT_EQ(last(one).at("answer"), "No");
}

TEST_F(CacheActorTest, ADeviceThatShowsNothingIsNotWaitedForLong) {
  begin();
  see(0, 80);
  Device& device = join("cuda:0");
  Asker& one = asker();
  ask(one, 1, question(100));
  for (int i = 0; i < 7; ++i) pass(250ms);
  EXPECT_THAT(device.recalls, IsEmpty());
  pass(250ms);
  EXPECT_THAT(device.recalls, SizeIs(6));
  // Too late.
  shown(device);
  EXPECT_THAT(device.recalls, SizeIs(6));
}

TEST_F(CacheActorTest, WhatNobodyWaitsForIsForgottenEverywhere) {
  begin();
  see(0, 80);
  Asker &one = asker(), &two = asker();
  ask(one, 1, question());
  caf::send_as(one.who, cache_, forget_atom_v, std::uint64_t{1});
  settle();
  Device& device = join("cuda:0");
  EXPECT_THAT(device.recalls, IsEmpty()) << "those that waited";
  ask(one, 2, question());
  std::vector<std::uint64_t> tickets;
  for (const RecallPtr& each : device.recalls) tickets.push_back(each->ticket);
  ASSERT_THAT(tickets, SizeIs(6));
  // Somebody else has no say in it.
  caf::send_as(two.who, cache_, forget_atom_v, std::uint64_t{2});
  settle();
  EXPECT_THAT(device.forgotten, IsEmpty());
  caf::send_as(one.who, cache_, forget_atom_v, std::uint64_t{2});
  settle();
  EXPECT_EQ(device.forgotten, tickets);
  answer(device);
  EXPECT_THAT(one.replies, IsEmpty());
}

TEST_F(CacheActorTest, ReadersReadWhatTheDiskHas) {
  begin();
  see(0, 80);
  stop();
  EXPECT_TRUE(has_ended());
  ended_ = false;
  begin();
  Device& device = join("cuda:0");
  Asker& one = asker();
  ask(one, 1, question());
  ASSERT_FALSE(device.recalls.empty());
  EXPECT_EQ(device.recalls.front()->what.pages.front().form, Form::int4);
  answer(device);
  EXPECT_EQ(last(one).at("bytes"), json::parse(R"({"host": 0, "disk": 640})"));
  ask(one, 2, PastVerify{});
  EXPECT_EQ(last(one).at("cameras").at(0).at("whole"), 10);
}

TEST_F(CacheActorTest, APageThatTheDiskHasInTwoFormsIsVerifiedAsOne) {
  options_.memory.disk = {{Form::fp8, hours(48)}, {Form::int4, hours(48)}};
  begin();
  see(0, 80);
  stop();
  begin();
  EXPECT_EQ(store_.list().at(0).pages, 20U) << "two of each";
  Asker& one = asker();
  ask(one, 1, PastVerify{});
  EXPECT_EQ(last(one).at("cameras").at(0).at("whole"), 10);
  EXPECT_EQ(last(one).at("cameras").at(0).at("damaged"), 0);
}

// What it was to read is as good as damaged; nobody waits for it until his time is over.
TEST_F(CacheActorTest, WhatAReaderTakesWithItIsUnread) {
  begin();
  see(0, 80);
  stop();
  begin();
  Device& device = join("cuda:0");
  Asker& one = asker();
  store_.while_reading = [] { throw 7; };
  ask(one, 1, question(40));
  EXPECT_EQ(last(one).at("answer"), nullptr);
  EXPECT_EQ(last(one).at("coverage").at("share"), 0);
  EXPECT_EQ(last(one).at("coverage").at("gaps").at(0).at("why"), "damaged");
  EXPECT_THAT(log_.str(), HasSubstr("cache_reader: failed"));
  // The other one goes on.
  store_.while_reading = {};
  ask(one, 2, question());
  answer(device);
  EXPECT_EQ(last(one).at("bytes").at("disk"), 640);
  EXPECT_EQ(last(one).at("coverage").at("share"), 1);
  // Then there is none.
  store_.while_reading = [] { throw 7; };
  ask(one, 3, PastVerify{});
  EXPECT_EQ(one.replies.back()->outcome, PastOutcome::unavailable);
  EXPECT_EQ(one.replies.back()->text, "its reader has ended");
  store_.while_reading = {};
  ask(one, 4, question(40));
  EXPECT_EQ(last(one).at("answer"), nullptr);
  EXPECT_EQ(last(one).at("coverage").at("share"), 0);
  stop();
  EXPECT_TRUE(has_ended());
}

TEST_F(CacheActorTest, TheWriterWritesWhatHasWaitedAndErasesWhatIsToGo) {
  begin();
  see(0, 80);
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 80)), IsEmpty());
  pass(9min);
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 80)), IsEmpty());
  pass(1min);
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 80)), SizeIs(10));
  Asker& one = asker();
  ask(one, 1, PastErasure{{"gate", {}}, from_begin(0, 40)});
  EXPECT_EQ(last(one).at("finished"), true);
  EXPECT_TRUE(store_.erasures().at(0).finished);
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 80)), SizeIs(5));
  // What is over goes by itself.
  clock_.jump(hours(26));
  pass(11s);
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 80)), IsEmpty());
  store_.finishes = false;
  ask(one, 2, PastErasure{{"gate", {}}, from_begin(0, 40)});
  EXPECT_EQ(last(one).at("finished"), true) << "given again, it is done already";
  EXPECT_THAT(store_.erasures(), SizeIs(1));
  ask(one, 3, PastErasure{{"gate", {}}, from_begin(40, 80)});
  EXPECT_EQ(one.replies.back()->outcome, PastOutcome::unavailable);
  EXPECT_THAT(log_.str(),
              HasSubstr("[warning] cache: what is over could not be removed: a file cannot be removed"));
}

TEST_F(CacheActorTest, ACameraThatEndsIsWrittenAtOnce) {
  begin();
  see(0, 80);
  caf::anon_send(cache_, end_atom_v, std::string("gate"));
  settle();
  EXPECT_THAT(store_.pages(kGate, from_begin(0, 80)), SizeIs(10));
  Asker& one = asker();
  ask(one, 1, PastList{});
  EXPECT_EQ(last(one).at("cameras").at(0).at("watched"), false);
}

TEST_F(CacheActorTest, DevicesHearWhatIsWantedWhenThatChanges) {
  options_.memory.parts = {.most_waiting = 1024, .part_bytes = 64};
  store_.fails = true;
  begin();
  Device& device = join("cuda:0");
  see(0, 128);
  ASSERT_THAT(device.wants, SizeIs(3));
  EXPECT_THAT(device.wants[1], ElementsAre(Form::fp8)) << "the disk is behind";
  EXPECT_THAT(device.wants[2], ElementsAre(Form::fp8, Form::int4))
      << "and has given up what it could not write";
  EXPECT_THAT(log_.str(), HasSubstr("cache: what camera gate saw was not written: the disk is full"));
}

}  // namespace
}  // namespace vigil::actors
