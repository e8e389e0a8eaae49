#include "actors/supervisor/fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> shown(const std::vector<Fleet::Change>& changes) {
  std::vector<std::string> result;
  for (const auto& change : changes)
    result.push_back(change.camera->name + ' ' + std::string(name_of(change.state)));
  return result;
}

TEST(Fleet, TellsChangesOnly) {
  Fleet fleet({camera("a")}, 1);
  EXPECT_TRUE(fleet.report("a", CameraState::connecting, "").has_value());
  EXPECT_FALSE(fleet.report("a", CameraState::connecting, "").has_value());
  EXPECT_TRUE(fleet.report("a", CameraState::up, "").has_value());
}

TEST(Fleet, ACameraThatWaitsForItsSourceForTooLongIsStalled) {
  ManualClock clock;
  auto settings = camera("a");
  settings->stream.stall_after = 5s;
  Fleet fleet({settings, camera("b")}, 1);
  fleet.report("a", CameraState::up, "");
  fleet.report("b", CameraState::up, "");
  fleet.pulse("a")->await(clock.now());
  clock.advance(4900ms);
  EXPECT_THAT(fleet.watch(clock.now()), IsEmpty());
  clock.advance(100ms);
  EXPECT_THAT(shown(fleet.watch(clock.now())), ElementsAre("a stalled"));
  EXPECT_THAT(fleet.watch(clock.now()), IsEmpty()) << "told once";
  fleet.pulse("a")->awaited();
  EXPECT_THAT(shown(fleet.watch(clock.now())), ElementsAre("a up"));
}

TEST(Fleet, APacketEndsTheSilence) {
  ManualClock clock;
  auto settings = camera("a");
  settings->stream.stall_after = 5s;
  Fleet fleet({settings}, 1);
  fleet.report("a", CameraState::up, "");
  for (int i = 0; i < 10; ++i) {
    fleet.pulse("a")->await(clock.now());
    clock.advance(4s);
    EXPECT_THAT(fleet.watch(clock.now()), IsEmpty());
  }
  clock.advance(1s);
  EXPECT_THAT(shown(fleet.watch(clock.now())), ElementsAre("a stalled"));
  fleet.pulse("a")->await(clock.now());
  EXPECT_THAT(shown(fleet.watch(clock.now())), ElementsAre("a up"));
}

TEST(Fleet, AnotherReasonToBeDownIsAChange) {
  Fleet fleet({camera("a")}, 1);
  EXPECT_TRUE(fleet.report("a", CameraState::down, "refused").has_value());
  EXPECT_FALSE(fleet.report("a", CameraState::down, "refused").has_value());
  const auto change = fleet.report("a", CameraState::down, "401 Unauthorized");
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->reason, "401 Unauthorized");
}

TEST(Fleet, ACameraThatIsLostWhileStalledIsDown) {
  ManualClock clock;
  Fleet fleet({camera("a")}, 1);
  fleet.report("a", CameraState::up, "");
  fleet.pulse("a")->await(clock.now());
  clock.advance(60s);
  fleet.watch(clock.now());
  EXPECT_TRUE(fleet.report("a", CameraState::down, "timeout").has_value());
  fleet.pulse("a")->awaited();
  EXPECT_THAT(fleet.watch(clock.now()), IsEmpty());
}

TEST(Fleet, OpeningIsNoStall) {
  ManualClock clock;
  Fleet fleet({camera("a")}, 1);
  fleet.report("a", CameraState::connecting, "");
  fleet.pulse("a")->await(clock.now());
  clock.advance(60s);
  EXPECT_THAT(fleet.watch(clock.now()), IsEmpty());
}

TEST(Fleet, AFailedActorIsRestartedAfterGrowingWaits) {
  ManualClock clock;
  auto settings = camera("a");
  settings->stream.reconnect = {1s, 60s};
  Fleet fleet({settings}, 1);
  EXPECT_EQ(fleet.started("a"), 0U);
  config::Duration last(0);
  for (std::uint32_t attempt = 1; attempt <= 5; ++attempt) {
    fleet.lost("a", /*failed=*/true, clock.now());
    EXPECT_THAT(fleet.due(clock.now()), IsEmpty());
    EXPECT_THAT(fleet.orphans(), IsEmpty()) << "it will come back";
    config::Duration waited(0);
    while (fleet.due(clock.now()).empty()) {
      clock.advance(10ms);
      waited += 10ms;
    }
    EXPECT_GT(waited, last / 2);
    last = waited;
    EXPECT_EQ(fleet.started("a"), attempt) << "a new incarnation";
    EXPECT_THAT(fleet.due(clock.now()), IsEmpty()) << "once";
  }
  EXPECT_GT(last, 7s);
}

TEST(Fleet, StoppingRestartsNobodyAndNamesTheOrphans) {
  ManualClock clock;
  Fleet fleet({camera("running"), camera("waiting"), camera("done")}, 1);
  for (const char* name : {"running", "waiting", "done"}) fleet.started(name);
  fleet.lost("waiting", true, clock.now());
  fleet.lost("done", false, clock.now());
  fleet.ended("done");
  fleet.stop();
  clock.advance(1h);
  EXPECT_THAT(fleet.due(clock.now()), IsEmpty());
  ASSERT_EQ(fleet.orphans().size(), 1U);
  EXPECT_EQ(fleet.orphans()[0]->name, "waiting");
  EXPECT_EQ(fleet.remaining().size(), 2U);
}

}  // namespace
}  // namespace vigil::actors
