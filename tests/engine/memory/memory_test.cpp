#include "engine/memory/memory.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/memory/failing_store.h"
#include "tests/engine/memory/made_pages.h"

namespace vigil::memory {
namespace {

using kv::Form;
using std::chrono::hours;
using std::chrono::minutes;
using testing::kNoon;
using testing::kSecond;
using testing::made_page;
using testing::made_tokens;

const history::CameraId kGate{"city", "gate"}, kOther{"village", "gate"};
constexpr std::size_t kPage = 8192, kSketch = 512;
/// All of it was seen by then.
constexpr std::int64_t kLater = kNoon + 3600 * kSecond;

history::WallRange seconds(double from, double to) {
  return {kNoon + static_cast<std::int64_t>(from * 1e9), kNoon + static_cast<std::int64_t>(to * 1e9) - 1};
}

struct MemoryTest : ::testing::Test {
  kernels::HostMemory memory{kernels::Stream::cpu(1), std::uint64_t{1} << 26U};
  std::unique_ptr<history::HistoryStore> store = history::make_memory_history_store();
  Memory::Options options;
  std::unique_ptr<Memory> remembered;
  base::Clock::TimePoint now{};

  MemoryTest() {
    options.host_bytes = 8 * kPage;
    options.host = {{Form::fp8, minutes(10)}};
    options.disk = {{Form::int4, hours(24)}, {Form::embeddings, hours(48)}};
    options.parts = {.most_waiting = 64 * kPage, .part_bytes = 4 * kPage};
    options.fingerprint[0] = 1;
    begin();
  }
  void begin(bool with_store = true) {
    remembered = std::make_unique<Memory>(with_store ? store.get() : nullptr, options);
    remembered->watch(kGate, hours(24));
  }
  Memory::Taken take(const history::CameraId& camera, double second, std::size_t bytes = kPage) {
    FreshPage page;
    page.camera = camera;
    page.info = made_page(0, second);
    page.change = 0.25;
    for (const Form form : remembered->wanted())
      page.forms.push_back(made_tokens(memory, form, form == Form::sketch ? kSketch : bytes));
    if (!page.forms.empty() && page.forms.back().form == Form::sketch) page.sketch = sketch(page.info);
    return remembered->take(std::move(page), now);
  }
  /// Of made_page, a token of which stands out.
  static history::PageInfo sketch(history::PageInfo info) {
    info.patches[0].kept = base::GridMask::none(4, 4);
    info.patches[0].kept.add(2);
    info.tokens = 1;
    return info;
  }
  void write() {
    remembered->queue()->flush(std::nullopt);
    while (const auto written = remembered->queue()->write_next(now)) remembered->wrote(*written);
  }
  /// Each as "1: fp8 | int4 embeddings".
  std::vector<std::string> found(const history::CameraId& camera, const history::WallRange& wall) {
    std::vector<std::string> lines;
    for (const Memory::Found& page : remembered->find(camera, wall, kLater)) {
      std::string line = std::to_string(page.info.number) + ':';
      for (const auto& [form, tokens] : page.host) line += ' ' + std::string(name_of(form));
      line += " |";
      for (const auto& [form, number] : page.disk) line += ' ' + std::string(name_of(form));
      lines.push_back(line);
    }
    return lines;
  }
};
using Lines = std::vector<std::string>;

TEST_F(MemoryTest, PagesAreFoundInTheTiersThatHaveThem) {
  EXPECT_EQ(remembered->wanted(), (std::vector{Form::fp8, Form::int4, Form::embeddings}));
  for (int i = 0; i < 10; ++i) {
    const Memory::Taken taken = take(kGate, 10.0 * i);
    EXPECT_EQ(taken.written, (std::vector{Form::int4, Form::embeddings}));
    EXPECT_TRUE(taken.is_on_host);
    EXPECT_EQ(taken.lost, std::nullopt);
    EXPECT_EQ(taken.evicted, 0U) << "it is on its way to the disk";
  }
  const Lines on_their_way = found(kGate, seconds(0, 1000));
  ASSERT_EQ(on_their_way.size(), 10U);
  EXPECT_EQ(on_their_way.front(), "1: int4 embeddings |") << "the host's memory has no room for it any more";
  EXPECT_EQ(on_their_way.back(), "10: fp8 int4 embeddings |");
  EXPECT_EQ(remembered->coverage(kGate, seconds(0, 100), kLater).share, 1);
  write();
  const Lines all = found(kGate, seconds(0, 1000));
  ASSERT_EQ(all.size(), 10U);
  EXPECT_EQ(all.front(), "1: | int4 embeddings");
  EXPECT_EQ(all.back(), "10: fp8 | int4 embeddings");
  EXPECT_EQ(found(kGate, seconds(25, 45)),
            (Lines{"3: fp8 | int4 embeddings", "4: fp8 | int4 embeddings", "5: fp8 | int4 embeddings"}));
  EXPECT_EQ(found(kOther, seconds(0, 1000)), Lines{}) << "another tenant's";
  const auto page = remembered->find(kGate, seconds(95, 96), kLater);
  ASSERT_EQ(page.size(), 1U);
  EXPECT_EQ(page[0].info.tokens, 4U);
  EXPECT_EQ(page[0].disk.at(Form::int4).number, Memory::number_on_disk(10, Form::int4));
  // The next process goes on with the numbers, and knows what the disk has.
  begin();
  EXPECT_EQ(found(kGate, seconds(95, 96)), Lines{"10: | int4 embeddings"});
  take(kGate, 100);
  write();
  EXPECT_EQ(found(kGate, seconds(105, 106)), Lines{"11: fp8 | int4 embeddings"});
}

TEST_F(MemoryTest, ASketchHasItsOwnTokensWhereverItIs) {
  options.host = {{Form::fp8, minutes(10)}, {Form::sketch, minutes(10)}};
  options.disk = {{Form::int4, hours(24)}, {Form::sketch, hours(24)}};
  begin();
  EXPECT_EQ(remembered->wanted(), (std::vector{Form::fp8, Form::int4, Form::sketch}));
  EXPECT_EQ(take(kGate, 0).written, (std::vector{Form::int4, Form::sketch}));
  take(kGate, 10);
  const auto is_right = [&](std::uint64_t number, double second) {
    const auto pages = remembered->find(kGate, seconds(second + 1, second + 2), kLater);
    ASSERT_EQ(pages.size(), 1U);
    history::PageInfo info = made_page(0, second);
    info.number = number;
    EXPECT_EQ(pages[0].info.number, number);
    EXPECT_EQ(pages[0].info.patches, info.patches);
    EXPECT_EQ(pages[0].info.tokens, 4U);
    ASSERT_TRUE(pages[0].sketch);
    EXPECT_EQ(pages[0].sketch->number, number);
    EXPECT_EQ(pages[0].sketch->fingerprint, options.fingerprint);
    EXPECT_EQ(pages[0].sketch->patches, sketch(info).patches);
    EXPECT_EQ(pages[0].sketch->tokens, 1U);
  };
  EXPECT_EQ(found(kGate, seconds(1, 2)), Lines{"1: fp8 int4 sketch |"});
  is_right(1, 0);
  write();
  EXPECT_EQ(found(kGate, seconds(11, 12)), Lines{"2: fp8 sketch | int4 sketch"});
  is_right(2, 10);
  begin();
  EXPECT_EQ(found(kGate, seconds(1, 12)), (Lines{"1: | int4 sketch", "2: | int4 sketch"}));
  is_right(1, 0);
  const std::uint64_t on_disk =
      remembered->find(kGate, seconds(11, 12), kLater)[0].disk.at(Form::sketch).number;
  EXPECT_EQ(on_disk, Memory::number_on_disk(2, Form::sketch));
  EXPECT_EQ(Memory::page_of(on_disk), 2U);
  EXPECT_EQ(Memory::page_of(Memory::number_on_disk(3, Form::bf16)), 3U);
  take(kGate, 20);
  EXPECT_EQ(found(kGate, seconds(21, 22)), Lines{"3: fp8 int4 sketch |"}) << "numbers go on";
}

// What was kept of a page may be its sketch alone: that is what is known of it then.
TEST_F(MemoryTest, ASketchMayBeAllThatIsLeft) {
  options.host = {};
  options.host_bytes = 0;
  options.disk = {{Form::sketch, hours(24)}};
  begin();
  EXPECT_EQ(take(kGate, 0).written, std::vector{Form::sketch});
  write();
  const auto pages = remembered->find(kGate, seconds(1, 2), kLater);
  ASSERT_EQ(pages.size(), 1U);
  EXPECT_EQ(pages[0].info, pages[0].sketch);
  EXPECT_EQ(pages[0].info.tokens, 1U);
  EXPECT_GT(remembered->erase(kGate, seconds(1, 2), kLater), 0U);
  EXPECT_TRUE(remembered->find(kGate, seconds(1, 2), kLater).empty());
}

TEST_F(MemoryTest, CoverageTellsWhyTheRestIsMissing) {
  for (const int second : {0, 10, 20, 50, 60}) take(kGate, second);
  write();
  const Coverage coverage = remembered->coverage(kGate, seconds(0, 70), kLater);
  EXPECT_NEAR(coverage.share, 5.0 / 7, 1e-9);
  EXPECT_EQ(coverage.gaps, (std::vector<KnownGap>{{seconds(30, 50), Gap::down}}));
  remembered->lose({kGate, Forgotten::no_room, 3, seconds(30, 40)});
  remembered->lose({kGate, Forgotten::keyless, 3, seconds(40, 45)});
  EXPECT_EQ(
      remembered->coverage(kGate, seconds(0, 70), kLater).gaps,
      (std::vector<KnownGap>{
          {seconds(30, 40), Gap::late}, {seconds(40, 45), Gap::keyless}, {seconds(45, 50), Gap::down}}));
  const std::vector<std::uint64_t> damaged{5};
  EXPECT_EQ(remembered->coverage(kGate, seconds(60, 70), kLater, damaged).gaps,
            (std::vector<KnownGap>{{seconds(60, 70), Gap::damaged}}));
  EXPECT_EQ(remembered->coverage(kOther, seconds(0, 70), kLater).gaps,
            (std::vector<KnownGap>{{seconds(0, 70), Gap::down}}));
  // Other weights: what is there is none of theirs.
  options.fingerprint[0] = 2;
  begin();
  EXPECT_EQ(found(kGate, seconds(0, 70)), Lines{});
  EXPECT_EQ(remembered->coverage(kGate, seconds(50, 70), kLater).gaps,
            (std::vector<KnownGap>{{seconds(50, 70), Gap::other_model}}));
}

TEST_F(MemoryTest, WhatIsOlderThanItsCameraKeepsIsEvicted) {
  take(kGate, -3600.0 * 25);
  take(kGate, -3600.0 * 23);
  write();
  EXPECT_EQ(remembered->coverage(kGate, seconds(-3600.0 * 30, 0), kLater).gaps.front().why, Gap::down)
      << "the first page ever: there was nothing before it";
  const std::vector<history::Expiry> expiries = remembered->age(kNoon).expiries;
  ASSERT_EQ(expiries.size(), 2U) << "all of it, and keys that are kept as long";
  EXPECT_EQ(store->retire(expiries).pages, 2U) << "both forms of one page";
  EXPECT_EQ(found(kGate, seconds(-3600.0 * 30, 0)), Lines{"2: | int4 embeddings"});
  const std::vector<KnownGap> gaps = remembered->coverage(kGate, seconds(-3600.0 * 30, 0), kLater).gaps;
  ASSERT_GE(gaps.size(), 2U);
  EXPECT_EQ(gaps[0], (KnownGap{seconds(-3600.0 * 30, -3600.0 * 25), Gap::down})) << "it still was not there";
  EXPECT_EQ(gaps[1], (KnownGap{seconds(-3600.0 * 25, -3600.0 * 25 + 10), Gap::evicted}));
}

TEST_F(MemoryTest, AnErasureHoldsEverywhereAtOnce) {
  for (int i = 0; i < 4; ++i) take(kGate, 10.0 * i);
  write();
  for (int i = 4; i < 6; ++i) take(kGate, 10.0 * i);
  for (int i = 0; i < 3; ++i) take(kOther, 10.0 * i);
  // On the host and the disk, on its way there, and one that is still to come.
  EXPECT_GT(remembered->erase(kGate, seconds(25, 65), kLater), 0U);
  EXPECT_EQ(take(kGate, 60).lost, Gap::erased);
  EXPECT_EQ(take(kGate, 70).lost, std::nullopt);
  write();
  EXPECT_EQ(found(kGate, seconds(0, 100)),
            (Lines{"1: fp8 | int4 embeddings", "2: fp8 | int4 embeddings", "7: fp8 | int4 embeddings"}));
  EXPECT_EQ(found(kOther, seconds(0, 100)).size(), 3U);
  EXPECT_EQ(remembered->coverage(kGate, seconds(0, 80), kLater).gaps,
            (std::vector<KnownGap>{{seconds(20, 70), Gap::erased}}))
      << "whole pages go";
  begin();
  EXPECT_EQ(take(kGate, 60).lost, Gap::erased) << "the next process knows it, too";
}

// A disk that takes nothing: what is erased is hidden all the same, and nothing of it is written later.
TEST_F(MemoryTest, AnErasureThatTheDiskRefusesHoldsForThisProcess) {
  testing::FailingStore failing(*store);
  failing.fails = false;
  remembered = std::make_unique<Memory>(&failing, options);
  remembered->watch(kGate, hours(24));
  for (int i = 0; i < 2; ++i) take(kGate, 10.0 * i);
  write();
  take(kGate, 20);
  remembered->lose({kGate, Forgotten::no_room, 3, seconds(6, 30)});
  failing.fails = true;
  EXPECT_THROW(remembered->erase(kGate, seconds(5, 25), kLater), history::HistoryError);
  failing.fails = false;
  EXPECT_EQ(found(kGate, seconds(0, 100)), Lines{});
  EXPECT_EQ(remembered->coverage(kGate, seconds(10, 20), kLater).gaps,
            (std::vector<KnownGap>{{seconds(10, 20), Gap::erased}}));
  remembered->lose({kGate, Forgotten::no_room, 3, seconds(30, 32)});
  const std::vector<history::Note> notes = remembered->age(kLater).notes;
  EXPECT_FALSE(notes.empty());
  for (const history::Note& each : notes)
    EXPECT_FALSE(each.wall.meets(seconds(5, 25))) << "nor is anything noted of it";
  write();
  EXPECT_EQ(store->pages(kGate, seconds(0, 100)).size(), 4U) << "the third page never came there";
}

// Behind a slow disk: coarser forms, then embeddings alone, then nothing; and it is told.
TEST_F(MemoryTest, ALateDiskCostsFormsAndThenPages) {
  options.host = {};
  options.host_bytes = 0;
  options.disk = {{Form::fp8, hours(24)}, {Form::embeddings, hours(24)}};
  begin();
  std::vector<std::vector<Form>> written;
  int second = 0;
  std::optional<Gap> lost;
  for (; !lost && second < 10'000; second += 10) {
    const Memory::Taken taken = take(kGate, second);
    if (written.empty() || written.back() != taken.written) written.push_back(taken.written);
    lost = taken.lost;
  }
  EXPECT_EQ(written,
            (std::vector<std::vector<Form>>{
                {Form::fp8, Form::embeddings}, {Form::int4, Form::embeddings}, {Form::embeddings}, {}}));
  EXPECT_EQ(lost, Gap::late);
  EXPECT_EQ(remembered->coverage(kGate, seconds(second - 10, second), kLater).gaps.front().why, Gap::late);
  write();
  EXPECT_EQ(remembered->wanted(), (std::vector{Form::fp8, Form::embeddings}));
  EXPECT_EQ(take(kGate, second).lost, std::nullopt);
}

// The host has room for the newest ones always.
TEST_F(MemoryTest, WhatADiskIsTooFarBehindForIsToldThoughTheHostHasIt) {
  options.host = {{Form::int4, hours(1)}};
  options.disk = {{Form::int4, hours(24)}};
  begin();
  Memory::Taken taken;
  for (int second = 0; second < 10'000; second += 10) {
    taken = take(kGate, second);
    EXPECT_EQ(taken.is_unwritten, taken.written.empty());
    if (taken.is_unwritten) break;
  }
  EXPECT_TRUE(taken.is_unwritten && taken.is_on_host && !taken.lost);
  write();
  EXPECT_FALSE(take(kGate, 10'000).is_unwritten);
}

TEST_F(MemoryTest, ALateDiskTakesSketchesUntilItIsFull) {
  options.host = {};
  options.host_bytes = 0;
  options.disk = {{Form::fp8, hours(24)}, {Form::sketch, hours(24)}};
  begin();
  std::vector<std::vector<Form>> written;
  std::optional<Gap> lost;
  for (int second = 0; !lost && second < 100'000; second += 10) {
    const Memory::Taken taken = take(kGate, second);
    if (written.empty() || written.back() != taken.written) written.push_back(taken.written);
    lost = taken.lost;
  }
  EXPECT_EQ(written, (std::vector<std::vector<Form>>{
                         {Form::fp8, Form::sketch}, {Form::int4, Form::sketch}, {Form::sketch}, {}}));
  EXPECT_EQ(lost, Gap::late);
}

TEST_F(MemoryTest, WithoutADiskTheHostIsAllThereIs) {
  options.disk = {};
  begin(/*with_store=*/false);
  EXPECT_EQ(remembered->queue(), nullptr);
  EXPECT_EQ(remembered->wanted(), std::vector{Form::fp8});
  std::size_t evicted = 0;
  for (int i = 0; i < 10; ++i) evicted += take(kGate, 10.0 * i).evicted;
  EXPECT_EQ(evicted, 2U);
  EXPECT_EQ(found(kGate, seconds(0, 100)).size(), 8U);
  EXPECT_EQ(remembered->erase(kGate, seconds(0, 1000), kLater), 8U);
  EXPECT_TRUE(remembered->age(kNoon).empty());
  EXPECT_EQ(take(kGate, 2000, 9 * kPage).lost, Gap::evicted) << "larger than all there is";
}

}  // namespace
}  // namespace vigil::memory
