// What goes with time from a memory and its disk, and what is known of it afterwards.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/memory/memory.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::memory {
namespace {

using kv::Form;
using std::chrono::hours;
using std::chrono::minutes;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kNoon;
using testing::kSecond;
using Lines = std::vector<std::string>;

const history::CameraId kHall{"city", "hall"}, kPark{"city", "park"};
constexpr std::size_t kPage = 1000;
constexpr std::int64_t kMinute = 60 * kSecond;

/// Minutes from noon on.
history::WallRange between(double from, double to) {
  return {kNoon + static_cast<std::int64_t>(from * 60e9), kNoon + static_cast<std::int64_t>(to * 60e9) - 1};
}

struct MemoryAgeTest : ::testing::Test {
  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  std::unique_ptr<history::HistoryStore> store = history::make_memory_history_store();
  Memory::Options options;
  std::unique_ptr<Memory> remembered;
  std::int64_t now = kNoon;

  MemoryAgeTest() {
    options.disk = {{Form::int4, hours(4)}, {Form::embeddings, hours(8)}};
    begin();
  }
  void begin() {
    remembered = std::make_unique<Memory>(store.get(), options);
    remembered->watch(kHall, hours(24));
  }
  /// Pages of ten minutes each, as they are seen and written.
  void see(const history::CameraId& camera, double from, double to, bool is_alerted = false) {
    for (double at = from; at < to; at += 10) {
      FreshPage page;
      page.camera = camera;
      page.info = testing::made_page(0, at * 60, 600);
      page.is_alerted = is_alerted;
      for (const Form form : remembered->wanted())
        page.forms.push_back(testing::made_tokens(memory, form, form == Form::int4 ? kPage : kPage / 2));
      remembered->take(std::move(page), {});
    }
    remembered->queue()->flush(std::nullopt);
    while (const auto written = remembered->queue()->write_next({})) remembered->wrote(*written);
  }
  /// As whoever writes does it; what was said to go.
  Memory::Aged age(double at) {
    now = kNoon + static_cast<std::int64_t>(at * 60e9);
    Memory::Aged aged = remembered->age(now);
    store->retire(aged.expiries);
    for (const std::uint64_t each : aged.forgotten)
      store->forget_erasure(each, static_cast<std::uint8_t>(Gap::erased));
    store->note(aged.notes);
    return aged;
  }
  /// Each hour on the disk as "hall 13: int4 embeddings".
  Lines on_disk() const {
    Lines lines;
    std::optional<history::HourSummary> before;
    for (const history::HourSummary& each : store->hours(std::nullopt)) {
      const bool goes_on = before && before->camera == each.camera && before->hour == each.hour;
      if (!goes_on) lines.push_back(each.camera.camera + ' ' + std::to_string(each.hour % 24) + ':');
      lines.back() += ' ' + std::string(kv::name_of(static_cast<Form>(each.form)));
      before = each;
    }
    return lines;
  }
  std::vector<KnownGap> gaps(double from, double to) const {
    return remembered->coverage(kHall, between(from, to), now).gaps;
  }
};

TEST_F(MemoryAgeTest, EachFormGoesAtItsAge) {
  see(kHall, 0, 120);
  EXPECT_TRUE(age(120).empty()) << "there is nothing to be done, and nothing is said";
  EXPECT_TRUE(age(60 + 4 * 60 - 1).empty());
  EXPECT_THAT(age(60 + 4 * 60).expiries,
              ElementsAre(history::Expiry{kHall, static_cast<std::uint32_t>(20'000 * 24 + 13), 2}));
  EXPECT_EQ(on_disk(), (Lines{"hall 12: embeddings", "hall 13: int4 embeddings"}));
  EXPECT_THAT(gaps(0, 120), IsEmpty()) << "embeddings are there";
  age(8 * 60);
  EXPECT_EQ(on_disk(), (Lines{"hall 12: embeddings", "hall 13: embeddings"}));
  age(9 * 60);
  EXPECT_EQ(on_disk(), Lines{"hall 13: embeddings"});
  EXPECT_EQ(gaps(0, 120), (std::vector<KnownGap>{{between(0, 60), Gap::evicted}}));
  // Of cameras that nobody watches any more, too.
  begin();
  remembered = std::make_unique<Memory>(store.get(), options);
  age(10 * 60);
  EXPECT_EQ(on_disk(), Lines{});
}

TEST_F(MemoryAgeTest, ACameraThatIsWatchedElsewhereIsKeptAsLongAsItIsSaid) {
  see(kHall, 0, 120);
  // A run that does not watch it, as where it has moved to another node.
  remembered = std::make_unique<Memory>(store.get(), options);
  remembered->keep(kHall, hours(1));
  EXPECT_TRUE(age(119).empty());
  age(121);
  EXPECT_EQ(on_disk(), Lines{"hall 13: int4 embeddings"});
  remembered->watch(kHall, hours(24));
  remembered->keep(kHall, hours(1));
  age(4 * 60);
  EXPECT_EQ(on_disk(), Lines{"hall 13: int4 embeddings"}) << "of one that is watched, its own settings count";
}

TEST_F(MemoryAgeTest, WhatWasPackedCoarserIsKeptAsLongAsWhatItStandsFor) {
  options.disk = {{Form::fp8, hours(2)}, {Form::sketch, hours(1)}};
  begin();
  const auto put = [&](Form form) {
    history::GivenPart part;
    part.camera = kHall;
    part.hour = static_cast<std::uint32_t>(20'000 * 24 + 12);
    history::PageInfo info = testing::made_page(0, 0);
    info.number = Memory::number_on_disk(5, form);
    info.form = static_cast<std::uint8_t>(form);
    info.bytes = 1;
    const std::byte byte{7};
    part.pages.push_back({info, {{{0, 1}, {&byte, 1}}}});
    store->put(part);
  };
  put(Form::bf16);
  put(Form::fp8);
  put(Form::int4);
  put(Form::embeddings);
  age(3 * 60 - 1);
  EXPECT_EQ(on_disk(), Lines{"hall 12: bf16 fp8 int4 embeddings"});
  age(3 * 60);
  EXPECT_EQ(on_disk(), Lines{"hall 12: bf16 embeddings"}) << "those that nobody bounds";
  age(25 * 60);
  EXPECT_EQ(on_disk(), Lines{}) << "but for their camera";
}

TEST_F(MemoryAgeTest, TheDiskKeepsItsBudget) {
  options.disk = {{Form::int4, hours(400)}, {Form::embeddings, hours(400)}};
  // Three hours of both forms.
  options.disk_bytes = 3 * 6 * (kPage + kPage / 2);
  begin();
  see(kHall, 0, 6 * 60);
  age(6 * 60);
  EXPECT_EQ(on_disk(), (Lines{"hall 13: embeddings", "hall 14: embeddings", "hall 15: embeddings",
                              "hall 16: int4 embeddings", "hall 17: int4 embeddings"}));
  EXPECT_EQ(gaps(0, 6 * 60), (std::vector<KnownGap>{{between(0, 60), Gap::evicted}}));
  EXPECT_THAT(store->notes(kHall, between(0, 6 * 60)),
              ElementsAre(history::Note{kHall, between(0, 60), static_cast<std::uint8_t>(Gap::evicted)}))
      << "of other hours something is there";
  std::uint64_t bytes = 0;
  for (const history::HourSummary& each : store->hours(std::nullopt)) bytes += each.bytes;
  EXPECT_LE(bytes, options.disk_bytes);
  // A second camera wants its half.
  remembered->watch(kPark, hours(24));
  see(kPark, 0, 3 * 60);
  age(6 * 60);
  bytes = 0;
  std::map<history::CameraId, std::uint64_t> of;
  for (const history::HourSummary& each : store->hours(std::nullopt)) {
    bytes += each.bytes;
    of[each.camera] += each.bytes;
  }
  EXPECT_LE(bytes, options.disk_bytes);
  EXPECT_GT(of[kHall], options.disk_bytes / 4);
  EXPECT_GT(of[kPark], options.disk_bytes / 4);
}

TEST_F(MemoryAgeTest, AnHourInTheMiddleThatGoesIsKnownAsEvictedAfterARestart) {
  options.disk = {{Form::embeddings, hours(400)}};
  options.disk_bytes = 3 * 6 * kPage / 2;
  begin();
  see(kHall, 0, 10, /*is_alerted=*/true);
  see(kHall, 10, 4 * 60);
  age(4 * 60);
  EXPECT_EQ(on_disk(), (Lines{"hall 12: embeddings", "hall 14: embeddings", "hall 15: embeddings"}));
  const std::vector<KnownGap> expected{{between(60, 120), Gap::evicted}};
  EXPECT_EQ(gaps(0, 240), expected);
  begin();
  EXPECT_EQ(gaps(0, 240), expected);
  remembered = std::make_unique<Memory>(store.get(), options);
  EXPECT_EQ(gaps(0, 240), expected) << "also of a camera that is not watched";
}

TEST_F(MemoryAgeTest, WhyNothingWasKeptOutlivesARestart) {
  see(kHall, 0, 10);
  see(kHall, 30, 40);
  remembered->lose({kHall, Forgotten::no_room, 3, between(10, 15)});
  remembered->lose({kHall, Forgotten::no_room, 3, between(15, 20)});
  remembered->lose({kHall, Forgotten::keyless, 3, between(20, 25)});
  remembered->lose({kHall, Forgotten::untimed, 3, {}});
  const std::vector<KnownGap> expected{
      {between(10, 20), Gap::late}, {between(20, 25), Gap::keyless}, {between(25, 30), Gap::down}};
  EXPECT_EQ(gaps(0, 40), expected);
  EXPECT_EQ(age(41).notes.size(), 2U) << "together, and not as they come";
  EXPECT_TRUE(age(42).empty()) << "once";
  begin();
  EXPECT_EQ(gaps(0, 40), expected);
  // What goes on is one.
  remembered->lose({kHall, Forgotten::keyless, 3, between(25, 28)});
  remembered->lose({kHall, Forgotten::keyless, 3, between(28.01, 29)});
  age(43);
  EXPECT_THAT(store->notes(kHall, between(20, 30)),
              ElementsAre(history::Note{kHall, between(20, 29), static_cast<std::uint8_t>(Gap::keyless)}));
  // They go with their time: a whole hour that the camera does not keep.
  age(24 * 60 + 59);
  EXPECT_EQ(store->notes(kHall, between(0, 60)).size(), 3U) << "and that its forms are over";
  age(25 * 60);
  const history::Note over{kHall, between(0, 40), static_cast<std::uint8_t>(Gap::evicted)};
  EXPECT_THAT(store->notes(kHall, between(0, 60)), ElementsAre(over)) << "all of it is one then";
  EXPECT_EQ(gaps(10, 20), (std::vector<KnownGap>{{between(10, 20), Gap::evicted}}));
}

TEST_F(MemoryAgeTest, AReasonOfALaterProgramIsNone) {
  see(kHall, 0, 10);
  const history::Note note{kHall, between(10, 20), 200};
  store->note({&note, 1});
  begin();
  EXPECT_EQ(gaps(0, 20), (std::vector<KnownGap>{{between(10, 20), Gap::down}}));
}

TEST_F(MemoryAgeTest, AnErasureIsForgottenWhenNoPageCanMeetItAndIsToldAllTheSame) {
  options.disk = {{Form::int4, hours(400)}};
  begin();
  see(kHall, 0, 60);
  remembered->lose({kHall, Forgotten::no_room, 3, between(60, 70)});
  age(60);
  remembered->erase(kHall, between(20, 65), kNoon + 70 * kMinute);
  EXPECT_EQ(store->notes(kHall, between(60, 80)).size(), 1U);
  EXPECT_THAT(store->notes(kHall, between(60, 65)), IsEmpty()) << "nothing is told of what is erased";
  const std::vector<KnownGap> expected{{between(20, 65), Gap::erased}, {between(65, 70), Gap::late}};
  EXPECT_TRUE(age(70).empty());
  EXPECT_TRUE(age(1000).empty()) << "it is not finished";
  store->finish_erasures();
  EXPECT_TRUE(age(71).empty());
  EXPECT_TRUE(age(71 + 119).empty());
  EXPECT_EQ(remembered->take({kHall, testing::made_page(0, 1800), 0, {}}, {}).lost, Gap::erased);
  EXPECT_EQ(gaps(0, 70), expected);
  EXPECT_EQ(age(71 + 120).forgotten.size(), 1U);
  EXPECT_THAT(store->erasures(), IsEmpty());
  EXPECT_TRUE(age(71 + 121).empty());
  EXPECT_EQ(gaps(0, 70), expected);
  // What goes on after it does not say again what was before.
  remembered->lose({kHall, Forgotten::no_room, 3, between(70, 75)});
  age(71 + 122);
  EXPECT_THAT(store->notes(kHall, between(0, 80)),
              ElementsAre(history::Note{kHall, between(20, 65), static_cast<std::uint8_t>(Gap::erased)},
                          history::Note{kHall, between(65, 75), static_cast<std::uint8_t>(Gap::late)}));
  begin();
  EXPECT_EQ(gaps(0, 70), expected) << "and after a restart";
  EXPECT_NE(remembered->take({kHall, testing::made_page(0, 1800), 0, {}}, {}).lost, Gap::erased);
}

TEST_F(MemoryAgeTest, AnErasureWithoutAnEndMeansWhatWasSeenByThen) {
  see(kHall, 0, 60);
  remembered->erase(kHall, {kNoon + 30 * kMinute, INT64_MAX}, kNoon + 60 * kMinute);
  ASSERT_EQ(store->erasures().size(), 1U);
  EXPECT_EQ(store->erasures()[0].wall.to, kNoon + 60 * kMinute);
  see(kHall, 70, 80);
  EXPECT_EQ(remembered->find(kHall, between(65, 90), now).size(), 1U) << "what came later is kept";
  EXPECT_EQ(remembered->find(kHall, between(0, 65), now).size(), 3U);
  EXPECT_EQ(remembered->erase(kHall, {kNoon + 90 * kMinute, INT64_MAX}, kNoon + 80 * kMinute), 0U);
  EXPECT_EQ(store->erasures().size(), 1U) << "nothing of it was seen";
}

// As after a restart: who finished it, and when, nobody knows.
TEST_F(MemoryAgeTest, AnErasureThatAnotherProcessFinishedWaitsAnew) {
  options.disk = {{Form::int4, hours(400)}};
  begin();
  see(kHall, 0, 60);
  remembered->erase(kHall, between(20, 30), kNoon + 60 * kMinute);
  store->finish_erasures();
  remembered = std::make_unique<Memory>(store.get(), options);
  EXPECT_TRUE(age(5000).empty());
  EXPECT_TRUE(age(5000 + 119).empty());
  EXPECT_EQ(age(5000 + 120).forgotten.size(), 1U);
}

TEST_F(MemoryAgeTest, WithoutADiskErasuresAreForgottenToo) {
  remembered = std::make_unique<Memory>(nullptr, options);
  remembered->watch(kHall, hours(24));
  remembered->erase(kHall, between(0, 10), kNoon + 60 * kMinute);
  const auto lost = [&] { return remembered->take({kHall, testing::made_page(0, 60), 0, {}}, {}).lost; };
  EXPECT_EQ(lost(), Gap::erased);
  EXPECT_TRUE(remembered->age(kNoon + 179 * kMinute).empty());
  EXPECT_EQ(lost(), Gap::erased);
  EXPECT_TRUE(remembered->age(kNoon + 180 * kMinute).empty());
  EXPECT_EQ(lost(), Gap::evicted);
  EXPECT_EQ(gaps(0, 10), (std::vector<KnownGap>{{between(0, 10), Gap::erased}}));
}

}  // namespace
}  // namespace vigil::memory
