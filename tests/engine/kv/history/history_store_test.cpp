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
    EXPECT_EQ(store_->verify(std::nullopt, 1), (VerifyReport{5, 0}));
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
  EXPECT_THROW(store_->forget_erasure(77, std::nullopt), std::invalid_argument);
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

/// A part of pages of one form.
testing::OwnedPart part_of_form(std::uint8_t form, std::uint32_t hour, int second, std::uint64_t first,
                                std::uint64_t count) {
  auto owned = part_of(kGate, hour, second, first, count);
  for (GivenPage& page : owned.part.pages) page.info.form = form;
  return owned;
}

TEST_P(HistoryStoreTest, FormsGoByThemselves) {
  for (std::uint32_t hour = 0; hour < 3; ++hour) {
    store_->put(part_of_form(2, kFirstHour + hour, 0, 1 + 4 * hour, 2).part);
    store_->put(part_of_form(3, kFirstHour + hour, 0, 3 + 4 * hour, 2).part);
  }
  // Forms 1 and 2 (pages 13 and 14) in one part.
  store_->put(part_of(kGate, kFirstHour, 100, 13, 2).part);
  const Expiry two[] = {{kGate, kFirstHour + 2, 2}};
  EXPECT_EQ(store_->retire(two), (Removed{4, 4 * 6000}));
  for (int start = 0; start < 2; ++start) {
    EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(3, 4, 7, 8, 9, 10, 11, 12, 13, 14))
        << "what is left of an hour can be read";
    EXPECT_TRUE(is_whole(*store_, kGate, 3, 2));
    start_again();
  }
  // The next page of an hour whose first form is gone.
  store_->put(part_of_form(2, kFirstHour, 200, 15, 1).part);
  start_again();
  EXPECT_TRUE(is_whole(*store_, kGate, 15, 0));
  const Expiry hour[] = {{kGate, kFirstHour + 2, 3, kFirstHour + 1}};
  EXPECT_EQ(store_->retire(hour).pages, 2U) << "one hour alone";
  EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(3, 4, 9, 10, 11, 12, 13, 14, 15));
  const Expiry one[] = {{kGate, kFirstHour + 1, 1}};
  EXPECT_EQ(store_->retire(one).pages, 0U) << "there is something else in its part";
  const Expiry both[] = {{kGate, kFirstHour + 1, 1}, {kGate, kFirstHour + 1, 2}};
  EXPECT_EQ(store_->retire(both).pages, 3U);
  start_again();
  EXPECT_THAT(numbers(store_->pages(kGate, kAll)), ElementsAre(3, 4, 9, 10, 11, 12));
}

TEST_P(HistoryStoreTest, SumsUpHours) {
  EXPECT_THAT(store_->hours(std::nullopt), IsEmpty());
  store_->put(part_of_form(2, kFirstHour, 0, 5, 3).part);
  store_->put(part_of_form(2, kFirstHour, 100, 8, 1).part);
  store_->put(part_of_form(3, kFirstHour, 50, 9, 2).part);
  store_->put(part_of_form(2, kFirstHour + 2, 0, 11, 1).part);
  store_->put(part_of(kYard, kFirstHour, 0, 1, 1).part);
  const auto range = [](int from, int to) {
    return WallRange{kStart + from * kSecond, kStart + to * kSecond - 1};
  };
  const HourSummary second{kGate, kFirstHour, 3, 2, 12000, range(50, 70), 9};
  const HourSummary third{kGate, kFirstHour + 2, 2, 1, 6000, range(7200, 7210), 11};
  EXPECT_THAT(store_->hours(kGate),
              ElementsAre(HourSummary{kGate, kFirstHour, 2, 4, 24000, range(0, 110), 5}, second, third));
  EXPECT_THAT(store_->hours(std::nullopt), SizeIs(4));
  EXPECT_THAT(store_->hours(CameraId{"nobody", ""}), IsEmpty());
  // Of what is erased nothing is told, whether it is there or not.
  store_->erase(kGate, range(5, 25));
  for (int start = 0; start < 3; ++start) {
    EXPECT_THAT(store_->hours(kGate),
                ElementsAre(HourSummary{kGate, kFirstHour, 2, 1, 6000, range(100, 110), 8}, second, third));
    if (start == 0) store_->finish_erasures();
    if (start == 1) start_again();
  }
  store_->erase(kGate, range(7200, 7201));
  EXPECT_THAT(store_->hours(kGate), SizeIs(2));
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
  store_->forget_erasure(id, std::nullopt);
  EXPECT_THAT(store_->erasures(), IsEmpty());
  start_again();
  EXPECT_EQ(store_->put(part_of(kGate, kFirstHour, 20, 13, 1).part), (PutReport{1, 0}));
  EXPECT_TRUE(is_whole(*store_, kGate, 13, 0));
}

TEST_P(HistoryStoreTest, AnErasureIsForgottenOnlyWhenItIsFinished) {
  store_->put(part_of(kGate, kFirstHour, 0, 1, 6).part);
  const std::uint64_t id = store_->erase(kGate, kAll);
  EXPECT_THROW(store_->forget_erasure(id, std::nullopt), std::invalid_argument);
  EXPECT_EQ(store_->finish_erasures(), (Removed{6, 36000}));
  EXPECT_EQ(store_->finish_erasures(), (Removed{0, 0}));
  store_->forget_erasure(id, std::nullopt);
  EXPECT_THROW(store_->forget_erasure(id, std::nullopt), std::invalid_argument);
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
  for (const HourSummary& each : store.hours(std::nullopt)) {
    text += each.camera.tenant + each.camera.camera;
    for (const std::uint64_t number : {std::uint64_t{each.hour}, std::uint64_t{each.form}, each.pages,
                                       each.bytes, static_cast<std::uint64_t>(each.wall.from),
                                       static_cast<std::uint64_t>(each.wall.to), each.first_page})
      text += ' ' + std::to_string(number);
    text += '\n';
  }
  for (const CameraId& camera : cameras)
    for (const Note& each : store.notes(camera, kAll))
      text += "note of " + each.camera.tenant + each.camera.camera + ' ' + std::to_string(each.wall.from) +
              ' ' + std::to_string(each.wall.to) + ' ' + std::to_string(each.why) + '\n';
  for (const std::uint64_t numbers : {1U, 2U, 8U}) {
    const VerifyReport verified = store.verify(std::nullopt, numbers);
    text += std::to_string(verified.whole) + ' ' + std::to_string(verified.damaged) + '\n';
  }
  return text;
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
    switch (random() % 12) {
      case 0:
        both([&](HistoryStore& store) { return store.erase(camera, wall); });
        break;
      case 1:
        both([&](HistoryStore& store) { return store.finish_erasures(); });
        break;
      case 2: {
        const auto form = static_cast<std::uint8_t>(random() % 4);
        const Expiry over[] = {{camera, hour},
                               {camera, hour + 1, form},
                               {cameras[0], hour + 1, static_cast<std::uint8_t>(random() % 4), hour}};
        // Of all forms, or of one.
        const std::size_t first = random() % 2;
        both([&](HistoryStore& store) { return store.retire(std::span(over).subspan(first)); });
        break;
      }
      case 3: {
        const auto erasures = memory->erasures();
        if (erasures.empty()) break;
        const Erasure one = erasures[random() % erasures.size()];
        std::optional<std::uint8_t> why;
        if (random() % 2 == 0) why = std::uint8_t{6};
        both([&](HistoryStore& store) {
          try {
            store.forget_erasure(one.id, why);
            return true;
          } catch (const std::invalid_argument&) {
            return false;
          }
        });
        break;
      }
      case 10:
      case 11: {
        const Note notes[] = {{camera, wall, static_cast<std::uint8_t>(random() % 3)},
                              {cameras[0], {wall.to - kHour, wall.from + 20 * kSecond}, 2},
                              {camera, {wall.to + kSecond, wall.to + kHour}, 1}};
        both([&](HistoryStore& store) {
          store.note(notes);
          return 0;
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
        auto given = part_of(camera, hour, second, memory->last_page(camera) + 1 + random() % 2,
                             1 + random() % 8, 1 + random() % 5000);
        // Of one form, as they usually are, or of several.
        const auto form = static_cast<std::uint8_t>(random() % 5);
        for (GivenPage& page : given.part.pages)
          if (form < 4) page.info.form = form;
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
