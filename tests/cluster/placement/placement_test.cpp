#include "cluster/placement/placement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/placement/rendezvous.h"
#include "tests/cluster/placement/fleets.h"
#include "tests/cluster/placement/no_numbers.h"

namespace vigil::cluster {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string why_of(const Placement& placement, const std::string& item) {
  return why(place_of(placement, item), "camera");
}

/// In which the item is at rest.
std::vector<PlacementItem> settled(const std::vector<PlacementNode>& nodes, std::vector<PlacementItem> items,
                                   const PlacementOptions& options = {}) {
  Placement placement = place(nodes, items, options);
  for (int call = 0; call < 1000 && !placement.moves.empty(); ++call) {
    items = adopted(items, placement);
    placement = place(nodes, items, options);
  }
  EXPECT_THAT(placement.moves, IsEmpty());
  return items;
}

std::string first_choice(const std::vector<PlacementNode>& nodes, const std::string& item) {
  std::vector<Rendezvous::Node> list;
  for (const PlacementNode& node : nodes) list.push_back({node.name, std::llround(node.weight * 1e6)});
  return nodes[*Rendezvous(list).first(Rendezvous::hash_of(item))].name;
}

TEST(Placement, TellsWhyAnItemIsWhereItIs) {
  std::vector<PlacementNode> nodes = even_nodes(3);
  const std::string first = first_choice(nodes, "yard");
  std::vector<PlacementItem> items = {{"yard", 1}};
  Placement placement = place(nodes, items, {});
  EXPECT_EQ(place_of(placement, "yard").node, first);
  EXPECT_EQ(why_of(placement, "yard"), "first choice");

  items = adopted(items, placement);
  placement = place(nodes, items, {});
  EXPECT_EQ(why_of(placement, "yard"), "keeps its node");
  EXPECT_THAT(placement.moves, IsEmpty());

  // The node is lost, and the next choice is full.
  std::vector<PlacementNode> left = nodes;
  std::erase_if(left, [&](const PlacementNode& node) { return node.name == first; });
  const std::string second = first_choice(left, "yard");
  for (PlacementNode& node : left) node.capacity = node.name == second ? 0.5 : 10;
  placement = place(left, items, {});
  EXPECT_EQ(why_of(placement, "yard"),
            "its node " + first + " is gone; second choice: " + second + " is full");
  EXPECT_THAT(placement.moves, SizeIs(1));

  for (PlacementNode& node : left) node.capacity = 0.5;
  placement = place(left, items, {});
  EXPECT_EQ(why_of(placement, "yard"), "its node " + first + " is gone; no capacity");
  EXPECT_EQ(place_of(placement, "yard").node, "");
  EXPECT_THAT(placement.moves, SizeIs(1)) << "it is nowhere now, which is told";

  for (PlacementNode& node : nodes) node.state = PlacementNodeState::gone;
  placement = place(nodes, items, {});
  EXPECT_EQ(why_of(placement, "yard"), "its node " + first + " is gone; no node with the role camera");
  EXPECT_EQ(why(place_of(placement, "yard"), "stream"),
            "its node " + first + " is gone; no node with the role stream");
}

TEST(Placement, TellsWhichChoiceItIs) {
  Place place;
  place.item = "yard";
  place.node = "c";
  place.cause = PlaceCause::starts;
  place.choice = PlaceChoice::preferred;
  place.full = "a";
  const auto of_rank = [&](std::size_t rank) {
    place.rank = rank;
    return why(place, "camera");
  };
  EXPECT_EQ(of_rank(1), "first choice");
  EXPECT_EQ(of_rank(2), "second choice: a is full");
  EXPECT_EQ(of_rank(3), "third choice: a and another are full");
  EXPECT_EQ(of_rank(5), "fifth choice: a and 3 others are full");
  EXPECT_EQ(of_rank(12), "choice 12: a and 10 others are full");
  place.has_share = true;
  EXPECT_EQ(of_rank(2), "second choice: a has its share");
  EXPECT_EQ(of_rank(3), "third choice: a and another have their shares or are full");
}

TEST(Placement, ANodeWithoutABoundIsNeverFull) {
  std::vector<PlacementNode> nodes = even_nodes(4);
  for (PlacementNode& node : nodes) node.capacity = std::numeric_limits<double>::infinity();
  std::vector<PlacementItem> items;
  for (int i = 0; i < 100; ++i) items.push_back({"camera-" + std::to_string(i), 1});
  const Placement placement = place(nodes, items, {});
  std::size_t others = 0;
  for (const Place& place : placement.places) {
    if (place.rank > 1) ++others;
    EXPECT_THAT(why(place, "camera"), Not(HasSubstr("is full")));
  }
  EXPECT_GT(others, 0U) << "some had to go elsewhere";
}

TEST(Placement, OfNothingIsNothing) {
  EXPECT_EQ(place({}, {}, {}), Placement{});
  const Placement nodes_alone = place(even_nodes(2), {}, {});
  EXPECT_THAT(nodes_alone.places, IsEmpty());
  EXPECT_EQ(load_of(nodes_alone, "node-0").share, 0);
  const Placement items_alone = place({}, even_items(2), {});
  EXPECT_THAT(items_alone.moves, IsEmpty()) << "they were nowhere before";
  EXPECT_EQ(why_of(items_alone, "camera-1"), "no node with the role camera");
}

TEST(Placement, OneNodeTakesWhatFits) {
  const Placement placement = place({{"only", 1, 3}}, even_items(5), {});
  EXPECT_EQ(load_of(placement, "only").load, 3);
  EXPECT_EQ(std::count_if(placement.places.begin(), placement.places.end(),
                          [](const Place& place) { return place.choice == PlaceChoice::no_capacity; }),
            2);
}

TEST(Placement, CapacityThatIsAllZeroTakesOnlyWhatIsNothing) {
  const Placement placement = place(even_nodes(3, 0), {{"blind", 0}, {"yard", 1}}, {});
  EXPECT_EQ(why_of(placement, "yard"), "no capacity");
  EXPECT_EQ(why_of(placement, "blind"), "first choice");
}

TEST(Placement, RefusesLoadsThatAreNone) {
  for (const double load : {kNaN, -1.0, -kInfinity, kInfinity, 1.0000001e6}) {
    const std::vector<PlacementItem> items = {{"bad", load, "node-0"}, {"good", 1, "node-0"}};
    const Placement placement = place(even_nodes(2), items, {});
    EXPECT_EQ(why_of(placement, "bad"), "its load is no number from 0 to a million") << load;
    EXPECT_EQ(place_of(placement, "bad").node, "");
    EXPECT_THAT(placement.moves, ElementsAre(0)) << "it had a node";
    EXPECT_EQ(why_of(placement, "good"), "keeps its node");
    EXPECT_EQ(load_of(placement, "node-0").load, 1);
  }
}

TEST(Placement, DoesNotUseNodesOfNoSense) {
  for (const double value : {kNaN, -1.0}) {
    std::vector<PlacementNode> nodes = even_nodes(3);
    nodes[0].capacity = value;
    nodes[1].weight = value;
    const Placement placement = place(nodes, even_items(20), {});
    EXPECT_EQ(load_of(placement, "node-2").items, 20U);
    EXPECT_THAT(placement.nodes, SizeIs(1));
    EXPECT_THAT(placement.faults, ElementsAre("node node-0: its capacity makes no sense, so it is not used",
                                              "node node-1: its weight makes no sense, so it is not used"));
  }
  for (const double weight : {kInfinity, 1e-7, 1.1e6})
    EXPECT_THAT(place({{"a", weight, 1}}, {}, {}).faults, SizeIs(1)) << weight;
}

TEST(Placement, OfTwoNodesWithANameTheWeakerCounts) {
  const PlacementNode weak{"twin", 1, 2};
  const PlacementNode strong{"twin", 1, 50};
  const PlacementNode gone{"twin", 1, 50, PlacementNodeState::gone};
  const PlacementNode other{"other", 1, 50};
  for (const auto& nodes : {std::vector{weak, strong, other}, std::vector{other, strong, weak}}) {
    const Placement placement = place(nodes, even_items(20), {});
    EXPECT_EQ(load_of(placement, "twin").load, 2);
    EXPECT_THAT(placement.faults, ElementsAre("node twin: there are two of this name"));
  }
  EXPECT_EQ(load_of(place({strong, gone, other}, even_items(20), {}), "other").load, 20);
}

TEST(Placement, OfTwoItemsWithANameTheLargerCounts) {
  const Placement placement = place({{"only", 1, 10}}, {{"yard", 1}, {"yard", 3}, {"yard", kNaN}}, {});
  EXPECT_THAT(placement.places, SizeIs(1));
  EXPECT_EQ(load_of(placement, "only").load, 3);
  EXPECT_THAT(placement.faults,
              ElementsAre("item yard: there are two of this name", "item yard: there are two of this name"));
}

TEST(Placement, RefusesOptionsOfNoSense) {
  for (const double slack : {-0.1, 1.1, kNaN})
    EXPECT_THROW(place(even_nodes(2), {}, {.slack = slack}), std::invalid_argument) << slack;
}

TEST(Placement, ALostNodeMovesItsOwnItemsAlone) {
  std::vector<PlacementNode> nodes = even_nodes(40);
  const std::vector<PlacementItem> items = settled(nodes, even_items(4000));
  for (const char* lost : {"node-0", "node-17", "node-39"}) {
    std::vector<PlacementNode> left = nodes;
    std::erase_if(left, [&](const PlacementNode& node) { return node.name == lost; });
    const Placement placement = place(left, items, {.most_moves = 4000});
    std::map<std::string, int> receivers;
    for (const std::size_t move : placement.moves) {
      const Place& place = placement.places[move];
      EXPECT_EQ(place.before, lost);
      EXPECT_EQ(place.cause, PlaceCause::node_gone);
      ++receivers[place.node];
    }
    EXPECT_EQ(placement.rebalanced, 0U);
    EXPECT_GE(receivers.size(), 30U) << "all others take some of it";
  }
}

TEST(Placement, ANodeThatIsAwayForAMomentGetsItsItemsBack) {
  std::vector<PlacementNode> nodes = even_nodes(10);
  const std::vector<PlacementItem> items = settled(nodes, even_items(1000));
  std::vector<PlacementNode> left = nodes;
  left.erase(left.begin());
  const std::vector<PlacementItem> without = settled(left, items);
  const std::vector<PlacementItem> again = settled(nodes, without);
  int own = 0, there = 0;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (again[i].node != "node-0") continue;
    ++there;
    own += items[i].node == "node-0" ? 1 : 0;
  }
  EXPECT_GE(there, 95);
  EXPECT_GE(own, there / 2) << "it takes first what would rather be there";
}

TEST(Placement, ANewNodeTakesItsShareInSmallSteps) {
  std::vector<PlacementNode> nodes = even_nodes(9);
  std::vector<PlacementItem> items = settled(nodes, even_items(1000));
  nodes.push_back({"new", 1, 1e6});
  std::size_t moved = 0;
  std::vector<double> loads;
  for (int call = 0; call < 20; ++call) {
    const Placement placement = place(nodes, items, {.most_moves = 20});
    EXPECT_LE(placement.moves.size(), 20U);
    for (const std::size_t move : placement.moves) {
      EXPECT_EQ(placement.places[move].node, "new");
      EXPECT_EQ(why(placement.places[move], "camera"), "moved to even out");
    }
    EXPECT_EQ(placement.has_more_moves, call < 4) << call;
    moved += placement.moves.size();
    loads.push_back(load_of(placement, "new").load);
    items = adopted(items, placement);
  }
  EXPECT_EQ(loads[0], 20);
  EXPECT_EQ(loads[3], 80);
  EXPECT_NEAR(loads.back(), 98, 1) << "within half of the slack";
  EXPECT_EQ(static_cast<double>(moved), loads.back()) << "and nothing else moves";
}

TEST(Placement, WithoutMovesAnEmptyNodeStaysEmpty) {
  std::vector<PlacementNode> nodes = even_nodes(3);
  const std::vector<PlacementItem> items = settled(nodes, even_items(300));
  nodes.push_back({"new", 1, 1e6});
  Placement placement = place(nodes, items, {.most_moves = 0});
  EXPECT_THAT(placement.moves, IsEmpty());
  EXPECT_TRUE(placement.has_more_moves);
  // What starts goes there without that.
  std::vector<PlacementItem> more = items;
  for (int i = 0; i < 50; ++i) more.push_back({"late-" + std::to_string(i), 1});
  placement = place(nodes, more, {.most_moves = 0});
  EXPECT_EQ(load_of(placement, "new").load, 50);
  EXPECT_THAT(why_of(placement, "late-0"), ::testing::AnyOf("first choice", "new had the least",
                                                            HasSubstr("full"), HasSubstr("has its share")));
}

TEST(Placement, WhereAllThatHaveRoomAreBarredAnItemStays) {
  const std::vector<PlacementNode> nodes = {{"full", 1, 1}, {"here", 1, 1e6}, {"there", 1, 1e6}};
  const PlacementBars bars{.closed = {"here", "there"}};
  std::vector<PlacementItem> items = {{"first", 1, "full"}};
  for (int i = 0; i < 50; ++i) items.push_back({"item-" + std::to_string(i), 1, "here", &bars});
  const Placement placement = place(nodes, items, {.most_moves = 1000});
  EXPECT_THAT(placement.moves, IsEmpty());
  EXPECT_EQ(load_of(placement, "here").load, 50);
  // One that is nowhere is better there than nowhere.
  items.push_back({"new", 1, "", &bars});
  EXPECT_NE(why_of(place(nodes, items, {.most_moves = 1000}), "new"), "no capacity");
  EXPECT_EQ(load_of(place(nodes, items, {.most_moves = 1000}), "full").load, 1);
}

TEST(Placement, WhatIsClosedToAllHasNoShareSoThatTheOthersAreEven) {
  const PlacementBars bars{.closed = {"closed"}};
  const std::vector<PlacementNode> nodes = {{"full", 1, 1e6}, {"closed", 1, 1e6}, {"empty", 1, 1e6}};
  std::vector<PlacementItem> items;
  for (int i = 0; i < 90; ++i) items.push_back({"item-" + std::to_string(i), 1, "full", &bars});
  const Placement placement = place(nodes, items, {.most_moves = 1000});
  EXPECT_EQ(load_of(placement, "closed").load, 0);
  EXPECT_NEAR(load_of(placement, "empty").load, 45, 3);
}

TEST(Placement, ADrainingNodesItemsGoFirstAndNoneComes) {
  std::vector<PlacementNode> nodes = even_nodes(5);
  std::vector<PlacementItem> items = settled(nodes, even_items(500));
  nodes[0].state = PlacementNodeState::draining;
  nodes.push_back({"new", 1, 1e6});
  const double at_first = load_of(place(nodes, items, {.most_moves = 0}), "node-0").load;
  for (int call = 1; call <= 20; ++call) {
    const Placement placement = place(nodes, items, {.most_moves = 10});
    const double left = load_of(placement, "node-0").load;
    EXPECT_EQ(left, std::max(at_first - 10 * call, 0.0));
    EXPECT_TRUE(placement.has_more_moves || left == 0);
    for (const std::size_t move : placement.moves) {
      const Place& moved = placement.places[move];
      if (left > 0) {
        EXPECT_EQ(moved.before, "node-0") << "before anything is evened out";
      }
      EXPECT_NE(moved.node, "node-0");
      if (moved.before == "node-0") {
        EXPECT_THAT(why(moved, "camera"), StartsWith("its node node-0 drains; "));
      }
    }
    for (const Place& place : placement.places)
      if (place.node == "node-0") {
        EXPECT_EQ(why(place, "camera"), "keeps its node, which drains");
      }
    items = adopted(items, placement);
  }
}

TEST(Placement, ADrainTellsWhetherMoreIsToCome) {
  std::vector<PlacementNode> nodes = even_nodes(5);
  const std::vector<PlacementItem> items = settled(nodes, even_items(500));
  nodes[0].state = PlacementNodeState::draining;
  const auto own = static_cast<std::size_t>(
      std::count_if(items.begin(), items.end(), [](const auto& item) { return item.node == "node-0"; }));
  EXPECT_TRUE(place(nodes, items, {.most_moves = own - 1}).has_more_moves);
  EXPECT_FALSE(place(nodes, items, {.most_moves = own}).has_more_moves);
}

TEST(Placement, WhatCannotLeaveADrainingNodeStays) {
  std::vector<PlacementNode> nodes = {{"full", 1, 2}, {"drains", 1, 2, PlacementNodeState::draining}};
  const std::vector<PlacementItem> items = {{"a", 1, "full"}, {"b", 1, "full"}, {"c", 1, "drains"}};
  const Placement placement = place(nodes, items, {});
  EXPECT_THAT(placement.moves, IsEmpty());
  EXPECT_FALSE(placement.has_more_moves) << "no later call could do more";
  EXPECT_EQ(why_of(placement, "c"), "keeps its node, which drains");
  // A node of weight 0 drains, too.
  nodes = {{"a", 1, 10}, {"nothing", 0, 10}};
  EXPECT_EQ(place_of(place(nodes, {{"yard", 1, "nothing"}}, {}), "yard").node, "a");
}

TEST(Placement, ANodeThatLosesCapacityShedsAsFewAsPossible) {
  const std::vector<PlacementItem> items = {
      {"a", 1, "small"}, {"b", 4, "small"}, {"c", 2, "small"}, {"d", 8, "small"}};
  const auto left_with = [&](double capacity) {
    const Placement placement =
        place({{"small", 1, capacity}, {"large", 1, 100}}, items, {.slack = 1, .most_moves = 0});
    std::string left;
    for (const Place& place : placement.places) {
      if (place.node == "small") left += place.item;
      if (place.node != "small") {
        EXPECT_THAT(why(place, "camera"), StartsWith("its node small has no capacity for it; "));
      }
    }
    return left;
  };
  EXPECT_EQ(left_with(15), "abcd");
  EXPECT_EQ(left_with(14), "bcd") << "1 is enough";
  EXPECT_EQ(left_with(11.5), "acd") << "the smallest that is enough";
  EXPECT_EQ(left_with(5), "ab") << "the largest first: 8, then the smallest that is enough, 2";
  EXPECT_EQ(left_with(0), "");
}

TEST(Placement, ANodeWithoutCapacityForManyShedsItsLargest) {
  std::vector<PlacementItem> items = {{"large-1", 6, "small"}, {"large-2", 6, "small"}};
  for (int i = 0; i < 6; ++i) items.push_back({"item-" + std::to_string(i), 0.5, "small"});
  const Placement placement =
      place({{"small", 1, 4}, {"other", 1, 100}}, items, {.slack = 1, .most_moves = 0});
  EXPECT_THAT(placement.moves, SizeIs(2));
  EXPECT_EQ(place_of(placement, "large-1").node, "other");
  EXPECT_EQ(place_of(placement, "large-2").node, "other");
}

TEST(Placement, LargeItemsComeFirstSoThatSmallOnesFitBesideThem) {
  for (int i = 0; i < 20; ++i) {
    const std::string name = "item-" + std::to_string(i);
    const std::vector<PlacementItem> items = {
        {name + "a", 2}, {name + "b", 4}, {name + "c", 2}, {name + "d", 4}};
    EXPECT_THAT(place(even_nodes(2, 6), items, {.slack = 1}).moves, SizeIs(4)) << name;
  }
}

TEST(Placement, WhatHasToBePlacedAnywayEvensOutForNothing) {
  const Placement placement = place(even_nodes(50), even_items(5000), {.most_moves = 0});
  EXPECT_FALSE(placement.has_more_moves);
  EXPECT_EQ(placement.rebalanced, 0U);
  for (const NodeLoad& node : placement.nodes) EXPECT_NEAR(node.load, 100, 2.5) << node.node;
  const auto even = std::find_if(placement.places.begin(), placement.places.end(),
                                 [](const Place& place) { return place.choice == PlaceChoice::emptiest; });
  ASSERT_NE(even, placement.places.end());
  EXPECT_EQ(why(*even, "camera"), even->node + " had the least");
}

TEST(Placement, WhatHadAPlaceComesBeforeWhatIsNew) {
  std::vector<PlacementItem> items = {{"new", 5}, {"old", 1, "lost"}};
  const Placement placement = place({{"only", 1, 5}}, items, {});
  EXPECT_EQ(place_of(placement, "old").node, "only");
  EXPECT_EQ(why_of(placement, "new"), "no capacity");
}

TEST(Placement, SharesAreByWeightUpToTheCapacity) {
  const std::vector<PlacementNode> nodes = {{"a", 1, kInfinity}, {"b", 2, kInfinity}, {"c", 5, 100}};
  const Placement placement = place(nodes, even_items(400), {});
  EXPECT_EQ(load_of(placement, "a").share, 100);
  EXPECT_EQ(load_of(placement, "b").share, 200);
  EXPECT_EQ(load_of(placement, "c").share, 100) << "its capacity";
  EXPECT_EQ(load_of(placement, "a").bound, 105);
  EXPECT_EQ(load_of(placement, "c").bound, 100);
  EXPECT_NEAR(load_of(placement, "a").load, 100, 5);
  EXPECT_NEAR(load_of(placement, "b").load, 200, 10);
  EXPECT_NEAR(load_of(placement, "c").load, 100, 5);
}

TEST(Placement, WhereNoBoundHasRoomTheEmptiestNodeTakesIt) {
  const Placement placement = place(even_nodes(2), even_items(3), {.slack = 0});
  EXPECT_EQ(load_of(placement, "node-0").load + load_of(placement, "node-1").load, 3);
  const auto over = std::find_if(placement.places.begin(), placement.places.end(),
                                 [](const Place& place) { return place.choice == PlaceChoice::over_share; });
  ASSERT_NE(over, placement.places.end());
  EXPECT_EQ(why(*over, "camera"), "all nodes have their share, and " + over->node + " the least");
}

/// Loads go up and down by less than the slack, and nothing moves for it.
TEST(Placement, SmallChangesMoveNothing) {
  const std::vector<PlacementNode> nodes = even_nodes(10);
  std::vector<PlacementItem> items = settled(nodes, even_items(1000));
  std::mt19937_64 random(7);
  for (int call = 0; call < 50; ++call) {
    for (PlacementItem& item : items) item.load = 0.99 + static_cast<double>(random() % 21) / 1000;
    EXPECT_THAT(place(nodes, items, {}).moves, IsEmpty());
  }
}

TEST(Placement, LargeNumbersDoNotOverflow) {
  const std::vector<PlacementNode> nodes = {{"a", 1e6, kInfinity}, {"b", 1e-6, 1e300}, {"c", 1e6, 1e9}};
  const Placement placement = place(nodes, even_items(2000, 1e6), {.slack = 1});
  EXPECT_NEAR(load_of(placement, "a").load + load_of(placement, "b").load + load_of(placement, "c").load, 2e9,
              1);
  EXPECT_NEAR(load_of(placement, "a").share, 1e9, 2);
  EXPECT_LE(load_of(placement, "c").load, 1e9);
}

TEST(Placement, LoadsAreCountedToAMillionth) {
  // Thirds, of which three fit in one.
  EXPECT_THAT(place({{"a", 1, 1}}, even_items(3, 0.333333), {}).moves, SizeIs(3));
  EXPECT_THAT(place({{"a", 1, 1}}, even_items(3, 1.0 / 3), {}).moves, SizeIs(2)) << "rounded up";
}

}  // namespace
}  // namespace vigil::cluster
