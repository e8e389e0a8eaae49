// Which hours of which cameras go when the disk has too much.
#include "engine/memory/disk_budget.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::memory {
namespace {

using history::CameraId;
using history::HourSummary;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const CameraId kA{"t", "a"}, kB{"t", "b"}, kC{"t", "c"};
constexpr std::int64_t kAnHour = 3'600'000'000'000;
/// What is written when the clock is at this hour is never over.
constexpr std::uint32_t kNowHour = 100;
constexpr std::uint8_t kKeys = 2, kEmbeddings = 3, kSketches = 4;

HourSummary hour_of(const CameraId& camera, std::uint32_t hour, std::uint8_t form, std::uint64_t bytes,
                    std::uint64_t pages = 10) {
  return {camera, hour, form, pages, bytes, {hour * kAnHour, (hour + 1) * kAnHour - 1}, 1};
}

/// What a disk has, in order; what is said to go does not go by itself.
struct DiskBudgetTest : ::testing::Test {
  std::vector<HourSummary> there;
  std::vector<CameraId> sharing{kA, kB};

  /// Each as "a 90 keys".
  std::vector<std::string> over(DiskBudget& budget, bool only_new = true) {
    std::sort(there.begin(), there.end(), [](const auto& a, const auto& b) {
      return std::tie(a.camera, a.hour, a.form) < std::tie(b.camera, b.hour, b.form);
    });
    std::vector<std::string> lines;
    for (const auto& [hour, is_new] : budget.over(there, sharing, kNowHour)) {
      const char* const form = hour.form == kKeys         ? " keys"
                               : hour.form == kEmbeddings ? " embeddings"
                                                          : " sketches";
      if (is_new || !only_new) lines.push_back(hour.camera.camera + ' ' + std::to_string(hour.hour) + form);
    }
    return lines;
  }
};

TEST_F(DiskBudgetTest, NothingGoesThatHasRoom) {
  DiskBudget budget(400, Eviction::value);
  for (std::uint32_t hour = 90; hour < 94; ++hour) there.push_back(hour_of(kA, hour, kKeys, 100));
  EXPECT_THAT(over(budget), IsEmpty()) << "what the other one leaves unused is lent";
  there.push_back(hour_of(kB, 90, kKeys, 1));
  EXPECT_THAT(over(budget), ElementsAre("a 90 keys"));
  DiskBudget without(0, Eviction::value);
  EXPECT_THAT(over(without), IsEmpty());
}

TEST_F(DiskBudgetTest, TheCameraThatHasMostBeyondItsShareGivesFirst) {
  DiskBudget budget(600, Eviction::value);
  for (std::uint32_t hour = 90; hour < 95; ++hour) there.push_back(hour_of(kA, hour, kKeys, 100));
  for (std::uint32_t hour = 90; hour < 93; ++hour) there.push_back(hour_of(kB, hour, kKeys, 100));
  // Nobody's any more: it has no share.
  there.push_back(hour_of(kC, 95, kKeys, 150));
  EXPECT_THAT(over(budget), ElementsAre("a 90 keys", "c 95 keys", "a 91 keys"));
}

TEST_F(DiskBudgetTest, WhatIsStillWrittenStays) {
  DiskBudget budget(100, Eviction::value);
  for (std::uint32_t hour = 97; hour < 102; ++hour) there.push_back(hour_of(kA, hour, kKeys, 100));
  // Its last page is of the hour before, and the next one may be, too.
  budget.saw(kA, 99, 0);
  EXPECT_THAT(over(budget), ElementsAre("a 97 keys", "a 98 keys"));
  budget.saw(kA, 100, 0);
  EXPECT_THAT(over(budget), ElementsAre("a 99 keys"));
  EXPECT_THAT(over(budget), IsEmpty()) << "though it is too much";
  // Who makes no pages any more writes nothing.
  sharing = {kB};
  there = {hour_of(kA, 99, kKeys, 500), hour_of(kA, 100, kKeys, 500)};
  DiskBudget other(100, Eviction::value);
  other.saw(kA, 98, 0);
  EXPECT_THAT(over(other), ElementsAre("a 99 keys"));
}

// A sketch takes a fiftieth of keys, and embeddings a half.
TEST_F(DiskBudgetTest, KeysGoBeforeEmbeddingsAndTheseBeforeSketches) {
  const auto fill = [&] {
    there.clear();
    for (std::uint32_t hour = 60; hour < 100; ++hour) {
      there.push_back(hour_of(kA, hour, kKeys, 1000));
      there.push_back(hour_of(kA, hour, kEmbeddings, 500));
      there.push_back(hour_of(kA, hour, kSketches, 20));
    }
  };
  sharing = {kA};
  for (const std::uint64_t bytes : {50'000U, 30'000U, 10'000U, 2'000U, 500U}) {
    fill();
    DiskBudget budget(bytes, Eviction::value);
    for (const std::string& line : over(budget)) {
      std::erase_if(there, [&](const HourSummary& each) {
        const char* const form = each.form == kKeys         ? " keys"
                                 : each.form == kEmbeddings ? " embeddings"
                                                            : " sketches";
        return line == "a " + std::to_string(each.hour) + form;
      });
    }
    std::map<std::uint8_t, std::vector<std::uint32_t>> left;
    std::uint64_t used = 0;
    for (const HourSummary& each : there) {
      left[each.form].push_back(each.hour);
      used += each.bytes;
    }
    EXPECT_LE(used, bytes);
    EXPECT_GT(used + 1000, bytes) << "and no more went than had to";
    EXPECT_GE(left[kEmbeddings].size(), left[kKeys].size()) << bytes;
    EXPECT_GE(left[kSketches].size(), left[kEmbeddings].size()) << bytes;
    if (bytes >= 2'000) {
      EXPECT_GE(left[kSketches].size(), 39U) << bytes << ": they are hardly in the way";
    }
    // The last ones of each form.
    for (const auto& [form, hours] : left)
      if (!hours.empty()) {
        EXPECT_EQ(hours.front() + hours.size(), 100U) << int{form};
      }
  }
}

TEST_F(DiskBudgetTest, ABusyHourIsNotWorthLessForItsPages) {
  DiskBudget budget(1700, Eviction::value);
  sharing = {kA};
  there = {hour_of(kA, 80, kKeys, 100, 1), hour_of(kA, 90, kKeys, 1500, 15), hour_of(kA, 91, kKeys, 200, 2)};
  EXPECT_THAT(over(budget), ElementsAre("a 80 keys"));
}

TEST_F(DiskBudgetTest, WhatWasSeenAskedOrToldIsKeptLonger) {
  for (int what = 0; what < 4; ++what) {
    DiskBudget budget(200, Eviction::value);
    for (std::uint32_t hour = 90; hour < 93; ++hour)
      budget.saw(kA, hour, what == 0 && hour == 90 ? 1 : 0, what == 2 && hour == 90);
    if (what == 3) budget.saw(kB, 90, 0, /*is_alerted=*/true);
    if (what == 1) budget.asked(kA, {90});
    there = {hour_of(kA, 90, kKeys, 100), hour_of(kA, 91, kKeys, 100), hour_of(kA, 92, kKeys, 100)};
    sharing = {kA};
    EXPECT_THAT(over(budget), ElementsAre(what < 3 ? "a 91 keys" : "a 90 keys")) << what;
  }
}

TEST_F(DiskBudgetTest, OrWhatWasNotAskedAboutForLongest) {
  DiskBudget budget(100, Eviction::lru);
  sharing = {kA};
  for (std::uint32_t hour = 95; hour < 98; ++hour) budget.saw(kA, hour, 1);
  budget.asked(kA, {94, 95});
  // From before this process: nobody has asked for them.
  there = {hour_of(kA, 92, kKeys, 50), hour_of(kA, 93, kKeys, 50), hour_of(kA, 93, kEmbeddings, 50),
           hour_of(kA, 94, kKeys, 50), hour_of(kA, 95, kKeys, 50), hour_of(kA, 95, kSketches, 50),
           hour_of(kA, 96, kKeys, 50), hour_of(kA, 97, kKeys, 50)};
  EXPECT_THAT(over(budget), ElementsAre("a 92 keys", "a 93 keys", "a 93 embeddings", "a 96 keys", "a 94 keys",
                                        "a 95 keys"));
}

TEST_F(DiskBudgetTest, WhatIsSaidToGoIsSaidUntilItIsGoneAndCountsAsGone) {
  DiskBudget budget(200, Eviction::value);
  sharing = {kA};
  for (std::uint32_t hour = 90; hour < 93; ++hour) there.push_back(hour_of(kA, hour, kKeys, 100));
  EXPECT_THAT(over(budget), ElementsAre("a 90 keys"));
  // Another order by now, and it is still there: nothing else goes for it.
  budget.asked(kA, {90});
  EXPECT_THAT(over(budget), IsEmpty());
  EXPECT_THAT(over(budget, false), ElementsAre("a 90 keys"));
  there.erase(there.begin());
  EXPECT_THAT(over(budget, false), IsEmpty());
  there.push_back(hour_of(kA, 93, kKeys, 100));
  EXPECT_THAT(over(budget, false), ElementsAre("a 91 keys"));
  // The same hour once more: what was late is new.
  there.erase(there.begin());
  there.push_back(hour_of(kA, 90, kKeys, 1));
  EXPECT_THAT(over(budget), ElementsAre("a 90 keys"));
}

TEST_F(DiskBudgetTest, WhateverIsThereTheRestFitsOrMayNotGo) {
  std::mt19937 random(20261129);
  const auto below = [&](std::uint32_t count) { return static_cast<std::uint32_t>(random() % count); };
  for (int round = 0; round < 500; ++round) {
    const std::uint64_t bytes = 1 + below(3000);
    DiskBudget budget(bytes, below(2) == 0 ? Eviction::value : Eviction::lru);
    there.clear();
    const CameraId cameras[] = {kA, kB, kC};
    std::map<CameraId, std::uint64_t> used;
    for (const CameraId& camera : cameras)
      for (std::uint32_t hour = 95; hour < 102; ++hour)
        for (std::uint8_t form = kKeys; form <= kSketches; ++form)
          if (below(2) == 0) there.push_back(hour_of(camera, hour, form, 1 + below(200), 1 + below(9)));
    if (below(2) == 0) budget.asked(kA, {95, 96});
    std::uint64_t left = 0, may_go = 0;
    for (const HourSummary& each : there) {
      left += each.bytes;
      used[each.camera] += each.bytes;
    }
    for (const auto& [hour, is_new] : budget.over(there, sharing, kNowHour)) {
      ASSERT_GT(left, bytes) << "enough had gone";
      ASSERT_LT(hour.hour, kNowHour);
      const std::uint64_t share = hour.camera == kC ? 0 : bytes / 2;
      ASSERT_GT(used[hour.camera], share) << "it had what is its own";
      left -= hour.bytes;
      used[hour.camera] -= hour.bytes;
      std::erase(there, hour);
    }
    for (const HourSummary& each : there)
      if (each.hour < kNowHour && used[each.camera] > (each.camera == kC ? 0 : bytes / 2))
        may_go += each.bytes;
    ASSERT_TRUE(left <= bytes || may_go == 0) << left << " of " << bytes;
  }
}

}  // namespace
}  // namespace vigil::memory
