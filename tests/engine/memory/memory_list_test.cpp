// What is listed of what cameras remember.
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/memory/memory.h"
#include "tests/engine/memory/failing_store.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::memory {
namespace {

using kv::Form;
using std::chrono::hours;
using testing::kNoon;
using testing::kSecond;

const history::CameraId kYard{"city", "yard"}, kDoor{"village", "door"}, kRoof{"city", "roof"};
constexpr std::size_t kPage = 100;
/// All of it was seen by then.
constexpr std::int64_t kNow = kNoon + 3 * 3600 * kSecond;

struct MemoryListTest : ::testing::Test {
  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  std::unique_ptr<history::HistoryStore> store = history::make_memory_history_store();
  Memory::Options options;
  std::unique_ptr<Memory> remembered;

  MemoryListTest() {
    // A page counts as its block of memory does.
    options.host_bytes = 3 * kernels::HostMemory::rounded(kPage);
    options.host = {{Form::fp8, hours(2)}};
    options.disk = {{Form::int4, hours(24)}, {Form::embeddings, hours(48)}};
    begin(true);
  }
  void begin(bool with_store) {
    remembered = std::make_unique<Memory>(with_store ? store.get() : nullptr, options);
  }
  void take(const history::CameraId& camera, double second) {
    FreshPage page;
    page.camera = camera;
    page.info = testing::made_page(0, second);
    for (const Form form : remembered->wanted())
      page.forms.push_back(testing::made_tokens(memory, form, kPage));
    remembered->take(std::move(page), {});
  }
  void write() {
    remembered->queue()->flush(std::nullopt);
    while (const auto written = remembered->queue()->write_next({})) remembered->wrote(*written);
  }
};

TEST_F(MemoryListTest, NothingIsListedOfNobody) {
  EXPECT_TRUE(remembered->list(kNow).empty());
  begin(false);
  EXPECT_TRUE(remembered->list(kNow).empty());
  remembered->watch(kYard, hours(24));
  remembered->leave(kYard);
  EXPECT_TRUE(remembered->list(kNow).empty()) << "neither watched, nor has it pages";
}

TEST_F(MemoryListTest, CamerasThatAreWatchedOrHavePagesAreListedByTenantAndName) {
  remembered->watch(kDoor, hours(3));
  remembered->watch(kYard, hours(24));
  remembered->watch(kRoof, hours(5));
  remembered->leave(kRoof);
  for (const int second : {10, 20, 30, 40}) take(kYard, second);
  write();
  const std::vector<Memory::Summary> list = remembered->list(kNow);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].camera, kYard);
  EXPECT_TRUE(list[0].is_watched);
  EXPECT_EQ(list[0].keep, hours(24));
  EXPECT_EQ(list[0].pages, 4U) << "each counts once, in however many forms it is, and wherever";
  EXPECT_EQ(list[0].host_bytes, 3 * kPage);
  EXPECT_EQ(list[0].disk_bytes, 8 * kPage) << "four pages in two forms";
  EXPECT_EQ(list[0].wall, (history::WallRange{kNoon + 10 * kSecond, kNoon + 50 * kSecond - 1}));
  EXPECT_EQ(list[0].forms, (std::vector{Form::fp8, Form::int4, Form::embeddings}));
  EXPECT_EQ(list[1].camera, kDoor);
  EXPECT_TRUE(list[1].is_watched);
  EXPECT_EQ(list[1].keep, hours(3));
  EXPECT_EQ(list[1].pages, 0U);
  EXPECT_EQ(list[1].host_bytes + list[1].disk_bytes, 0U);
  EXPECT_EQ(list[1].wall, std::nullopt);
  EXPECT_TRUE(list[1].forms.empty());
}

TEST_F(MemoryListTest, TheNextProcessListsWhatTheDiskHas) {
  remembered->watch(kYard, hours(24));
  for (const int second : {10, 20}) take(kYard, second);
  write();
  take(kYard, 30);
  begin(true);
  const std::vector<Memory::Summary> list = remembered->list(kNow);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].camera, kYard);
  EXPECT_FALSE(list[0].is_watched);
  EXPECT_EQ(list[0].pages, 2U);
  EXPECT_EQ(list[0].host_bytes, 0U);
  EXPECT_EQ(list[0].disk_bytes, 4 * kPage);
  EXPECT_EQ(list[0].wall, (history::WallRange{kNoon + 10 * kSecond, kNoon + 30 * kSecond - 1}));
  EXPECT_EQ(list[0].forms, (std::vector{Form::int4, Form::embeddings}));
}

// A disk that takes no erasure: of the hour in which it lies, nothing is told.
TEST_F(MemoryListTest, WhatTheDiskDidNotEraseIsNotListed) {
  testing::FailingStore failing(*store);
  failing.fails = false;
  remembered = std::make_unique<Memory>(&failing, options);
  remembered->watch(kYard, hours(24));
  take(kYard, 10);
  take(kYard, 3610);
  write();
  failing.fails = true;
  EXPECT_THROW(remembered->erase(kYard, {0, kNoon + 15 * kSecond}, kNoon * 2), history::HistoryError);
  const Memory::Summary left = remembered->list(kNow).front();
  EXPECT_EQ(left.pages, 1U);
  EXPECT_EQ(left.disk_bytes, 2 * kPage);
  EXPECT_EQ(left.wall, (history::WallRange{kNoon + 3610 * kSecond, kNoon + 3620 * kSecond - 1}));
}

// A page that the disk did not get, though it has younger ones.
TEST_F(MemoryListTest, PagesOfTheHostAloneAreListed) {
  remembered->watch(kYard, hours(24));
  take(kYard, 10);
  take(kYard, 7210);
  write();
  const history::Expiry over[] = {{kYard, static_cast<std::uint32_t>(kNoon / (3600 * kSecond)) + 1}};
  store->retire(over);
  EXPECT_EQ(remembered->list(kNow).front().pages, 2U);
  EXPECT_EQ(remembered->list(kNow).front().disk_bytes, 2 * kPage);
}

TEST_F(MemoryListTest, WhatIsErasedIsNotListed) {
  remembered->watch(kYard, hours(24));
  for (const int second : {10, 20, 30}) take(kYard, second);
  write();
  remembered->erase(kYard, {kNoon + 35 * kSecond, kNoon + 100 * kSecond}, kNoon + 200 * kSecond);
  ASSERT_EQ(remembered->list(kNow).size(), 1U);
  const Memory::Summary left = remembered->list(kNow).front();
  EXPECT_EQ(left.pages, 2U);
  EXPECT_EQ(left.host_bytes, 2 * kPage);
  EXPECT_EQ(left.disk_bytes, 4 * kPage);
  EXPECT_EQ(left.wall, (history::WallRange{kNoon + 10 * kSecond, kNoon + 30 * kSecond - 1}));
  remembered->erase(kYard, {0, kNoon * 2}, kNoon + 200 * kSecond);
  EXPECT_EQ(remembered->list(kNow).front().pages, 0U);
  remembered->leave(kYard);
  EXPECT_TRUE(remembered->list(kNow).empty());
}

}  // namespace
}  // namespace vigil::memory
