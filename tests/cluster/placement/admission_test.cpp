#include "cluster/placement/admission.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/fnv1a.h"
#include "tests/cluster/placement/fleets.h"
#include "tests/cluster/placement/no_numbers.h"

namespace vigil::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr double kNear = 1e-6;

const std::vector<AdmissionRung> kLadder = {
    {"full", 4}, {"fewer frames", 3}, {"more pruning", 2}, {"longer stride", 1}};

AdmissionItem item(const std::string& name, std::int64_t priority, std::uint64_t added,
                   std::vector<AdmissionRung> ladder = kLadder) {
  return {name, priority, added, std::move(ladder)};
}

/// "a0 b2 c-": the rung of each; - for refused.
std::string rungs(const Admission& admission) {
  std::string text;
  for (const Admitted& each : admission.items)
    text += (text.empty() ? "" : " ") + each.item + (each.rung ? std::to_string(*each.rung) : "-");
  return text;
}

std::string why_of(const Admission& admission, const std::string& name) {
  for (const Admitted& each : admission.items)
    if (each.item == name) return why(each, admission);
  return "not there";
}

std::vector<AdmissionItem> adopted(std::vector<AdmissionItem> items, const Admission& admission) {
  for (AdmissionItem& each : items) {
    for (const Admitted& admitted : admission.items) {
      if (admitted.item != each.name) continue;
      using State = AdmissionBefore::State;
      each.before = {admitted.rung ? State::admitted : State::refused, admitted.rung.value_or(0)};
    }
  }
  return items;
}

/// A fleet whose capacity changes.
class Admitting {
 public:
  explicit Admitting(std::vector<AdmissionItem> items) : items_(std::move(items)) {}

  std::string at(double capacity, double margin = 0.05) {
    last_ = admit(items_, capacity, {margin});
    items_ = adopted(items_, last_);
    return rungs(last_);
  }
  void add(AdmissionItem added) { items_.push_back(std::move(added)); }
  std::string why(const std::string& name) const { return why_of(last_, name); }

 private:
  std::vector<AdmissionItem> items_;
  Admission last_;
};

TEST(Admission, EverythingIsFullWhereThereIsRoom) {
  const Admission admission = admit({item("a", 0, 1), item("b", 0, 2)}, 8, {});
  EXPECT_EQ(rungs(admission), "a0 b0");
  EXPECT_EQ(admission.load, 8);
  EXPECT_EQ(admission.wanted, 8);
  EXPECT_EQ(why_of(admission, "a"), "full");
}

TEST(Admission, LowersTheLeastImportantFirstAndThenTheNewest) {
  const std::vector<AdmissionItem> items = {item("a", 1, 1), item("b", 0, 2), item("c", 0, 3),
                                            item("d", 1, 4)};
  const auto at = [&](double capacity) { return rungs(admit(items, capacity, {})); };
  EXPECT_EQ(at(16), "a0 b0 c0 d0");
  EXPECT_EQ(at(15), "a0 b0 c1 d0");
  EXPECT_EQ(at(14), "a0 b1 c1 d0") << "one rung at a time across equals";
  EXPECT_EQ(at(13), "a0 b1 c2 d0");
  EXPECT_EQ(at(12), "a0 b2 c2 d0");
  EXPECT_EQ(at(10), "a0 b3 c3 d0");
  EXPECT_EQ(at(9), "a0 b3 c3 d1") << "now the more important ones";
  EXPECT_EQ(at(4), "a3 b3 c3 d3") << "nothing is refused before all are at the least";
  EXPECT_EQ(at(3), "a3 b3 c- d3");
  EXPECT_EQ(at(2), "a3 b- c- d3");
  EXPECT_EQ(at(1), "a3 b- c- d-");
  EXPECT_EQ(at(0.5), "a- b- c- d-");
  EXPECT_EQ(at(0), "a- b- c- d-");
  EXPECT_EQ(why_of(admit(items, 13, {}), "c"), "more pruning: the fleet has room for 13 of 16");
  EXPECT_EQ(why_of(admit(items, 2.5, {}), "c"),
            "refused: the fleet has room for 2.5 of 16, with all at the least");
}

TEST(Admission, WhatIsTooLargeKeepsNothingElseOut) {
  const std::vector<AdmissionItem> items = {item("large", 9, 1, {{"full", 12}}), item("a", 5, 2),
                                            item("b", 0, 3)};
  EXPECT_EQ(rungs(admit(items, 10, {})), "a0 b0 large-");
  EXPECT_EQ(rungs(admit(items, 12, {})), "a- b- large0");
  // What has no place beside it goes, and what is smaller stays.
  EXPECT_EQ(rungs(admit({item("a", 2, 1, {{"full", 8}}), item("b", 1, 2, {{"full", 8}}),
                         item("c", 0, 3, {{"full", 2}})},
                        10, {})),
            "a0 b- c0");
}

TEST(Admission, RaisesOnlyWithRoomToSpare) {
  Admitting fleet({item("a", 0, 1), item("b", 0, 2), item("c", 0, 3)});
  EXPECT_EQ(fleet.at(12), "a0 b0 c0");
  EXPECT_EQ(fleet.at(10), "a0 b1 c1");
  EXPECT_EQ(fleet.at(11), "a0 b1 c1") << "b would fit, but for the margin";
  EXPECT_EQ(fleet.why("b"), "fewer frames: until there is room to spare");
  EXPECT_EQ(fleet.why("c"), "fewer frames: the fleet has room for 11 of 12");
  EXPECT_EQ(fleet.at(11.6), "a0 b0 c1");
  EXPECT_EQ(fleet.at(12), "a0 b0 c1");
  EXPECT_EQ(fleet.at(12.7), "a0 b0 c0");
  EXPECT_EQ(fleet.at(12), "a0 b0 c0") << "and stays until it does not fit";
}

TEST(Admission, LetsInAgainOnlyWithRoomToSpare) {
  Admitting fleet({item("a", 0, 1), item("b", 0, 2), item("c", 0, 3)});
  EXPECT_EQ(fleet.at(2), "a3 b3 c-");
  EXPECT_EQ(fleet.at(3), "a3 b3 c-");
  EXPECT_EQ(fleet.why("c"), "refused: until there is room to spare");
  EXPECT_EQ(fleet.at(3.2), "a3 b3 c3");
  EXPECT_EQ(fleet.at(3), "a3 b3 c3");
  // One that comes anew does not wait for that.
  fleet.add(item("d", 0, 4));
  EXPECT_EQ(fleet.at(4), "a3 b3 c3 d3");
}

TEST(Admission, NothingFlapsWithinTheMargin) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<AdmissionItem> items;
    double wanted = 0;
    for (int i = 0; i < 30; ++i) {
      const double load = 1 + static_cast<double>(random() % 40) / 10;
      wanted += load;
      const auto priority = static_cast<std::int64_t>(random() % 3);
      items.push_back(item("camera-" + std::to_string(i), priority, random() % 10,
                           {{"full", load}, {"half", load / 2}, {"least", load / 5}}));
    }
    // Around any capacity, those where some are refused, too.
    const double middle = wanted * static_cast<double>(5 + random() % 100) / 100;
    Admitting fleet(items);
    // The smallest capacity decides, once it has come.
    fleet.at(middle * 0.952);
    const std::string rungs_then = fleet.at(middle * 0.952);
    int changes = 0;
    for (int call = 0; call < 100; ++call) {
      const double now = 0.952 + 0.048 * static_cast<double>(random() % 1001) / 1000;
      changes += fleet.at(middle * now) == rungs_then ? 0 : 1;
    }
    EXPECT_EQ(changes, 0) << seed;
  }
}

/// Any items, before and capacity: what fits, in any order of the input.
TEST(Admissions, NeverExceedTheCapacityAndTellOfEveryItem) {
  std::uint64_t print = base::kFnv1aStart;
  int refused = 0, lowered = 0, held = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<AdmissionItem> items;
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      AdmissionItem each{"camera-" + std::to_string(i)};
      each.priority = static_cast<std::int64_t>(random() % 3) - 1;
      each.added = random() % 5;
      double load = static_cast<double>(random() % 50) / 10;
      for (std::uint64_t rung = 1 + random() % 4; rung > 0; --rung) {
        each.ladder.push_back({"rung-" + std::to_string(rung), load});
        load *= one_of<double>(random, {0, 0.5, 0.9, 1});
      }
      using State = AdmissionBefore::State;
      each.before.state = one_of<State>(random, {State::added, State::admitted, State::refused});
      each.before.rung = random() % 6;
      items.push_back(each);
    }
    const double capacity = static_cast<double>(random() % 100);
    const AdmissionOptions options{one_of<double>(random, {0, 0.05, 0.5, 1})};
    const Admission admission = admit(items, capacity, options);
    ASSERT_LE(admission.load, capacity) << seed;
    ASSERT_THAT(admission.items, SizeIs(items.size())) << seed;
    double load = 0;
    for (const Admitted& each : admission.items) {
      const auto found = std::find_if(items.begin(), items.end(),
                                      [&](const AdmissionItem& other) { return other.name == each.item; });
      load += each.load;
      refused += each.rung ? 0 : 1;
      lowered += each.cause == AdmissionCause::lowered ? 1 : 0;
      held += each.cause == AdmissionCause::held ? 1 : 0;
      ASSERT_FALSE(why(each, admission).empty());
      if (!each.rung) continue;
      ASSERT_EQ(each.name, found->ladder.at(*each.rung).name);
      ASSERT_NEAR(each.load, found->ladder.at(*each.rung).load, kNear);
    }
    ASSERT_NEAR(load, admission.load, kNear) << seed;

    std::shuffle(items.begin(), items.end(), random);
    ASSERT_EQ(admit(items, capacity, options).items, admission.items) << seed;
    print = base::fnv1a(rungs(admission), print);
    // Nobody waits for ever: with room to spare all are full.
    const Admission plenty = admit(items, 1e5, options);
    for (const Admitted& each : plenty.items)
      ASSERT_TRUE(options.margin == 1 || each.rung == 0U) << seed << ' ' << each.item;
  }
  EXPECT_GT(refused, 500);
  EXPECT_GT(lowered, 500);
  EXPECT_GT(held, 100);
  EXPECT_EQ(print, 5761325434489962888U) << "a build that differs would lower others when it takes over";
}

TEST(Admission, RefusesLaddersOfNoSense) {
  for (const auto& ladder : std::vector<std::vector<AdmissionRung>>{{},
                                                                    {{"full", kNaN}},
                                                                    {{"full", -1}},
                                                                    {{"full", kInfinity}},
                                                                    {{"full", 1}, {"more", 2}},
                                                                    {{"full", 1}, {"less", -1}}}) {
    const Admission admission = admit({item("bad", 9, 1, ladder), item("good", 0, 2)}, 4, {});
    EXPECT_EQ(rungs(admission), "bad- good0");
    EXPECT_EQ(why_of(admission, "bad"),
              "refused: its ladder of loads is empty, ascends, or has a load that is none");
  }
}

TEST(Admission, RefusesCapacitiesAndOptionsOfNoSense) {
  EXPECT_THROW(admit({}, kNaN, {}), std::invalid_argument);
  EXPECT_THROW(admit({}, -1, {}), std::invalid_argument);
  EXPECT_THROW(admit({}, 1, {kNaN}), std::invalid_argument);
  EXPECT_THROW(admit({}, 1, {1.5}), std::invalid_argument);
  EXPECT_THAT(admit({}, 0, {}).items, IsEmpty());
  EXPECT_EQ(rungs(admit({item("a", 0, 1)}, kInfinity, {})), "a0");
}

TEST(Admission, OfTwoItemsWithANameTheMoreImportantCounts) {
  const Admission admission = admit({item("a", 0, 1), item("a", 3, 2, {{"full", 2}})}, 4, {});
  EXPECT_EQ(rungs(admission), "a0");
  EXPECT_EQ(admission.load, 2);
  EXPECT_THAT(admission.faults, ElementsAre("item a: there are two of this name"));
}

TEST(Admission, ARungThatIsNotThereAnyMoreIsTheLast) {
  AdmissionItem shrunk = item("a", 0, 1, {{"full", 4}, {"least", 1}});
  shrunk.before = {AdmissionBefore::State::admitted, 7};
  EXPECT_EQ(rungs(admit({shrunk}, 4, {})), "a1");
  EXPECT_EQ(rungs(admit({shrunk}, 5, {})), "a0");
}

}  // namespace
}  // namespace vigil::cluster
