#include "fleet/dock/dock_book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using TimePoint = base::Clock::TimePoint;

actors::WatchSettings watch(const std::string& camera, std::uint64_t fence, std::uint64_t change = 1) {
  actors::WatchSettings settings;
  settings.name = camera;
  settings.version = actors::version_of(fence, change);
  return settings;
}

TEST(DockBook, LetsTheHighestFenceIn) {
  DockBook book;
  EXPECT_TRUE(book.join("a", watch("gate", 5), 0).admitted);
  EXPECT_NE(book.owner("a", watch("gate", 5).ref()), nullptr);
  const DockBook::Joined taken = book.join("b", watch("gate", 7), 0);
  EXPECT_TRUE(taken.admitted);
  EXPECT_EQ(taken.before, "a");
  EXPECT_EQ(book.owner("a", watch("gate", 5).ref()), nullptr);
  EXPECT_NE(book.owner("b", watch("gate", 7, 3).ref()), nullptr) << "a later change of its own";
  const DockBook::Joined late = book.join("a", watch("gate", 6), 1);
  EXPECT_FALSE(late.admitted);
  EXPECT_EQ(late.fence, 7U);
  EXPECT_EQ(book.highest_fence(), 7U);
}

TEST(DockBook, DoesNotForgetAFenceWithTheCamera) {
  DockBook book;
  book.join("b", watch("gate", 7), 0);
  book.end("gate");
  EXPECT_EQ(book.find("gate"), nullptr);
  EXPECT_FALSE(book.join("a", watch("gate", 5), 0).admitted);
  EXPECT_TRUE(book.join("a", watch("gate", 8), 0).admitted);
}

TEST(DockBook, LetsNoOtherNodeInByTheSameFence) {
  DockBook book;
  book.join("a", watch("gate", 5), 0);
  EXPECT_FALSE(book.join("b", watch("gate", 5), 0).admitted);
  EXPECT_TRUE(book.join("a", watch("gate", 5), 1).admitted) << "its own next incarnation";
}

TEST(DockBook, CountsIncarnationsOverAllOwners) {
  DockBook book;
  const auto first = book.join("a", watch("gate", 5), 3).generation;
  const auto second = book.join("a", watch("gate", 5), 4).generation;
  const auto third = book.join("b", watch("gate", 6), 0).generation;
  EXPECT_LT(first, second);
  EXPECT_LT(second, third);
  EXPECT_EQ(book.find("gate")->own_generation, 0U);
  EXPECT_EQ(book.join("a", watch("yard", 5), 0).generation, 1U) << "of each camera";
}

TEST(DockBook, KeepsCamerasOfANodeThatIsAwayForAWhile) {
  DockBook book;
  book.join("a", watch("gate", 5), 0);
  book.join("a", watch("yard", 5), 0);
  book.join("b", watch("dock", 5), 0);
  book.leave("a", TimePoint(10s));
  book.leave("a", TimePoint(12s));
  EXPECT_THAT(book.overdue(TimePoint(14s), 5s), IsEmpty());
  EXPECT_TRUE(book.join("a", watch("yard", 5), 1).admitted);
  EXPECT_THAT(book.overdue(TimePoint(15s), 5s), ElementsAre("gate")) << "since it left first";
}

}  // namespace
}  // namespace vigil::fleet
