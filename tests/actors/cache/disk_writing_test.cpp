#include "actors/cache/disk_writing.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/actors/fakes.h"
#include "tests/engine/memory/failing_store.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::actors {
namespace {

using kv::Form;
using memory::testing::kNoon;
using memory::testing::kSecond;
using memory::testing::made_page;
using memory::testing::made_tokens;
using std::chrono_literals::operator""s;

const history::CameraId kGate{"city", "gate"}, kYard{"city", "yard"};
constexpr std::size_t kPage = 64;
constexpr history::WallRange kEver{0, 2 * kNoon};

struct DiskWritingTest : ::testing::Test {
  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 24U};
  std::unique_ptr<history::HistoryStore> inner = history::make_memory_history_store();
  memory::testing::FailingStore store{*inner};
  testing::ManualClock clock;
  memory::PartQueue queue{store, {.part_bytes = 2 * kPage, .part_time = 60s}};
  DiskWriting writing{store, queue, clock};
  std::uint64_t numbers = 0;

  DiskWritingTest() { store.fails = false; }
  void offer(const history::CameraId& camera, double second) {
    EXPECT_TRUE(queue.offer(camera, made_page(++numbers, second), made_tokens(memory, Form::int4, kPage),
                            clock.now()));
  }
  DiskNews turn(bool expected) {
    bool goes_on = !expected;
    DiskNews news = writing.turn(goes_on);
    EXPECT_EQ(goes_on, expected);
    return news;
  }
  std::size_t pages(const history::CameraId& camera) const { return store.pages(camera, kEver).size(); }
};

TEST_F(DiskWritingTest, ATurnWithoutWorkIsNoNews) {
  const DiskNews news = turn(false);
  EXPECT_TRUE(news.written.empty());
  EXPECT_FALSE(news.has_erased);
  EXPECT_EQ(news.failure, "");
  EXPECT_EQ(news.retired, history::Removed{});
}

TEST_F(DiskWritingTest, WritesAPartATurnWhenItIsComplete) {
  offer(kGate, 0);
  EXPECT_TRUE(turn(false).written.empty());
  offer(kGate, 10);
  for (int i = 0; i < 2; ++i) offer(kYard, 10 * i);
  const DiskNews first = turn(true);
  ASSERT_EQ(first.written.size(), 1U);
  EXPECT_EQ(first.written[0].camera, kGate);
  EXPECT_EQ(first.written[0].pages, 2U);
  EXPECT_EQ(first.written[0].bytes, 2 * kPage);
  EXPECT_EQ(turn(false).written.at(0).camera, kYard);
  // Or when it has waited long.
  offer(kGate, 20);
  clock.advance(59s);
  EXPECT_TRUE(turn(false).written.empty());
  clock.advance(1s);
  EXPECT_EQ(turn(false).written.size(), 1U);
  EXPECT_EQ(pages(kGate), 3U);
}

TEST_F(DiskWritingTest, RemovesWhatWasErasedAndWhatIsOver) {
  for (const int second : {-7200, -7190, 0, 10}) offer(kGate, second);
  turn(true);
  turn(false);
  EXPECT_EQ(pages(kGate), 4U);
  store.erase(kGate, {kNoon, kNoon + kSecond});
  writing.retire({{kGate, static_cast<std::uint32_t>(kNoon / 3'600'000'000'000)}});
  const DiskNews news = turn(false);
  EXPECT_TRUE(news.has_erased);
  EXPECT_EQ(news.retired.pages, 2U);
  EXPECT_EQ(news.failure, "");
  EXPECT_EQ(pages(kGate), 1U);
  EXPECT_TRUE(store.erasures().at(0).finished);
  const DiskNews next = turn(false);
  EXPECT_FALSE(next.has_erased);
  EXPECT_EQ(next.retired.pages, 0U) << "once";
}

TEST_F(DiskWritingTest, WhatCannotBeRemovedIsToldAndWritingGoesOn) {
  for (int i = 0; i < 2; ++i) offer(kGate, -7200 + 10 * i);
  turn(false);
  store.erase(kYard, kEver);
  store.finishes = false;
  writing.retire({{kGate, static_cast<std::uint32_t>(kNoon / 3'600'000'000'000)}});
  for (int i = 0; i < 2; ++i) offer(kGate, 10 * i);
  const DiskNews news = turn(false);
  EXPECT_TRUE(news.has_erased);
  EXPECT_EQ(news.failure, "a file cannot be removed");
  EXPECT_EQ(news.written.size(), 1U);
  EXPECT_EQ(pages(kGate), 4U) << "what is over goes with a later turn";
  store.finishes = true;
  const DiskNews next = turn(false);
  EXPECT_EQ(next.failure, "");
  EXPECT_TRUE(store.erasures().at(0).finished);
  EXPECT_EQ(next.retired.pages, 2U);
  store.retires = false;
  writing.retire({{kGate, 0}});
  EXPECT_EQ(turn(false).failure, "the disk is gone");
}

TEST_F(DiskWritingTest, APartThatCannotBeWrittenIsGivenUp) {
  store.fails = true;
  for (const int second : {0, 10, 20, 30}) offer(kGate, second);
  const DiskNews news = turn(true);
  ASSERT_EQ(news.written.size(), 1U);
  EXPECT_EQ(news.written[0].failure, "the disk is full");
  EXPECT_EQ(news.failure, "") << "that is of what is removed";
  store.fails = false;
  EXPECT_EQ(turn(false).written.at(0).failure, "");
  EXPECT_EQ(pages(kGate), 2U);
  EXPECT_EQ(queue.waiting(), 0U);
}

TEST_F(DiskWritingTest, FinishWritesAllThatThereIs) {
  offer(kGate, 0);
  for (const int second : {0, 10, 3600, 7200}) offer(kYard, second);
  store.erase(kGate, {kNoon + 100 * kSecond, kNoon + 101 * kSecond});
  const DiskNews news = writing.finish();
  EXPECT_TRUE(news.has_erased);
  EXPECT_EQ(news.written.size(), 4U) << "an hour a part";
  EXPECT_EQ(pages(kGate), 1U);
  EXPECT_EQ(pages(kYard), 4U);
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_TRUE(writing.finish().written.empty());
}

}  // namespace
}  // namespace vigil::actors
