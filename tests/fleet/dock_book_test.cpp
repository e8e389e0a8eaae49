#include "fleet/dock/dock_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using TimePoint = base::Clock::TimePoint;

actors::WatchPtr watch(const std::string& camera, std::uint64_t fence, std::uint64_t change = 1) {
  auto settings = std::make_shared<actors::WatchSettings>();
  settings->name = camera;
  settings->version = actors::version_of(fence, change);
  return settings;
}

/// From its owner, to a node that computes all of it.
DockBook::Joined join(DockBook& book, const std::string& owner, const actors::WatchPtr& watch,
                      std::uint32_t own_generation) {
  return book.join(owner, {owner, "g", "g"}, watch, own_generation, true);
}

TEST(DockBook, LetsTheHighestFenceIn) {
  DockBook book;
  EXPECT_TRUE(join(book, "a", watch("gate", 5), 0).admitted);
  EXPECT_NE(book.brought("a", watch("gate", 5)->ref()), nullptr);
  const DockBook::Joined taken = join(book, "b", watch("gate", 7), 0);
  EXPECT_TRUE(taken.admitted);
  ASSERT_TRUE(taken.before);
  EXPECT_EQ(taken.before->owner, "a");
  EXPECT_EQ(book.brought("a", watch("gate", 5)->ref()), nullptr);
  EXPECT_NE(book.brought("b", watch("gate", 7, 3)->ref()), nullptr) << "a later change of its own";
  const DockBook::Joined late = join(book, "a", watch("gate", 6), 1);
  EXPECT_FALSE(late.admitted);
  EXPECT_EQ(late.fence, 7U);
  EXPECT_EQ(book.highest_fence(), 7U);
}

TEST(DockBook, FollowsTheFenceOfAnOwnerThatStays) {
  DockBook book;
  join(book, "a", watch("gate", 5), 3);
  EXPECT_EQ(book.brought("a", watch("gate", 9)->ref()), nullptr);
  const DockBook::Guest* const renewed = book.renew("a", watch("gate", 9));
  ASSERT_NE(renewed, nullptr);
  EXPECT_EQ(renewed->own_generation, 3U) << "it goes on";
  EXPECT_NE(book.brought("a", watch("gate", 9, 2)->ref()), nullptr);
  EXPECT_EQ(book.brought("a", watch("gate", 5)->ref()), nullptr) << "what it sent by the one before";
  EXPECT_EQ(book.highest_fence(), 9U);
  EXPECT_FALSE(join(book, "b", watch("gate", 7), 0).admitted);
  EXPECT_EQ(book.renew("a", watch("gate", 8)), nullptr) << "never back";
  EXPECT_EQ(book.renew("b", watch("gate", 11)), nullptr) << "another one has to join";
  EXPECT_EQ(book.renew("a", watch("yard", 11)), nullptr);
  EXPECT_TRUE(join(book, "b", watch("gate", 10), 0).admitted);
}

TEST(DockBook, DoesNotForgetAFenceWithTheCamera) {
  DockBook book;
  join(book, "b", watch("gate", 7), 0);
  book.end("gate");
  EXPECT_EQ(book.find("gate"), nullptr);
  EXPECT_FALSE(join(book, "a", watch("gate", 5), 0).admitted);
  EXPECT_TRUE(join(book, "a", watch("gate", 8), 0).admitted);
}

TEST(DockBook, LetsNoOtherNodeInByTheSameFence) {
  DockBook book;
  join(book, "a", watch("gate", 5), 0);
  EXPECT_FALSE(join(book, "b", watch("gate", 5), 0).admitted);
  EXPECT_TRUE(join(book, "a", watch("gate", 5), 1).admitted) << "its own next incarnation";
  EXPECT_TRUE(book.is_contested("b", watch("gate", 5, 9)->ref()));
  EXPECT_FALSE(book.is_contested("a", watch("gate", 5)->ref()));
  EXPECT_FALSE(book.is_contested("b", watch("gate", 6)->ref()));
  EXPECT_FALSE(book.is_contested("b", watch("yard", 5)->ref()));
  book.end("gate");
  EXPECT_FALSE(book.is_contested("b", watch("gate", 5)->ref())) << "nobody has it";
}

TEST(DockBook, CountsIncarnationsOverAllOwners) {
  DockBook book;
  const auto first = join(book, "a", watch("gate", 5), 3).generation;
  const auto second = join(book, "a", watch("gate", 5), 4).generation;
  const auto third = join(book, "b", watch("gate", 6), 0).generation;
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_EQ(book.find("gate")->own_generation, 0U);
}

TEST(DockBook, OfManyCamerasKeepsTheHighestFenceOfThoseThatItForgets) {
  DockBook book(8);
  for (std::uint64_t i = 1; i <= 100; ++i) {
    const std::string camera = "cam" + std::to_string(i);
    EXPECT_TRUE(book.admits(camera, i));
  }
  EXPECT_FALSE(book.admits("cam1", 0)) << "an owner of before it was forgotten";
  EXPECT_FALSE(book.admits("cam100", 99)) << "of those that are known, each has its own";
  EXPECT_TRUE(book.admits("cam100", 100));
  EXPECT_TRUE(book.admits("new", 101));
  EXPECT_EQ(book.highest_fence(), 101U);
  KnownFences fences(8);
  for (std::uint64_t i = 1; i <= 1000; ++i) fences.saw("cam" + std::to_string(i), i);
  EXPECT_LE(fences.size(), 9U);
  EXPECT_GE(fences.of("cam1"), 1U);
  EXPECT_EQ(fences.of("cam1000"), 1000U);
}

TEST(DockBook, KeepsCamerasOfANodeThatIsAwayForAWhile) {
  DockBook book;
  join(book, "a", watch("gate", 5), 0);
  join(book, "a", watch("yard", 5), 0);
  join(book, "b", watch("dock", 5), 0);
  book.leave("a", TimePoint(10s));
  book.leave("a", TimePoint(12s));
  EXPECT_THAT(book.overdue(TimePoint(14s), 5s), IsEmpty());
  EXPECT_TRUE(join(book, "a", watch("yard", 5), 1).admitted);
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("gate")) << "since it left first";
}

// The node with the stream, whose cameras others encode.
TEST(DockBook, HoldsFencesOfOwnersWhoeverBringsThem) {
  DockBook book;
  EXPECT_TRUE(book.join("v1", {"a", "v1", "g"}, watch("gate", 5), 1, true).admitted);
  EXPECT_EQ(book.brought("a", watch("gate", 5)->ref()), nullptr) << "it is not the owner that sends";
  ASSERT_NE(book.brought("v1", watch("gate", 5)->ref()), nullptr);
  const auto taken = book.join("v2", {"b", "v2", "g"}, watch("gate", 6), 1, true);
  EXPECT_TRUE(taken.admitted);
  EXPECT_EQ(taken.before, (Passage{"a", "v1", "g"})) << "who is to hear it";
  EXPECT_EQ(book.brought("v1", watch("gate", 5)->ref()), nullptr);
  EXPECT_FALSE(book.join("v1", {"a", "v1", "g"}, watch("gate", 5), 2, true).admitted);
  EXPECT_FALSE(book.join("v2", {"a", "v2", "g"}, watch("gate", 5), 2, true).admitted) << "nor by another way";
}

TEST(DockBook, LetsAnotherNodeBringACameraOfTheSameOwner) {
  DockBook book;
  book.join("v1", {"a", "v1", "g"}, watch("gate", 5), 1, true);
  const auto taken = book.join("v2", {"a", "v2", "g"}, watch("gate", 5), 1, true);
  EXPECT_TRUE(taken.admitted);
  EXPECT_FALSE(taken.before) << "its owner is the same";
  EXPECT_EQ(book.brought("v1", watch("gate", 5)->ref()), nullptr);
  EXPECT_FALSE(book.join("v3", {"b", "v3", "g"}, watch("gate", 5), 1, true).admitted);
}

TEST(DockBook, TellsTheWaysOfOneNodeApart) {
  DockBook book;
  book.join("a", {"a", "g", "s1"}, watch("gate", 5), 0, true);
  book.join("a", {"a", "g", "s2"}, watch("yard", 5), 0, true);
  book.join("a", {"a", "g", "g"}, watch("dock", 5), 0, true);
  book.leave("a", {"a", "g", "s2"}, TimePoint(10s));
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("yard"));
  book.lose("gate", TimePoint(10s));
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("gate", "yard"));
  book.leave("a", TimePoint(10s));
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("dock", "gate", "yard"));
}

TEST(DockBook, TheOwnerBeforeBringsTheCameraUntilTheNextOneDoes) {
  DockBook book;
  join(book, "a", watch("gate", 5), 3);
  EXPECT_EQ(book.brought_before("a", watch("gate", 5)->ref(), 3), nullptr) << "it is the owner";
  const auto generation = book.find("gate")->generation;
  EXPECT_EQ(join(book, "b", watch("gate", 6), 0).before->owner, "a");
  const DockBook::Former* former = book.brought_before("a", watch("gate", 5, 2)->ref(), 3);
  ASSERT_NE(former, nullptr);
  EXPECT_EQ(former->generation, generation);
  EXPECT_EQ(former->passage.owner, "a");
  EXPECT_EQ(book.brought_before("a", watch("gate", 5)->ref(), 4), nullptr) << "of another incarnation";
  EXPECT_EQ(book.brought_before("a", watch("gate", 4)->ref(), 3), nullptr);
  EXPECT_EQ(book.brought_before("b", watch("gate", 5)->ref(), 3), nullptr);
  EXPECT_FALSE(join(book, "a", watch("gate", 5), 5).admitted);

  join(book, "b", watch("gate", 6), 1);
  join(book, "c", watch("gate", 7), 0);
  EXPECT_NE(book.brought_before("a", watch("gate", 5)->ref(), 3), nullptr)
      << "as long as those after it bring nothing";
  EXPECT_EQ(book.brought_before("b", watch("gate", 6)->ref(), 1), nullptr);
  book.drop_former("gate");
  EXPECT_EQ(book.brought_before("a", watch("gate", 5)->ref(), 3), nullptr);
}

TEST(DockBook, AnOwnerBeforeThatLeftOrWhoseStreamDoesNotGoOnBringsNothing) {
  const auto brings = [](const DockBook& book) {
    return book.brought_before("a", watch("gate", 5)->ref(), 0) != nullptr;
  };
  const auto taken_over = [](const Passage& by, bool goes_on) {
    DockBook book;
    join(book, "a", watch("gate", 5), 0);
    book.join("b", by, watch("gate", 6), 0, goes_on);
    return book;
  };
  EXPECT_TRUE(brings(taken_over({"b", "g", "g"}, true)));
  EXPECT_FALSE(brings(taken_over({"b", "g", "g"}, false)));
  EXPECT_FALSE(brings(taken_over({"b", "g", "another"}, true)));
  EXPECT_FALSE(brings(taken_over({"b", "another", "g"}, true)));

  const base::Clock::TimePoint now(5s);
  DockBook book = taken_over({"b", "g", "g"}, true);
  book.drop_former("b", "gate");
  book.leave("a", {"a", "g", "another"}, now);
  book.leave("b", now);
  EXPECT_TRUE(brings(book));
  DockBook left = book;
  left.drop_former("a", "gate");
  EXPECT_FALSE(brings(left));
  left = book;
  left.leave("a", {"a", "g", "g"}, now);
  EXPECT_FALSE(brings(left));
  left = book;
  left.leave("a", now);
  EXPECT_FALSE(brings(left));

  DockBook away;
  join(away, "a", watch("gate", 5), 0);
  away.leave("a", now);
  join(away, "b", watch("gate", 6), 0);
  EXPECT_FALSE(brings(away)) << "it was away already";
}

actors::WindowAnswersPtr window_of(const actors::WatchPtr& watch) {
  auto window = std::make_shared<actors::WindowAnswers>();
  window->watch = watch;
  window->frames = 8;
  return window;
}

actors::WatchPtr with_rule(const actors::WatchPtr& watch, const std::string& rule) {
  auto changed = std::make_shared<actors::WatchSettings>(*watch);
  changed->rules.emplace_back().name = rule;
  return changed;
}

TEST(DockBook, AWindowIsTheOwnersWhoHasTheCameraWhenItIsAnswered) {
  DockBook book;
  const auto under_way = window_of(watch("gate", 5));
  EXPECT_EQ(book.of_owner(under_way, true), nullptr) << "nobody";
  join(book, "a", watch("gate", 5), 0);
  EXPECT_EQ(book.of_owner(under_way, true), under_way);
  const auto later = window_of(watch("gate", 5, 2));
  EXPECT_EQ(book.of_owner(later, false), later) << "by the settings that it was asked with";

  const auto next = watch("gate", 7);
  join(book, "b", next, 0);
  const auto handed_over = book.of_owner(under_way, true);
  ASSERT_NE(handed_over, nullptr);
  EXPECT_EQ(handed_over->watch, next);
  EXPECT_EQ(handed_over->frames, 8);
  EXPECT_EQ(book.of_owner(under_way, false), nullptr) << "of a stream that has ended";
  EXPECT_EQ(book.of_owner(window_of(watch("gate", 8)), true), nullptr) << "of an owner that never came";
}

TEST(DockBook, AWindowThatWasAskedOtherThingsIsNotTheNextOwners) {
  DockBook book;
  join(book, "b", with_rule(watch("gate", 7), "fire"), 0);
  EXPECT_EQ(book.of_owner(window_of(with_rule(watch("gate", 5), "smoke")), true), nullptr);
  const auto changed = with_rule(watch("gate", 7, 2), "smoke");
  ASSERT_NE(book.renew("b", changed), nullptr);
  const auto handed_over = book.of_owner(window_of(with_rule(watch("gate", 5), "smoke")), true);
  ASSERT_NE(handed_over, nullptr) << "its rules are others meanwhile";
  EXPECT_EQ(handed_over->watch, changed);
  book.renew("b", with_rule(watch("gate", 7, 1), "fire"));
  EXPECT_EQ(book.find("gate")->watch, changed) << "never back";
}

}  // namespace
}  // namespace vigil::fleet
