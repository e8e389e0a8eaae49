// One suite for all stores of history, and the same random operations on two of them.
#include "engine/kv/history/history_store.h"

#include <memory>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/engine/kv/history/history_pages.h"
#include "tests/temporary_folder.h"

namespace vigil::history {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_whole;
using ::testing::IsEmpty;
using testing::kFirstHour;
using testing::kGate;
using testing::kHour;
using testing::kSecond;
using testing::kYard;
using testing::missing;
using testing::part_of;
using testing::shown;
using ::testing::SizeIs;

constexpr std::int64_t kStart = kFirstHour * kHour;
constexpr WallRange kAll{INT64_MIN, INT64_MAX};

class HistoryStoreTest : public ::testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<HistoryStore> make() {
    if (GetParam() == "memory"s) return make_memory_history_store();
    HistoryOptions options;
    if (GetParam() == "sealed"s) options.master = master_;
    return open_history_store(folder_.path() / "history", options);
  }
  /// As after a start; what is in memory alone stays as it is.
  void start_again() {
    if (GetParam() == "memory"s) return;
    store_.reset();
    store_ = make();
  }
  static std::vector<std::uint64_t> numbers(const std::vector<KeptPage>& pages) {
    std::vector<std::uint64_t> result;
    for (const KeptPage& page : pages) result.push_back(page.info.number);
    return result;
  }

  const SecretKey master_ = SecretKey::random();
  TemporaryFolder folder_;
  std::unique_ptr<HistoryStore> store_ = make();
};

TEST_P(HistoryStoreTest, KeepsPagesAndWhatIsSaidOfThem) {
  const auto given = part_of(kGate, kFirstHour, 0, 1, 5);
  EXPECT_EQ(store_->put(given.part), (PutReport{5, 0}));
  for (int start = 0; start < 2; ++start) {
    const auto pages = store_->pages(kGate, kAll);
    ASSERT_THAT(pages, SizeIs(5));
    for (std::size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(pages[i].info, given.part.pages[i].info);
      EXPECT_EQ(pages[i].hour, kFirstHour);
      EXPECT_THAT(pages[i].values,
                  ElementsAre(KeptValue{{0, 2}, 3000, false}, KeptValue{{2, 2}, 3000, false}));
      EXPECT_TRUE(is_whole(*store_, kGate, i + 1, 0));
      EXPECT_TRUE(is_whole(*store_, kGate, i + 1, 2));
    }
    EXPECT_EQ(store_->last_page(kGate), 5U);
    EXPECT_EQ(store_->last_page(kYard), 0U);
    EXPECT_EQ(store_->verify(std::nullopt), (VerifyReport{5, 0}));
    start_again();
  }
}

TEST_P(HistoryStoreTest, ReadsManyAtOnceAndSaysWhatIsNotThere) {
  store_->put(part_of(kGate, kFirstHour, 0, 1, 3).part);
  const std::vector<ValueName> names = {{2, {2, 2}}, {9, {0, 2}}, {1, {0, 2}}, {1, {0, 3}}};
  const auto values = store_->read(kGate, names);
  ASSERT_THAT(values, SizeIs(4));
  EXPECT_TRUE(values[0]);
  EXPECT_EQ(values[1].missing(), Missing::absent);
  EXPECT_TRUE(values[2]);
  EXPECT_EQ(values[3].missing(), Missing::absent) << "of other layers";
  EXPECT_THAT(values[3].bytes(), IsEmpty());
  EXPECT_THAT(store_->read(kYard, names), SizeIs(4));
  EXPECT_THAT(store_->read(kGate, {}), IsEmpty());
}

TEST_P(HistoryStoreTest, ASmallerLastValueAndTheLargestAreKept) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{65536}, std::size_t{4} << 20U}) {
    const std::uint64_t page = store_->last_page(kGate) + 1;
    store_->put(part_of(kGate, kFirstHour, static_cast<int>(10 * page), page, 1, bytes, 2).part);
    EXPECT_TRUE(is_whole(*store_, kGate, page, 0, bytes)) << bytes;
  }
}

TEST_P(HistoryStoreTest, CamerasOfTwoTenantsNeverMeet) {
  const CameraId others[] = {
      {"south", "gate"}, {"north", "gate\0"s}, {"north\0gate"s, ""}, {"", "north/gate"}, {"", ""}};
  store_->put(part_of(kGate, kFirstHour, 0, 1, 2).part);
  for (const CameraId& other : others) store_->put(part_of(other, kFirstHour, 0, 1, 2).part);
  start_again();
  store_->erase(kGate, kAll);
  store_->finish_erasures();
  EXPECT_EQ(missing(*store_, kGate, 1), Missing::absent);
  for (const CameraId& other : others) EXPECT_TRUE(is_whole(*store_, other, 1, 0)) << other.tenant;
  EXPECT_THAT(store_->list(), SizeIs(5));
}

TEST_P(HistoryStoreTest, FindsPagesByTheirTime) {
  store_->put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  store_->put(part_of(kGate, kFirstHour + 1, 0, 7, 2).part);
  EXPECT_THAT(numbers(store_->pages(kGate, {kStart + 20 * kSecond, kStart + 30 * kSecond})),
              ElementsAre(3, 4));
  EXPECT_THAT(numbers(store_->pages(kGate, {kStart + 29 * kSecond, kStart + 30 * kSecond - 1})),
              ElementsAre(3));
  EXPECT_THAT(numbers(store_->pages(kGate, {kStart + kHour, kAll.to})), ElementsAre(7, 8));
  EXPECT_THAT(store_->pages(kGate, {kAll.from, kStart - 1}), IsEmpty());
}

TEST_P(HistoryStoreTest, WhatMakesNoSenseIsRefusedAsAWhole) {
  store_->put(part_of(kGate, kFirstHour, 0, 4, 2).part);
  const auto refused = [&](auto change) -> std::string {
    auto given = part_of(kGate, kFirstHour, 40, 6, 2);
    change(given.part);
    try {
      store_->put(given.part);
      return "taken";
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
  };
  EXPECT_THAT(refused([](GivenPart& p) { p.pages.clear(); }), HasSubstr("no pages"));
  EXPECT_THAT(refused([](GivenPart& p) { p.pages[0].values.clear(); }),
              HasSubstr("page 6: it has no values"));
  EXPECT_THAT(refused([](GivenPart& p) { std::swap(p.pages[0], p.pages[1]); }), HasSubstr("do not ascend"));
  EXPECT_THAT(refused([](GivenPart& p) { p.pages[1].info.bytes = 5; }),
              HasSubstr("said to have 5 bytes, and has 6000"));
  EXPECT_THAT(refused([](GivenPart& p) {
                p.pages[1].values[1].layers = {0, 2};
              }),
              HasSubstr("layers do not ascend"));
  EXPECT_THAT(refused([](GivenPart& p) { p.pages[1].values[1].bytes = {}; }), HasSubstr("without bytes"));
  EXPECT_THAT(refused([](GivenPart& p) { p.pages[0].info.patches.clear(); }), HasSubstr("no patches"));
  EXPECT_THAT(refused([](GivenPart& p) { p.camera.camera.assign(2000, 'x'); }), HasSubstr("too long"));
  EXPECT_THAT(refused([](GivenPart& p) { p.pages[0].info.number = 5; }), HasSubstr("is there already"));
  const std::vector<std::byte> large((std::size_t{4} << 20U) + 1);
  EXPECT_THAT(refused([&](GivenPart& p) { p.pages[0].values[0].bytes = large; }),
              HasSubstr("of at most 4194304"));
  EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(4, 5));
  EXPECT_THROW(store_->erase(kGate, {5, 4}), std::invalid_argument);
  EXPECT_THROW(store_->forget_erasure(77), std::invalid_argument);
}

TEST_P(HistoryStoreTest, WholeHoursGo) {
  for (std::uint32_t hour = 0; hour < 3; ++hour) {
    store_->put(part_of(kGate, kFirstHour + hour, 0, 1 + 4 * hour, 2).part);
    store_->put(part_of(kGate, kFirstHour + hour, 20, 3 + 4 * hour, 2).part);
    store_->put(part_of(kYard, kFirstHour + hour, 0, 1 + 4 * hour, 2).part);
  }
  const Expiry over[] = {{kGate, kFirstHour + 2}, {kGate, kFirstHour + 1}, {{"nobody", ""}, kFirstHour + 9}};
  EXPECT_EQ(store_->retire(over), (Removed{8, 8 * 6000}));
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(9, 10, 11, 12));
    EXPECT_THAT(store_->pages(kYard, kAll), SizeIs(6));
    EXPECT_EQ(missing(*store_, kGate, 1), Missing::absent);
    EXPECT_TRUE(is_whole(*store_, kGate, 9, 0));
    start_again();
  }
  EXPECT_EQ(store_->retire(over), (Removed{0, 0}));
  const Expiry all[] = {{kGate, kFirstHour + 9}};
  store_->retire(all);
  start_again();
  EXPECT_EQ(store_->last_page(kGate), 12U) << "numbers ascend for ever";
  EXPECT_THAT(store_->list(), SizeIs(1));
}

TEST_P(HistoryStoreTest, ErasesWholePagesOutwards) {
  store_->put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  store_->put(part_of(kYard, kFirstHour, 0, 1, 6).part);
  // The last moment of page 2 and the first one of page 4.
  const std::uint64_t id = store_->erase(kGate, {kStart + 20 * kSecond - 1, kStart + 30 * kSecond});
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(1, 5, 6));
    EXPECT_EQ(missing(*store_, kGate, 2), Missing::absent);
    EXPECT_EQ(missing(*store_, kGate, 4, 2), Missing::absent);
    EXPECT_TRUE(is_whole(*store_, kGate, 5, 2));
    EXPECT_TRUE(is_whole(*store_, kYard, 3, 0));
    EXPECT_THAT(store_->erasures(), SizeIs(1));
    start_again();
  }
  store_->finish_erasures();
  EXPECT_TRUE(store_->erasures().at(0).finished);
  EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(1, 5, 6));
  EXPECT_TRUE(is_whole(*store_, kGate, 1, 2));
  // Late ones.
  EXPECT_EQ(store_->put(part_of(kGate, kFirstHour, 0, 7, 6).part), (PutReport{3, 3}));
  start_again();
  EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(1, 5, 6, 7, 11, 12));
  EXPECT_EQ(store_->put(part_of(kGate, kFirstHour, 20, 13, 1).part), (PutReport{0, 1}));
  store_->forget_erasure(id);
  EXPECT_THAT(store_->erasures(), IsEmpty());
  start_again();
  EXPECT_EQ(store_->put(part_of(kGate, kFirstHour, 20, 13, 1).part), (PutReport{1, 0}));
  EXPECT_TRUE(is_whole(*store_, kGate, 13, 0));
}

TEST_P(HistoryStoreTest, AnErasureIsForgottenOnlyWhenItIsFinished) {
  store_->put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  const std::uint64_t id = store_->erase(kGate, kAll);
  EXPECT_THROW(store_->forget_erasure(id), std::invalid_argument);
  EXPECT_EQ(store_->finish_erasures(), (Removed{6, 36000}));
  EXPECT_EQ(store_->finish_erasures(), (Removed{0, 0}));
  store_->forget_erasure(id);
  EXPECT_THROW(store_->forget_erasure(id), std::invalid_argument);
}

TEST_P(HistoryStoreTest, ListsCameras) {
  store_->put(part_of(kYard, kFirstHour, 0, 1, 2).part);
  store_->put(part_of(kGate, kFirstHour, 50, 4, 3).part);
  const auto list = store_->list();
  ASSERT_THAT(list, SizeIs(2));
  EXPECT_EQ(list[0].camera, kGate);
  EXPECT_EQ(list[0].pages, 3U);
  EXPECT_EQ(list[0].bytes, 18000U);
  EXPECT_EQ(list[0].wall, (WallRange{kStart + 50 * kSecond, kStart + 80 * kSecond - 1}));
  EXPECT_THAT(list[0].forms, ElementsAre(0, 1, 2));
  EXPECT_THAT(list[0].gaps, IsEmpty());
  EXPECT_EQ(list[1].camera, kYard);
}

INSTANTIATE_TEST_SUITE_P(All, HistoryStoreTest, ::testing::Values("memory", "plain", "sealed"),
                         [](const auto& instance) { return std::string(instance.param); });

/// What a store says, all of it.
std::string said_by(const HistoryStore& store, std::span<const CameraId> cameras) {
  std::string text;
  for (const CameraId& camera : cameras)
    text += camera.camera + " up to " + std::to_string(store.last_page(camera)) + '\n' + shown(store, camera);
  for (const Erasure& each : store.erasures()) {
    text += "erasure " + std::to_string(each.id) + " of " + each.camera.camera + ' ' +
            std::to_string(each.wall.from) + ' ' + std::to_string(each.wall.to) +
            (each.finished ? " finished\n" : "\n");
  }
  for (const CameraSummary& each : store.list()) {
    text += each.camera.tenant + each.camera.camera + ' ' + std::to_string(each.pages) + ' ' +
            std::to_string(each.bytes) + ' ' + std::to_string(each.wall.from) + ' ' +
            std::to_string(each.wall.to) + ' ' + std::to_string(each.forms.size()) + ' ' +
            std::to_string(each.gaps.size()) + '\n';
  }
  const VerifyReport verified = store.verify(std::nullopt);
  return text + std::to_string(verified.whole) + ' ' + std::to_string(verified.damaged);
}

class HistoryTwins : public ::testing::TestWithParam<int> {};

TEST_P(HistoryTwins, SayTheSameWhateverIsDone) {
  std::mt19937_64 random(static_cast<std::uint64_t>(GetParam()));
  const CameraId cameras[] = {kGate, kYard, {"south", "gate"}, {"", "\0\x01"s}};
  const TemporaryFolder folder;
  HistoryOptions options;
  if (GetParam() % 2 == 0) options.master = SecretKey::random();
  // Fewer than there are parts.
  options.most_open_files = 2;
  const auto memory = make_memory_history_store();
  auto disk = open_history_store(folder.path(), options);
  const auto both = [&](auto operation) {
    const auto expected = operation(*memory);
    ASSERT_EQ(operation(*disk), expected);
  };
  for (int step = 0; step < 60; ++step) {
    SCOPED_TRACE(step);
    const CameraId& camera = cameras[random() % std::size(cameras)];
    const auto hour = static_cast<std::uint32_t>(kFirstHour + random() % 4);
    const int second = static_cast<int>(random() % 300) * 10;
    const WallRange wall{hour * kHour + second * kSecond,
                         hour * kHour + (second + static_cast<int>(random() % 900)) * kSecond};
    switch (random() % 10) {
      case 0:
        both([&](HistoryStore& store) { return store.erase(camera, wall); });
        break;
      case 1:
        both([&](HistoryStore& store) { return store.finish_erasures(); });
        break;
      case 2: {
        const Expiry over[] = {{camera, hour}};
        both([&](HistoryStore& store) { return store.retire(over); });
        break;
      }
      case 3: {
        const auto erasures = memory->erasures();
        if (erasures.empty()) break;
        const Erasure& one = erasures[random() % erasures.size()];
        both([&](HistoryStore& store) {
          try {
            store.forget_erasure(one.id);
            return true;
          } catch (const std::invalid_argument&) {
            return false;
          }
        });
        break;
      }
      case 4:
        // A start finishes what is erased.
        disk.reset();
        disk = open_history_store(folder.path(), options);
        memory->finish_erasures();
        break;
      default: {
        const auto given = part_of(camera, hour, second, memory->last_page(camera) + 1 + random() % 2,
                                   1 + random() % 8, 1 + random() % 5000);
        both([&](HistoryStore& store) { return store.put(given.part); });
      }
    }
    if (step % 5 == 0) {
      ASSERT_EQ(said_by(*disk, cameras), said_by(*memory, cameras));
    }
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(said_by(*disk, cameras), said_by(*memory, cameras));
}

INSTANTIATE_TEST_SUITE_P(Seeds, HistoryTwins, ::testing::Range(1, 9));

}  // namespace
}  // namespace vigil::history
