#include "engine/memory/part_queue.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/memory/failing_store.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::memory {
namespace {

using base::Clock;
using kv::Form;
using std::chrono::minutes;
using testing::kNoon;
using testing::kSecond;
using testing::made_page;
using testing::made_tokens;

const history::CameraId kGate{"city", "gate"}, kYard{"city", "yard"};
const history::WallRange kAll{kNoon - 100'000 * kSecond, kNoon + 100'000 * kSecond};

struct PartQueueTest : ::testing::Test {
  std::unique_ptr<history::HistoryStore> store = history::make_memory_history_store();
  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 30U};
  Clock::TimePoint now{};
  PartQueue::Options options{.most_waiting = 8000, .part_bytes = 1000, .layers = 3, .value_bytes = 100};

  bool offer(PartQueue& queue, const history::CameraId& camera, std::uint64_t number, double second,
             std::size_t bytes = 90, Form form = Form::int4) {
    return queue.offer(camera, made_page(number, second),
                       made_tokens(memory, form, bytes, static_cast<std::uint8_t>(number)), now);
  }
  std::vector<PartQueue::Written> write_all(PartQueue& queue) {
    std::vector<PartQueue::Written> all;
    while (auto written = queue.write_next(now)) all.push_back(std::move(*written));
    return all;
  }
};

TEST_F(PartQueueTest, APartIsWrittenWhenItIsLargeOrOld) {
  PartQueue queue(*store, options);
  for (std::uint64_t number = 1; number <= 11; ++number)
    EXPECT_TRUE(offer(queue, kGate, number, 10.0 * static_cast<double>(number)));
  EXPECT_TRUE(write_all(queue).empty());
  offer(queue, kGate, 12, 120);
  offer(queue, kGate, 13, 130);
  std::vector<PartQueue::Written> written = write_all(queue);
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].pages, 12U);
  EXPECT_EQ(written[0].bytes, 12U * 90);
  EXPECT_EQ(written[0].camera, kGate);
  EXPECT_EQ(written[0].form, static_cast<std::uint8_t>(Form::int4));
  EXPECT_EQ(written[0].wall, (history::WallRange{kNoon + 10 * kSecond, kNoon + 130 * kSecond - 1}));
  EXPECT_EQ(written[0].failure, "");
  EXPECT_EQ(queue.waiting(), 90U);
  EXPECT_EQ(queue.due(), now + minutes(10));
  now += minutes(10) - std::chrono::milliseconds(1);
  EXPECT_TRUE(write_all(queue).empty());
  now += std::chrono::milliseconds(1);
  EXPECT_EQ(write_all(queue).size(), 1U);
  EXPECT_EQ(queue.waiting(), 0U);
  EXPECT_EQ(queue.due(), std::nullopt);
  EXPECT_EQ(store->pages(kGate, kAll).size(), 13U);
}

TEST_F(PartQueueTest, CamerasHoursAndFormsHavePartsOfTheirOwn) {
  PartQueue queue(*store, options);
  offer(queue, kGate, 1, 3590);
  offer(queue, kYard, 1, 3590);
  offer(queue, kGate, 2, 3590, 50, Form::embeddings);
  offer(queue, kGate, 3, 3601);
  EXPECT_EQ(write_all(queue).size(), 1U) << "the hour of the gate's first one is over";
  queue.flush(kYard);
  EXPECT_EQ(write_all(queue).size(), 1U);
  queue.flush(std::nullopt);
  EXPECT_EQ(write_all(queue).size(), 2U);
  const auto pages = store->pages(kGate, kAll);
  ASSERT_EQ(pages.size(), 3U);
  EXPECT_EQ(pages[0].hour + 1, pages[2].hour);
  EXPECT_EQ(pages[1].info.form, static_cast<std::uint8_t>(Form::embeddings));
}

TEST_F(PartQueueTest, LayersGoIntoValuesAsTheyFit) {
  PartQueue queue(*store, options);
  offer(queue, kGate, 1, 0, 90);
  offer(queue, kGate, 2, 10, 240);
  offer(queue, kGate, 3, 20, 300, Form::embeddings);
  queue.offer(kGate, made_page(4, 30), made_tokens(memory, Form::int4, 0), now);
  queue.flush(std::nullopt);
  write_all(queue);
  const auto pages = store->pages(kGate, kAll);
  ASSERT_EQ(pages.size(), 4U);
  using history::Layers;
  EXPECT_EQ(pages[0].values.size(), 1U);
  EXPECT_EQ(pages[0].values[0].layers, (Layers{0, 3}));
  ASSERT_EQ(pages[1].values.size(), 3U) << "of 80 bytes a layer one fits into a value";
  EXPECT_EQ(pages[1].values[2].layers, (Layers{2, 1}));
  EXPECT_EQ(pages[2].values.size(), 1U);
  EXPECT_EQ(pages[3].values[0].bytes, 1U) << "nothing was seen, and that is remembered";
  const std::vector<history::ValueName> names{{2, {1, 1}}};
  const auto values = store->read(kGate, names);
  ASSERT_TRUE(values[0]);
  EXPECT_EQ(values[0].bytes()[0], static_cast<std::byte>(2 + 80));
}

TEST_F(PartQueueTest, WhatWaitsIsBoundedAndTellsHowFarBehindTheDiskIs) {
  PartQueue queue(*store, options);
  std::vector<Pressure> levels{queue.pressure()};
  std::uint64_t number = 1;
  while (offer(queue, kGate, number, 10 * static_cast<double>(number), 500)) {
    ++number;
    if (queue.pressure() != levels.back()) levels.push_back(queue.pressure());
  }
  EXPECT_EQ(levels, (std::vector{Pressure::none, Pressure::coarser, Pressure::embeddings, Pressure::full}));
  EXPECT_EQ(queue.waiting(), 8000U);
  EXPECT_FALSE(offer(queue, kYard, 1, 0, 1));
  EXPECT_TRUE(queue.write_next(now));
  EXPECT_EQ(queue.waiting(), 7000U);
  EXPECT_TRUE(offer(queue, kYard, 1, 0, 1));
  write_all(queue);
  EXPECT_EQ(queue.pressure(), Pressure::none);
  EXPECT_EQ(memory.used(), kernels::HostMemory::rounded(1)) << "what was written is held no longer";
}

// Many cameras have much that waits until it is a part. The disk is not behind for that.
TEST_F(PartQueueTest, WhatIsGatheredHasAQuarterAtMost) {
  PartQueue queue(*store, options);
  std::uint64_t number = 0;
  for (int page = 0; page < 8; ++page)
    for (int camera = 0; camera < 40; ++camera) {
      ++number;
      ASSERT_TRUE(offer(queue, {"city", std::to_string(camera)}, number, 10.0 * page));
      write_all(queue);
      ASSERT_EQ(queue.pressure(), Pressure::none);
      ASSERT_LE(queue.waiting(), 2000U);
    }
  EXPECT_GT(queue.waiting(), 1500U);
}

TEST_F(PartQueueTest, TheLargestPartIsWrittenFirstWhereMuchIsGathered) {
  PartQueue queue(*store, options);
  for (int camera = 0; camera < 20; ++camera) offer(queue, {"city", std::to_string(camera)}, 1, 0);
  offer(queue, kGate, 1, 0);
  offer(queue, kGate, 2, 10);
  EXPECT_TRUE(write_all(queue).empty());
  offer(queue, kGate, 3, 20);
  const std::vector<PartQueue::Written> written = write_all(queue);
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].camera, kGate);
  EXPECT_EQ(written[0].pages, 3U);
  EXPECT_EQ(queue.waiting(), 1800U);
}

TEST_F(PartQueueTest, WhatIsOnItsWayIsFound) {
  testing::FailingStore looking(*store);
  looking.fails = false;
  PartQueue queue(looking, options);
  std::size_t seen = 0;
  looking.while_putting = [&] { seen = queue.pages(kGate, kAll).size(); };
  for (std::uint64_t number = 1; number <= 3; ++number)
    offer(queue, kGate, number, 10.0 * static_cast<double>(number));
  offer(queue, kYard, 1, 20);
  const auto pages = queue.pages(kGate, {kNoon + 25 * kSecond, kNoon + 31 * kSecond});
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_EQ(pages[0].info.number, 2U);
  EXPECT_EQ(pages[0].tokens.form, Form::int4);
  EXPECT_EQ(pages[0].tokens.size, 90U);
  EXPECT_EQ(pages[0].tokens.bytes.get()[0], made_tokens(memory, Form::int4, 90, 2).bytes.get()[0]);
  queue.flush(kGate);
  write_all(queue);
  EXPECT_EQ(seen, 3U) << "also while it is being written";
  EXPECT_TRUE(queue.pages(kGate, kAll).empty());
}

TEST_F(PartQueueTest, AnErasureHoldsForWhatWaits) {
  PartQueue queue(*store, options);
  for (std::uint64_t number = 1; number <= 4; ++number) {
    offer(queue, kGate, number, 10.0 * static_cast<double>(number));
    offer(queue, kYard, number, 10.0 * static_cast<double>(number));
  }
  EXPECT_EQ(queue.erase(kGate, {kNoon + 25 * kSecond, kNoon + 31 * kSecond}).size(), 2U);
  EXPECT_EQ(queue.waiting(), 6 * 90U);
  queue.flush(std::nullopt);
  write_all(queue);
  const auto pages = store->pages(kGate, kAll);
  ASSERT_EQ(pages.size(), 2U);
  EXPECT_EQ(pages[0].info.number, 1U);
  EXPECT_EQ(pages[1].info.number, 4U);
  EXPECT_EQ(store->pages(kYard, kAll).size(), 4U);
  // And for what comes later, by the store.
  store->erase(kGate, {kNoon + 95 * kSecond, kNoon + 96 * kSecond});
  offer(queue, kGate, 5, 90);
  offer(queue, kGate, 6, 100);
  queue.flush(kGate);
  const auto written = write_all(queue);
  ASSERT_EQ(written.size(), 1U);
  EXPECT_EQ(written[0].erased, 1U);
  EXPECT_EQ(written[0].pages, 1U);
  EXPECT_TRUE(queue.erase(kGate, kAll).empty());
}

TEST_F(PartQueueTest, APartThatFailsIsGivenUpAndTheNextOneIsTried) {
  testing::FailingStore failing(*store);
  PartQueue queue(failing, options);
  offer(queue, kGate, 1, 0);
  queue.flush(kGate);
  const auto written = queue.write_next(now);
  ASSERT_TRUE(written);
  EXPECT_EQ(written->failure, "the disk is full");
  EXPECT_EQ(written->pages, 0U);
  EXPECT_EQ(queue.waiting(), 0U);
  failing.fails = false;
  offer(queue, kGate, 2, 10);
  queue.flush(kGate);
  EXPECT_EQ(queue.write_next(now)->failure, "");
  EXPECT_EQ(store->pages(kGate, kAll).size(), 1U);
}

TEST_F(PartQueueTest, NonsenseIsRefused) {
  PartQueue queue(*store, options);
  history::PageInfo none = made_page(1, 0);
  none.patches.clear();
  EXPECT_THROW(queue.offer(kGate, none, made_tokens(memory, Form::int4, 90), now), std::invalid_argument);
  EXPECT_THROW(queue.offer(kGate, made_page(1, -4e9), made_tokens(memory, Form::int4, 90), now),
               std::invalid_argument);
  EXPECT_EQ(queue.waiting(), 0U);
  PartQueue::Options bad = options;
  bad.layers = 0;
  EXPECT_THROW(PartQueue(*store, bad), std::invalid_argument);
}

// Those who offer and the one who writes do not wait for each other's locks for ever.
TEST_F(PartQueueTest, ManyOfferWhileOneWrites) {
  options.most_waiting = 1 << 20;
  PartQueue queue(*store, options);
  std::atomic<bool> over = false;
  std::thread other([&] {
    while (!over || queue.waiting() > 0) {
      if (over) queue.flush(std::nullopt);
      queue.write_next(now);
    }
  });
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&, i] {
      const history::CameraId camera{"city", std::to_string(i)};
      for (std::uint64_t number = 1; number <= 300; ++number)
        queue.offer(camera, made_page(number, static_cast<double>(number)),
                    made_tokens(memory, Form::int4, 90), now);
    });
  for (std::thread& thread : threads) thread.join();
  over = true;
  other.join();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(store->pages({"city", std::to_string(i)}, kAll).size(), 300U);
}

}  // namespace
}  // namespace vigil::memory
