#include "engine/memory/tier_pool.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::memory {
namespace {

using Ids = std::vector<std::uint64_t>;
using std::chrono::minutes;

base::Clock::WallTime at(int minute) {
  return base::Clock::WallTime(std::chrono::hours(400'000)) + minutes(minute);
}

/// A page of a minute.
TierPool::Page page(std::uint64_t id, std::uint64_t bytes, int minute, double change = 0) {
  return {id, bytes, at(minute), at(minute + 1), change};
}

const std::vector<std::string> kTwo{"gate", "yard"};

TEST(TierPool, UnusedRoomIsLentAndGivenBack) {
  TierPool pool(100);
  pool.share(kTwo);
  EXPECT_EQ(pool.share_of("gate"), 50U);
  EXPECT_EQ(pool.share_of("nobody"), 0U);
  for (std::uint64_t id = 0; id < 10; ++id)
    EXPECT_EQ(pool.put("gate", page(id, 10, static_cast<int>(id))), Ids{});
  EXPECT_EQ(pool.used_by("gate"), 100U) << "nobody else wanted it";
  for (std::uint64_t id = 10; id < 15; ++id)
    EXPECT_EQ(pool.put("yard", page(id, 10, static_cast<int>(id))), Ids{id - 10})
        << "the oldest of the gate's";
  EXPECT_EQ(pool.put("yard", page(15, 10, 15)), Ids{10})
      << "beyond its share it is the yard's own page that goes";
  EXPECT_EQ(pool.put("gate", page(16, 10, 16)), Ids{5});
  EXPECT_EQ(pool.used_by("gate"), 50U);
  EXPECT_EQ(pool.used_by("yard"), 50U);
}

TEST(TierPool, ACameraThatComesHasItsShare) {
  TierPool pool(90);
  const std::vector<std::string> one{"gate"}, three{"gate", "yard", "door"};
  pool.share(one);
  for (std::uint64_t id = 0; id < 9; ++id) pool.put("gate", page(id, 10, static_cast<int>(id)));
  pool.share(three);
  EXPECT_EQ(pool.used(), 90U) << "nothing goes before its room is wanted";
  EXPECT_EQ(pool.put("door", page(20, 30, 20)), (Ids{0, 1, 2}));
  EXPECT_EQ(pool.put("yard", page(21, 30, 21)), (Ids{3, 4, 5}));
  // Those of a camera that is gone are nobody's.
  pool.share(kTwo);
  EXPECT_EQ(pool.put("yard", page(22, 10, 22)), Ids{20});
  EXPECT_FALSE(pool.contains(20));
}

TEST(TierPool, APageThatHasNoRoomChangesNothing) {
  TierPool pool(100);
  pool.share(kTwo);
  EXPECT_EQ(pool.put("gate", page(1, 101, 0)), std::nullopt);
  EXPECT_EQ(pool.put("gate", page(1, 50, 0)), Ids{});
  EXPECT_EQ(pool.put("yard", page(2, 40, 0)), Ids{});
  EXPECT_EQ(pool.put("yard", page(3, 60, 1)), std::nullopt) << "the gate has no more than its share";
  EXPECT_EQ(pool.order_of("yard"), Ids{2});
  EXPECT_EQ(pool.used(), 90U);
  EXPECT_THROW(pool.put("gate", page(2, 1, 0)), std::invalid_argument);
  TierPool none(0);
  none.share(kTwo);
  EXPECT_EQ(none.put("gate", page(1, 1, 0)), std::nullopt);
}

TEST(TierPool, WhatIsWorthMostStaysLongest) {
  TierPool pool(60);
  const std::vector<std::string> one{"gate"};
  pool.share(one);
  for (std::uint64_t id = 0; id < 6; ++id)
    pool.put("gate", page(id, 10, static_cast<int>(id), id == 1 ? 1.0 : 0.0), {.is_alerted = id == 2});
  pool.hit(0);
  pool.hit(99);
  EXPECT_EQ(pool.order_of("gate"), (Ids{3, 4, 5, 0, 1, 2}))
      << "age, then what was asked about and what changed, then what was told of";
  EXPECT_EQ(pool.put("gate", page(7, 20, 7)), (Ids{3, 4}));
  // Worth fades: hours later, what is new counts for more.
  EXPECT_EQ(pool.put("gate", page(8, 40, 600)), (Ids{5, 7, 0}));
  EXPECT_DOUBLE_EQ(TierPool::worth_of(page(1, 1, 0, 0.5), {3, true}, at(1)), 6.5);
  EXPECT_DOUBLE_EQ(TierPool::worth_of(page(1, 1, 0, 0.5), {3, true}, at(61)), 3.25);
  EXPECT_DOUBLE_EQ(TierPool::worth_of(page(1, 1, 0), {}, at(-100)), 1) << "a clock that was put back";
}

TEST(TierPool, TheLeastRecentlyUsedGoesByLru) {
  TierPool pool(40, Eviction::lru);
  const std::vector<std::string> one{"gate"};
  pool.share(one);
  for (std::uint64_t id = 0; id < 4; ++id)
    pool.put("gate", page(id, 10, static_cast<int>(id), 1), {.is_alerted = id == 1});
  pool.hit(0);
  EXPECT_EQ(pool.order_of("gate"), (Ids{1, 2, 3, 0}));
  EXPECT_TRUE(pool.remove(2));
  EXPECT_FALSE(pool.remove(2));
  EXPECT_EQ(pool.put("gate", page(4, 10, 4)), Ids{});
  EXPECT_EQ(pool.put("gate", page(5, 20, 5)), (Ids{1, 3}));
}

// Whatever is done: the tier is never over-full, and nobody within its share gives anything to others.
TEST(TierPool, NobodyLosesOfItsShareToOthers) {
  std::mt19937 random(20261128);
  const auto below = [&](std::uint32_t count) { return static_cast<std::uint64_t>(random() % count); };
  for (const Eviction eviction : {Eviction::value, Eviction::lru}) {
    TierPool pool(1000, eviction);
    std::vector<std::string> all{"a", "b", "c", "d", "e"};
    pool.share(all);
    std::map<std::uint64_t, std::pair<std::string, std::uint64_t>> there;
    const auto used_by = [&](const std::string& camera) {
      std::uint64_t used = 0;
      for (const auto& [id, entry] : there)
        if (entry.first == camera) used += entry.second;
      return used;
    };
    std::uint64_t refused = 0, lost_by_others = 0;
    for (std::uint64_t id = 0; id < 4000; ++id) {
      if (below(50) == 0) {
        std::shuffle(all.begin(), all.end(), random);
        pool.share(std::span(all).first(1 + below(5)));
      }
      if (below(10) == 0) pool.hit(below(static_cast<std::uint32_t>(id + 1)));
      if (below(10) == 0) {
        const std::uint64_t gone = below(static_cast<std::uint32_t>(id + 1));
        ASSERT_EQ(pool.remove(gone), there.erase(gone) > 0);
      }
      const std::string camera = all[below(5)];
      const std::uint64_t bytes = 1 + below(below(10) == 0 ? 1100 : 60);
      std::map<std::string, std::uint64_t> before;
      for (const std::string& each : all) before[each] = used_by(each);
      const auto gone =
          pool.put(camera, page(id, bytes, static_cast<int>(id), 0.01 * static_cast<double>(below(100))));
      if (!gone) {
        ++refused;
        for (const std::string& each : all) ASSERT_EQ(pool.used_by(each), before[each]);
        continue;
      }
      std::map<std::string, std::uint64_t> lost;
      for (const std::uint64_t each : *gone) {
        const auto entry = there.extract(each);
        ASSERT_FALSE(entry.empty());
        lost[entry.mapped().first] += entry.mapped().second;
      }
      there[id] = {camera, bytes};
      for (const auto& [whose, much] : lost) {
        if (whose == camera) continue;
        ++lost_by_others;
        ASSERT_GT(before[whose], pool.share_of(whose)) << "it gave of its own";
      }
      std::uint64_t used = 0;
      for (const std::string& each : all) {
        ASSERT_EQ(pool.used_by(each), used_by(each));
        used += used_by(each);
      }
      ASSERT_EQ(pool.used(), used);
      ASSERT_LE(used, pool.bytes());
    }
    EXPECT_GT(refused, 10U);
    EXPECT_GT(lost_by_others, 100U);
  }
}

}  // namespace
}  // namespace vigil::memory
