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
    result.push_back(change.watch->name + ' ' + std::string(name_of(change.state)));
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

TEST(Fleet, ACameraThatIsUpAfterTroubleHasRecovered) {
  Fleet fleet({camera("a")}, 1);
  fleet.report("a", CameraState::connecting, "");
  EXPECT_FALSE(fleet.report("a", CameraState::up, "")->recovered) << "it never was down";
  EXPECT_FALSE(fleet.report("a", CameraState::down, "refused")->recovered);
  EXPECT_FALSE(fleet.report("a", CameraState::connecting, "")->recovered);
  EXPECT_TRUE(fleet.report("a", CameraState::up, "")->recovered);
  fleet.report("a", CameraState::connecting, "");
  EXPECT_FALSE(fleet.report("a", CameraState::up, "")->recovered) << "said once";
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

TEST(Fleet, WhoWillWatchACameraSoonIsWaitedForQuietly) {
  ManualClock clock;
  Fleet fleet({camera("a"), camera("b"), camera("c")}, 1);
  for (const char* name : {"a", "b", "c"})
    EXPECT_FALSE(fleet.awaits(name, "waits for gpu", clock.now() + 2s).has_value()) << name;
  EXPECT_FALSE(fleet.watched("a", "watched on gpu").has_value()) << "nobody knew that it was not";
  clock.advance(1s);
  EXPECT_FALSE(fleet.awaits("b", "waits for gpu2", clock.now() + 2s).has_value()) << "not for longer by that";
  EXPECT_THAT(fleet.watch(clock.now()), IsEmpty());
  EXPECT_EQ(fleet.unwatched("c", "gpu is lost")->reason, "gpu is lost");
  EXPECT_EQ(fleet.awaits("c", "waits for gpu2", clock.now() + 2s)->reason, "waits for gpu2") << "it is down";
  clock.advance(1s);
  const auto changes = fleet.watch(clock.now());
  EXPECT_THAT(shown(changes), ElementsAre("b down"));
  EXPECT_EQ(changes.at(0).reason, "waits for gpu2");
  EXPECT_THAT(fleet.watch(clock.now()), IsEmpty()) << "once";
  for (const char* name : {"b", "c"}) EXPECT_TRUE(fleet.watched(name, "watched on gpu2").has_value()) << name;
  EXPECT_FALSE(fleet.awaits("gone", "waits for gpu", clock.now()).has_value());
}

TEST(Fleet, AFailedActorIsRestartedAfterGrowingWaits) {
  ManualClock clock;
  auto settings = camera("a");
  settings->stream.reconnect = {1s, 60s};
  Fleet fleet({settings}, 1);
  EXPECT_EQ(fleet.started("a"), 0U);
  base::Duration last(0);
  for (std::uint32_t attempt = 1; attempt <= 5; ++attempt) {
    EXPECT_FALSE(fleet.start_at("a").has_value()) << "it runs";
    fleet.lost("a", /*failed=*/true, clock.now());
    EXPECT_THAT(fleet.orphans(), IsEmpty()) << "it will come back";
    ASSERT_TRUE(fleet.start_at("a").has_value());
    const auto wait = std::chrono::ceil<base::Duration>(*fleet.start_at("a") - clock.now());
    EXPECT_GT(wait, last / 2);
    last = wait;
    EXPECT_EQ(fleet.started("a"), attempt) << "a new incarnation";
  }
  EXPECT_GT(last, 7s);
}

TEST(Fleet, ACameraThatRestsIsNoOrphanAndStillToBeEnded) {
  ManualClock clock;
  Fleet fleet({camera("a")}, 1);
  fleet.started("a");
  fleet.report("a", CameraState::down, "refused");
  EXPECT_TRUE(fleet.retrying("a"));
  fleet.pulse("a")->await(clock.now());
  fleet.rests({.camera = "a", .until = clock.now() + 3s});
  EXPECT_NE(fleet.pulse("a")->awaiting_since(), std::nullopt) << "its actor has not ended yet";
  const Fleet::Loss loss = fleet.lost("a", /*failed=*/false, clock.now());
  EXPECT_FALSE(loss.change.has_value());
  EXPECT_EQ(loss.source, (SourceEnd{SourceEnd::Next::rest, clock.now() + 3s}));
  EXPECT_FALSE(loss.orphaned);
  EXPECT_EQ(fleet.start_at("a"), clock.now() + 3s);
  EXPECT_THAT(fleet.orphans(), IsEmpty());
  EXPECT_FALSE(fleet.all_ended());
  EXPECT_EQ(fleet.pulse("a")->awaiting_since(), std::nullopt);
  fleet.stop();
  EXPECT_FALSE(fleet.start_at("a").has_value());
  EXPECT_EQ(fleet.orphans().size(), 1U) << "what it sent may be under way";
  fleet.ended("a");
  EXPECT_TRUE(fleet.all_ended());
}

TEST(Fleet, OfACameraThatNeverHadAnActorNothingIsUnderWay) {
  Fleet fleet({camera("never"), camera("begun")}, 1);
  fleet.started("begun");
  fleet.report("never", CameraState::down, "refused");
  EXPECT_FALSE(fleet.all_ended());
  fleet.rests({.camera = "begun", .until = {}});
  fleet.lost("begun", /*failed=*/false, {});
  fleet.stop();
  ASSERT_EQ(fleet.orphans().size(), 1U);
  EXPECT_EQ(fleet.orphans()[0]->name, "begun");
  EXPECT_EQ(fleet.remaining().size(), 1U);
  fleet.ended("begun");
  fleet.ended("begun");
  EXPECT_TRUE(fleet.all_ended());
}

TEST(Fleet, WhatBecomesOfASourceDependsOnHowItsActorEnded) {
  const Fleet::TimePoint now(1h);
  using Next = SourceEnd::Next;
  Fleet fleet({camera("a")}, 1);
  fleet.started("a");
  fleet.rests({.camera = "a", .until = now + 1s, .no_descriptor = true});
  EXPECT_EQ(fleet.lost("a", /*failed=*/false, now).source.next, Next::no_descriptor);
  fleet.started("a");
  const Fleet::Loss crash = fleet.lost("a", /*failed=*/true, now);
  EXPECT_EQ(crash.source, (SourceEnd{Next::rest, *fleet.start_at("a")})) << "its last rest is forgotten";
  ASSERT_TRUE(crash.change.has_value());
  EXPECT_EQ(crash.change->state, CameraState::down);
  fleet.started("a");
  const Fleet::Loss played = fleet.lost("a", /*failed=*/false, now);
  EXPECT_EQ(played.source.next, Next::gone);
  EXPECT_TRUE(played.orphaned) << "it has said so itself, but maybe where it is not any more";
  fleet.started("a");
  fleet.rests({.camera = "a", .until = now + 1s});
  fleet.stop();
  const Fleet::Loss late = fleet.lost("a", /*failed=*/false, now);
  EXPECT_EQ(late.source.next, Next::gone);
  EXPECT_TRUE(late.orphaned) << "it would have come back";
  fleet.ended("a");
  EXPECT_FALSE(fleet.lost("a", /*failed=*/false, now).orphaned) << "nothing of it is left";
}

TEST(Fleet, ACameraWhoseServerDoesNotAnswerIsDownAndTriedAgain) {
  const Fleet::TimePoint now(1h);
  auto settings = camera("a");
  settings->stream.reconnect = {1s, 60s};
  Fleet fleet({settings}, 1);
  const Fleet::Unreachable first = fleet.unreachable("a", "refused", now);
  EXPECT_GT(first.again, now);
  EXPECT_LE(first.again, now + 1s);
  ASSERT_TRUE(first.change.has_value());
  EXPECT_EQ(first.change->reason, "refused");
  const Fleet::Unreachable second = fleet.unreachable("a", "refused", now);
  EXPECT_GE(second.again, now + 1s);
  EXPECT_FALSE(second.change.has_value()) << "a retry is no news";
}

TEST(Fleet, StoppingRestartsNobodyAndNamesTheOrphans) {
  ManualClock clock;
  Fleet fleet({camera("running"), camera("waiting"), camera("done")}, 1);
  for (const char* name : {"running", "waiting", "done"}) fleet.started(name);
  fleet.lost("waiting", true, clock.now());
  fleet.lost("done", false, clock.now());
  fleet.ended("done");
  fleet.stop();
  EXPECT_FALSE(fleet.start_at("waiting").has_value());
  ASSERT_EQ(fleet.orphans().size(), 1U);
  EXPECT_EQ(fleet.orphans()[0]->name, "waiting");
  EXPECT_EQ(fleet.remaining().size(), 2U);
}

std::vector<std::string> names(const std::vector<WatchPtr>& cameras) {
  std::vector<std::string> result;
  for (const WatchPtr& each : cameras) result.push_back(each->name);
  return result;
}

/// A camera whose stream is another.
CameraPtr with_fps(const std::string& name, double fps) {
  auto settings = camera(name);
  settings->stream.fps = fps;
  return settings;
}

/// A camera whose stream is the same.
CameraPtr with_threshold(const std::string& name, double threshold) {
  auto settings = camera(name);
  settings->rules[0].threshold = threshold;
  return settings;
}

TEST(FleetReload, AddsRemovesRestartsAndAltersWhatDiffersAndNothingElse) {
  Fleet fleet({camera("altered"), camera("gone"), camera("restarted"), camera("same")}, 1);
  for (const char* name : {"altered", "gone", "restarted", "same"}) fleet.started(name);
  const auto altered = with_threshold("altered", 0.9);
  const auto plan = fleet.reload({camera("added"), altered, with_fps("restarted", 4), camera("same")});
  EXPECT_THAT(plan.start, ElementsAre("added"));
  EXPECT_THAT(plan.alter, ElementsAre(altered));
  EXPECT_THAT(plan.stop, ElementsAre("gone", "restarted"));
  EXPECT_THAT(plan.end, IsEmpty());
  EXPECT_EQ(fleet.settings("altered"), altered) << "also for its next incarnation";
  EXPECT_EQ(fleet.watch_settings("altered")->rules, altered->rules);
  EXPECT_EQ(fleet.started("added"), 0U);
}

TEST(FleetReload, WhatWindowsComputeAnewIsNoOtherStreamAndWhatIsEncodedIs) {
  Fleet fleet({camera("refreshed"), camera("pruned"), camera("moved"), camera("weighed")}, 1);
  for (const char* name : {"refreshed", "pruned", "moved", "weighed"}) fleet.started(name);
  auto refreshed = camera("refreshed");
  refreshed->stream.pruning.refresh = config::Refresh::first_k;
  refreshed->stream.pruning.refresh_share = 0.3;
  refreshed->stream.pruning.kv_budget = config::mebibytes(300);
  auto pruned = camera("pruned");
  pruned->stream.pruning.policy = config::Pruning::reference;
  auto moved = camera("moved");
  moved->stream.pruning.motion_threshold = 1;
  auto weighed = camera("weighed");
  weighed->stream.pruning.residual_weight = 0.001;
  const auto plan = fleet.reload({refreshed, pruned, moved, weighed});
  EXPECT_THAT(plan.alter, ElementsAre(CameraPtr(refreshed)));
  EXPECT_THAT(plan.stop, ElementsAre("moved", "pruned", "weighed"));
  EXPECT_EQ(fleet.watch_settings("refreshed")->pruning, refreshed->stream.pruning);
}

TEST(FleetReload, ACameraHasDepartedWhenItsActorIsGoneAndItsLastWindowAnswered) {
  ManualClock clock;
  Fleet fleet({camera("gone"), camera("restarted")}, 1);
  for (const char* name : {"gone", "restarted"}) {
    fleet.started(name);
    fleet.report(name, CameraState::up, "");
  }
  const auto pulse = fleet.pulse("restarted");
  const auto settings = with_fps("restarted", 4);
  fleet.reload({settings});
  const auto change = fleet.report("gone", CameraState::down, "stopped");
  ASSERT_TRUE(change.has_value());
  EXPECT_TRUE(change->leaving) << "no reason to be alarmed";
  fleet.lost("gone", /*failed=*/false, clock.now());
  fleet.ended("restarted");
  auto departed = fleet.departed();
  EXPECT_THAT(departed.gone, IsEmpty()) << "not answered yet";
  EXPECT_THAT(departed.start, IsEmpty()) << "its actor still runs";
  EXPECT_THAT(names(fleet.remaining()), ElementsAre("gone", "restarted"));
  fleet.ended("gone");
  fleet.lost("restarted", /*failed=*/false, clock.now());
  departed = fleet.departed();
  EXPECT_THAT(departed.gone, ElementsAre("gone"));
  EXPECT_THAT(departed.start, ElementsAre("restarted"));
  EXPECT_EQ(fleet.settings("restarted"), settings);
  EXPECT_EQ(fleet.started("restarted"), 1U) << "another incarnation";
  EXPECT_NE(fleet.pulse("restarted"), pulse) << "the old one was cancelled";
  EXPECT_TRUE(fleet.report("restarted", CameraState::up, "").has_value());
  EXPECT_FALSE(fleet.report("gone", CameraState::down, "late").has_value());
  fleet.ended("gone");
  departed = fleet.departed();
  EXPECT_THAT(departed.gone, IsEmpty());
  EXPECT_THAT(departed.start, IsEmpty());
}

TEST(FleetReload, WhateverChangesGetsAVersionThatItNeverHad) {
  Fleet fleet({camera("a"), camera("b")}, 1);
  for (const char* name : {"a", "b"}) fleet.started(name);
  const std::uint64_t first = fleet.watch_settings("a")->version;
  const std::uint64_t same = fleet.watch_settings("b")->version;
  EXPECT_TRUE(fleet.report("a", CameraState::connecting, "")->first_of_them);
  EXPECT_FALSE(fleet.report("a", CameraState::up, "")->first_of_them);
  fleet.reload({with_threshold("a", 0.9), camera("b")});
  const std::uint64_t altered = fleet.watch_settings("a")->version;
  EXPECT_GT(altered, first);
  EXPECT_EQ(fleet.watch_settings("b")->version, same);
  EXPECT_TRUE(fleet.report("a", CameraState::down, "refused")->first_of_them);
  // It goes, and comes back.
  fleet.reload({camera("b")});
  fleet.lost("a", /*failed=*/false, {});
  fleet.ended("a");
  fleet.departed();
  fleet.reload({camera("a"), camera("b")});
  EXPECT_GT(fleet.watch_settings("a")->version, altered);
  EXPECT_TRUE(fleet.report("a", CameraState::connecting, "")->first_of_them);
}

TEST(FleetReload, NoNumberOfChangesReachesTheNextFence) {
  const auto owned = [](const std::string& name, std::uint64_t fence, double threshold) {
    auto settings = std::make_shared<OwnCamera>(*with_threshold(name, threshold));
    settings->tenure.fence = fence;
    return settings;
  };
  Fleet fleet({owned("a", 7, 0.5), owned("b", 8, 0.5)}, 1);
  // Each camera's are counted for themselves, and anew with each fence.
  for (int i = 0; i < 100; ++i) fleet.reload({owned("a", 7, 0.5), owned("b", 8, i % 2 == 0 ? 0.6 : 0.5)});
  EXPECT_EQ(fleet.watch_settings("a")->version, version_of(7, 1));
  EXPECT_EQ(fleet.watch_settings("b")->version, version_of(8, 101));
  fleet.reload({owned("a", 9, 0.5), owned("b", 10, 0.5)});
  EXPECT_EQ(fleet.watch_settings("a")->version, version_of(9, 1));
  EXPECT_EQ(fleet.watch_settings("b")->version, version_of(10, 1));
  // By a registry that was set back, a fence that it had before.
  fleet.reload({owned("a", 9, 0.5), owned("b", 8, 0.5)});
  EXPECT_EQ(fleet.watch_settings("b")->version, version_of(8, 102));
}

TEST(FleetReload, TheLastListCountsWhileACameraStillLeaves) {
  ManualClock clock;
  Fleet fleet({camera("a"), camera("b"), camera("c")}, 1);
  for (const char* name : {"a", "b", "c"}) fleet.started(name);
  EXPECT_THAT(fleet.reload({with_fps("b", 4), camera("c")}).stop, ElementsAre("a", "b"));
  const auto again = with_fps("b", 8);
  const auto plan = fleet.reload({camera("a"), again});
  EXPECT_THAT(plan.stop, ElementsAre("c")) << "the others are stopped already";
  EXPECT_THAT(plan.start, IsEmpty());
  EXPECT_THAT(plan.alter, IsEmpty());
  EXPECT_THAT(fleet.reload({again, camera("c")}).stop, IsEmpty());
  for (const char* name : {"a", "b", "c"}) {
    fleet.lost(name, /*failed=*/false, clock.now());
    fleet.ended(name);
  }
  const auto departed = fleet.departed();
  EXPECT_THAT(departed.gone, ElementsAre("a"));
  EXPECT_THAT(departed.start, ElementsAre("b", "c"));
  EXPECT_EQ(fleet.settings("b"), again);
}

TEST(FleetReload, ACameraWithoutAnActorIsEndedByOthers) {
  ManualClock clock;
  Fleet fleet({camera("waiting"), camera("played"), camera("crashed")}, 1);
  for (const char* name : {"waiting", "played", "crashed"}) fleet.started(name);
  fleet.lost("waiting", /*failed=*/true, clock.now());
  fleet.lost("played", /*failed=*/false, clock.now());
  fleet.ended("played");
  const auto plan = fleet.reload({with_fps("waiting", 4)});
  EXPECT_THAT(names(plan.end), ElementsAre("waiting"));
  EXPECT_THAT(plan.stop, ElementsAre("crashed"));
  EXPECT_THAT(fleet.departed().gone, ElementsAre("played")) << "nothing of it was under way";
  EXPECT_FALSE(fleet.start_at("waiting").has_value()) << "not before it has ended";
  fleet.lost("crashed", /*failed=*/true, clock.now());
  EXPECT_THAT(names(fleet.orphans()), ElementsAre("crashed", "waiting"));
  fleet.ended("waiting");
  EXPECT_THAT(fleet.departed().start, ElementsAre("waiting"));
}

TEST(FleetReload, ACameraThatNeverHadAnActorDepartsAtOnce) {
  Fleet fleet({camera("gone"), camera("changed"), camera("stays")}, 1);
  const auto changed = with_fps("changed", 4);
  const auto plan = fleet.reload({changed, camera("stays")});
  EXPECT_TRUE(plan.start.empty() && plan.alter.empty() && plan.stop.empty() && plan.end.empty());
  const auto departed = fleet.departed();
  EXPECT_THAT(departed.gone, ElementsAre("gone"));
  EXPECT_THAT(departed.start, ElementsAre("changed"));
  EXPECT_EQ(fleet.settings("changed"), changed);
  EXPECT_EQ(fleet.remaining().size(), 2U);
  EXPECT_FALSE(fleet.all_ended());
}

TEST(FleetReload, AFileThatWasPlayedIsNotPlayedAgainUnlessItsStreamIsAnother) {
  ManualClock clock;
  Fleet fleet({camera("file")}, 1);
  fleet.started("file");
  fleet.lost("file", /*failed=*/false, clock.now());
  fleet.ended("file");
  for (const auto& settings : {CameraPtr(camera("file")), with_threshold("file", 0.9)}) {
    const auto plan = fleet.reload({settings});
    EXPECT_TRUE(plan.start.empty() && plan.alter.empty() && plan.stop.empty() && plan.end.empty());
    EXPECT_THAT(fleet.departed().start, IsEmpty());
  }
  fleet.reload({with_fps("file", 4)});
  EXPECT_THAT(names(fleet.remaining()), ElementsAre("file"));
  EXPECT_THAT(fleet.departed().start, ElementsAre("file"));
}

TEST(FleetReload, AFleetThatStopsTakesNoNewList) {
  ManualClock clock;
  Fleet fleet({camera("a"), camera("b")}, 1);
  for (const char* name : {"a", "b"}) fleet.started(name);
  fleet.reload({camera("a"), with_fps("b", 4)});
  fleet.stop();
  const auto plan = fleet.reload({camera("c")});
  EXPECT_TRUE(plan.start.empty() && plan.alter.empty() && plan.stop.empty() && plan.end.empty());
  fleet.lost("b", /*failed=*/false, clock.now());
  fleet.ended("b");
  EXPECT_THAT(fleet.departed().start, IsEmpty());
  EXPECT_THAT(names(fleet.remaining()), ElementsAre("a"));
}

}  // namespace
}  // namespace vigil::actors
