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
  return book.join(owner, {owner, "g", "g"}, watch, own_generation);
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
  EXPECT_TRUE(book.join("v1", {"a", "v1", "g"}, watch("gate", 5), 1).admitted);
  EXPECT_EQ(book.brought("a", watch("gate", 5)->ref()), nullptr) << "it is not the owner that sends";
  ASSERT_NE(book.brought("v1", watch("gate", 5)->ref()), nullptr);
  const auto taken = book.join("v2", {"b", "v2", "g"}, watch("gate", 6), 1);
  EXPECT_TRUE(taken.admitted);
  EXPECT_EQ(taken.before, (Passage{"a", "v1", "g"})) << "who is to hear it";
  EXPECT_EQ(book.brought("v1", watch("gate", 5)->ref()), nullptr);
  EXPECT_FALSE(book.join("v1", {"a", "v1", "g"}, watch("gate", 5), 2).admitted);
  EXPECT_FALSE(book.join("v2", {"a", "v2", "g"}, watch("gate", 5), 2).admitted) << "nor by another way";
}

TEST(DockBook, LetsAnotherNodeBringACameraOfTheSameOwner) {
  DockBook book;
  book.join("v1", {"a", "v1", "g"}, watch("gate", 5), 1);
  const auto taken = book.join("v2", {"a", "v2", "g"}, watch("gate", 5), 1);
  EXPECT_TRUE(taken.admitted);
  EXPECT_FALSE(taken.before) << "its owner is the same";
  EXPECT_EQ(book.brought("v1", watch("gate", 5)->ref()), nullptr);
  EXPECT_FALSE(book.join("v3", {"b", "v3", "g"}, watch("gate", 5), 1).admitted);
}

TEST(DockBook, TellsTheWaysOfOneNodeApart) {
  DockBook book;
  book.join("a", {"a", "g", "s1"}, watch("gate", 5), 0);
  book.join("a", {"a", "g", "s2"}, watch("yard", 5), 0);
  book.join("a", {"a", "g", "g"}, watch("dock", 5), 0);
  book.leave("a", {"a", "g", "s2"}, TimePoint(10s));
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("yard"));
  book.lose("gate", TimePoint(10s));
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("gate", "yard"));
  book.leave("a", TimePoint(10s));
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("dock", "gate", "yard"));
}

DockBook::Heir heir(const std::string& owner, const actors::WatchPtr& watch,
                    const std::string& stream = "g") {
  return {{owner, "g", stream}, owner, watch, 3};
}

TEST(DockBook, TheNextOwnerWaitsWhileTheOneBeforeGoesOn) {
  DockBook book;
  EXPECT_FALSE(book.wait(heir("b", watch("gate", 7)))) << "there is none";
  join(book, "a", watch("gate", 5), 0);
  EXPECT_FALSE(book.wait(heir("a", watch("gate", 6)))) << "it is the owner";
  EXPECT_FALSE(book.wait(heir("b", watch("gate", 5)))) << "by no higher fence";
  EXPECT_FALSE(book.wait(heir("b", watch("gate", 6), "another"))) << "its stream does not go on";
  const auto waits = book.wait(heir("b", watch("gate", 6)));
  ASSERT_TRUE(waits);
  EXPECT_EQ(waits->fence, 6U);
  EXPECT_FALSE(waits->heir);
  EXPECT_EQ(book.highest_fence("gate"), 6U);
  EXPECT_NE(book.brought("a", watch("gate", 5)->ref()), nullptr);
  EXPECT_EQ(book.brought("b", watch("gate", 6)->ref()), nullptr);
  EXPECT_TRUE(book.brings("b", watch("gate", 6, 2)->ref()));
  EXPECT_FALSE(book.brings("a", watch("gate", 6)->ref()));
  EXPECT_FALSE(book.brings("b", watch("gate", 5)->ref()));
  EXPECT_TRUE(book.is_contested("c", watch("gate", 6)->ref()));
  EXPECT_FALSE(book.wait(heir("c", watch("gate", 6))));
  EXPECT_FALSE(join(book, "c", watch("gate", 6), 0).admitted);

  const auto third = book.wait(heir("c", watch("gate", 8)));
  ASSERT_TRUE(third && third->heir);
  EXPECT_EQ(third->heir->owner, "b");
  const auto next = book.take_heir("gate");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->from, "c");
  EXPECT_FALSE(book.take_heir("gate"));
  const auto joined = book.join(next->from, next->passage, next->watch, next->own_generation);
  EXPECT_TRUE(joined.admitted);
  EXPECT_EQ(joined.before->owner, "a");
  EXPECT_EQ(book.brought("a", watch("gate", 5)->ref()), nullptr);
}

TEST(DockBook, AnHeirIsForgottenWithItsWayAndFoundWhenTheOwnerIsAway) {
  DockBook book;
  const base::Clock::TimePoint now(5s);
  join(book, "a", watch("gate", 5), 0);
  ASSERT_TRUE(book.wait(heir("b", watch("gate", 6))));
  EXPECT_THAT(book.orphans(), IsEmpty());
  EXPECT_TRUE(book.renew_heir("b", watch("gate", 6, 2)));
  EXPECT_FALSE(book.renew_heir("a", watch("gate", 5, 2)));
  book.drop_heir("a", "gate");
  book.leave("b", {"b", "g", "another"}, now);
  EXPECT_EQ(book.find("gate")->heir->watch->version, actors::version_of(6, 2));
  book.leave("b", {"b", "g", "g"}, now);
  EXPECT_FALSE(book.find("gate")->heir);
  EXPECT_FALSE(book.renew_heir("b", watch("gate", 6, 3)));
  ASSERT_TRUE(book.wait(heir("b", watch("gate", 6))));
  book.drop_heir("b", "gate");
  EXPECT_FALSE(book.find("gate")->heir);
  ASSERT_TRUE(book.wait(heir("b", watch("gate", 6))));
  book.leave("b", now);
  EXPECT_FALSE(book.find("gate")->heir);
  ASSERT_TRUE(book.wait(heir("b", watch("gate", 6))));
  book.leave("a", now);
  EXPECT_THAT(book.orphans(), ElementsAre("gate"));
  EXPECT_FALSE(book.wait(heir("c", watch("gate", 7)))) << "it has it at once";
  // Whoever joins with another stream does not wait, and who waited hears so.
  const auto joined = book.join("c", {"c", "g", "another"}, watch("gate", 7), 0);
  ASSERT_TRUE(joined.admitted && joined.heir);
  EXPECT_EQ(joined.heir->owner, "b");
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
  EXPECT_FALSE(book.heard(under_way, true)) << "nobody";
  join(book, "a", watch("gate", 5), 0);
  EXPECT_EQ(book.heard(under_way, true)->window, under_way);
  const auto later = window_of(watch("gate", 5, 2));
  EXPECT_EQ(book.heard(later, false)->window, later) << "by the settings that it was asked with";
  EXPECT_EQ(book.heard(later, true)->passage.owner, "a");

  const auto next = watch("gate", 7);
  join(book, "b", next, 0);
  const auto handed_over = book.heard(under_way, true);
  ASSERT_TRUE(handed_over);
  EXPECT_EQ(handed_over->passage.owner, "b");
  EXPECT_EQ(handed_over->window->watch, next);
  EXPECT_EQ(handed_over->window->frames, 8);
  EXPECT_FALSE(book.heard(under_way, false)) << "of a stream that has ended";
  EXPECT_FALSE(book.heard(window_of(watch("gate", 8)), true)) << "of an owner that never came";
}

TEST(DockBook, AWindowIsTheHeirsFromWhenItWaits) {
  DockBook book;
  join(book, "a", watch("gate", 5), 0);
  const auto window = window_of(watch("gate", 5));
  const auto next = watch("gate", 6);
  ASSERT_TRUE(book.wait(heir("b", next)));
  const auto heard = book.heard(window, true);
  ASSERT_TRUE(heard);
  EXPECT_EQ(heard->passage.owner, "b") << "which may have told that it is up";
  EXPECT_EQ(heard->window->watch, next);
  ASSERT_TRUE(book.renew_heir("b", with_rule(watch("gate", 6, 2), "smoke")));
  EXPECT_EQ(book.heard(window, true)->window, window) << "which it does not ask";
  EXPECT_EQ(book.heard(window, true)->passage.owner, "a");
  book.drop_heir("b", "gate");
  EXPECT_EQ(book.heard(window, true)->passage.owner, "a");
}

TEST(DockBook, AWindowThatWasAskedOtherThingsIsNotTheNextOwners) {
  DockBook book;
  join(book, "b", with_rule(watch("gate", 7), "fire"), 0);
  EXPECT_FALSE(book.heard(window_of(with_rule(watch("gate", 5), "smoke")), true));
  const auto changed = with_rule(watch("gate", 7, 2), "smoke");
  ASSERT_NE(book.renew("b", changed), nullptr);
  const auto handed_over = book.heard(window_of(with_rule(watch("gate", 5), "smoke")), true);
  ASSERT_TRUE(handed_over) << "its rules are others meanwhile";
  EXPECT_EQ(handed_over->window->watch, changed);
  book.renew("b", with_rule(watch("gate", 7, 1), "fire"));
  EXPECT_EQ(book.find("gate")->watch, changed) << "never back";
}

}  // namespace
}  // namespace vigil::fleet
