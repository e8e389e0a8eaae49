// What of a camera's settings travels, and how those who get it keep it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/messages/watch_book.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;

TEST(WatchSettings, HaveWhatThePipelineNeeds) {
  const auto gate = camera("gate");
  gate->stream.fps = 5;
  gate->stream.window.memory = 10min;
  gate->labels["zone"] = "dock";
  const WatchSettings watch = watch_of(*gate, 7);
  EXPECT_EQ(watch.ref(), (WatchRef{"gate", 7}));
  EXPECT_EQ(watch.tenant, "north");
  EXPECT_EQ(watch.labels, gate->labels);
  EXPECT_EQ(watch.rules, gate->rules);
  EXPECT_EQ(watch.window, gate->stream.window);
  EXPECT_EQ(watch.window.memory, 10min);
  EXPECT_EQ(watch.fps, 5);
  EXPECT_TRUE(watch.lossless) << "a file that is played as fast as it can be answered";
  EXPECT_FALSE(watch_of(*camera("gate", config::Pace::realtime)).lossless);
  EXPECT_FALSE(watch_of(*camera("gate", config::Pace::fast, "rtsp://h/1")).lossless);
}

TEST(WatchSettings, ARuleIsSnoozedAsLongAsItsCameraIs) {
  const base::Clock::WallTime soon(1h);
  const auto gate = camera("gate");
  EXPECT_EQ(watch_of(*gate).rules[0].snooze_until, std::nullopt);
  gate->snooze_until = soon;
  EXPECT_EQ(watch_of(*gate).rules[0].snooze_until, soon);
  gate->rules[0].snooze_until = soon + 1h;
  EXPECT_EQ(watch_of(*gate).rules[0].snooze_until, soon + 1h) << "the later of both";
}

TEST(WatchBook, FindsWhatItWasTold) {
  WatchBook book;
  EXPECT_EQ(book.find({"gate", 1}), nullptr);
  EXPECT_EQ(book.newest("gate"), nullptr);
  const WatchPtr first = watch("gate", 1);
  const WatchPtr second = watch("gate", 2);
  EXPECT_TRUE(book.put(first));
  EXPECT_TRUE(book.put(second));
  EXPECT_TRUE(book.put(second)) << "again";
  EXPECT_EQ(book.find({"gate", 1}), first);
  EXPECT_EQ(book.find({"gate", 2}), second);
  EXPECT_EQ(book.newest("gate"), second);
  EXPECT_EQ(book.find({"gate", 3}), nullptr) << "nobody told it";
  EXPECT_EQ(book.find({"yard", 1}), nullptr);
  EXPECT_FALSE(book.put(nullptr));
}

TEST(WatchBook, LetsGoOfWhatNothingRefersToAnyMore) {
  WatchBook book;
  for (const std::uint64_t version : {1U, 2U, 3U}) book.put(watch("gate", version));
  book.put(watch("yard", 1));
  EXPECT_EQ(book.refer({"gate", 2})->version, 2U);
  EXPECT_EQ(book.size(), 3U);
  EXPECT_EQ(book.find({"gate", 1}), nullptr);
  EXPECT_NE(book.find({"gate", 3}), nullptr) << "what refers to it is still to come";
  EXPECT_NE(book.find({"yard", 1}), nullptr) << "another camera's";
  EXPECT_FALSE(book.put(watch("gate", 1))) << "it comes too late for anything";
  EXPECT_EQ(book.refer({"gate", 1}), nullptr);
  EXPECT_EQ(book.refer({"gate", 9}), nullptr);
  EXPECT_EQ(book.refer({"gate", 2})->version, 2U) << "what it does not know changes nothing";
}

TEST(WatchBook, ACameraThatIsForgottenStartsFromNothing) {
  WatchBook book;
  book.put(watch("gate", 5));
  book.refer({"gate", 5});
  book.forget("gate");
  EXPECT_EQ(book.size(), 0U);
  EXPECT_EQ(book.find({"gate", 5}), nullptr);
  EXPECT_TRUE(book.put(watch("gate", 1)));
}

}  // namespace
}  // namespace vigil::actors
