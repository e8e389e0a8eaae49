// Fleets in virtual time, by seeds; README.md says how to have more of them, and one again.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "tests/fleet/sim/fleet.h"

namespace vigil::fleet::sim {
namespace {

using namespace std::chrono_literals;

/// Of one seed: some storms, and the calms between them.
constexpr Micros kRun = 12min;
/// Node-hours of a run in CI: of nodes of plain classes, and of actors.
constexpr std::uint64_t kPlainHours = 900;
constexpr std::uint64_t kActorHours = 100;
/// In which a mistake has to be found.
constexpr double kBudget = 50;

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class FleetSim : public ::testing::TestWithParam<bool> {};

TEST_P(FleetSim, ManySeedsKeepAllThatHasToHold) {
  const bool of_actors = GetParam();
  const std::uint64_t only = number_of("VIGIL_SIM_SEED", 0);
  const auto hours = static_cast<double>(number_of(of_actors ? "VIGIL_SIM_ACTOR_HOURS" : "VIGIL_SIM_HOURS",
                                                   of_actors ? kActorHours : kPlainHours));
  const auto begin = std::chrono::steady_clock::now();
  double done = 0;
  std::uint64_t seeds = 0, events = 0, patches = 0, moves = 0, published = 0, served = 0;
  std::map<std::string, int> faults;
  std::map<std::string, std::uint64_t> crashes;
  for (std::uint64_t seed = only == 0 ? number_of("VIGIL_SIM_FIRST", 1) : only; done < hours; ++seed) {
    Fleet::Options options = Fleet::of_seed(seed, of_actors);
    options.chaos.restores |= number_of("VIGIL_SIM_RESTORES", 0) > 0;
    if (number_of("VIGIL_SIM_ALIKE", 0) > 0) options.layout = Fleet::Options::Layout::alike;
    Fleet fleet(options);
    // To see how all are at a time.
    const auto stop = std::chrono::seconds(number_of("VIGIL_SIM_STOP", 0));
    const bool is_well = fleet.run(stop > 0s ? stop : kRun);
    if (stop > 0s) std::cout << fleet.story() << '\n';
    done += fleet.node_hours();
    ++seeds;
    events += fleet.world().events();
    patches += fleet.audit().patches();
    moves += fleet.audit().moves();
    published += fleet.events().events();
    served += fleet.events().served();
    for (const auto& [fault, count] : fleet.chaos().counts()) faults[fault] += count;
    for (const auto& host : fleet.world().hosts())
      for (std::size_t i = 0; i < kPoints; ++i)
        crashes[std::string(name_of(static_cast<Point>(i)))] += host->crashes_before[i];
    ASSERT_TRUE(is_well) << fleet.story() << "\nVIGIL_SIM_SEED=" << seed << " shows it again";
    if (only != 0) break;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  std::cout << done << " node-hours of " << seeds << " seeds in " << took.count() << " s: " << events
            << " events, " << patches << " patches taken, " << published << " events published, " << moves
            << " times a camera got an owner, " << served << " times a gateway came to serve\n";
  for (const auto& [fault, count] : faults) std::cout << "  " << fault << ": " << count << '\n';
  for (const auto& [where, count] : crashes)
    if (count > 0) std::cout << "  a crash before: " << where << ": " << count << '\n';
  if (of_actors && only == 0 && hours >= static_cast<double>(kActorHours)) {
    for (const Point point :
         {Point::message, Point::request, Point::turn, Point::write, Point::written, Point::acknowledge})
      EXPECT_GT(crashes[std::string(name_of(point))], 0U) << name_of(point);
  }
  EXPECT_GT(moves, 0U);
  EXPECT_GT(patches, 0U);
  EXPECT_EQ(published > 0, of_actors);
}

TEST_P(FleetSim, ASeedReplaysExactly) {
  const auto hash_of = [&](std::uint64_t seed) {
    Fleet fleet(Fleet::of_seed(seed, GetParam()));
    fleet.run(5min);
    return fleet.world().hash();
  };
  const std::uint64_t hash = hash_of(7);
  EXPECT_EQ(hash_of(7), hash);
  EXPECT_NE(hash_of(8), hash);
}

INSTANTIATE_TEST_SUITE_P(Of, FleetSim, ::testing::Bool(),
                         [](const auto& each) { return each.param ? "Actors" : "PlainClasses"; });

/// The registry has both all the while: nobody tells them that they are to begin anew.
TEST_P(FleetSim, NodesThatWereCutApartFindEachOtherAgain) {
  Fleet fleet({.seed = 3,
               .of_actors = GetParam(),
               .camera_nodes = 1,
               .computing_nodes = 1,
               .cameras = 2,
               .is_quiet = true});
  ASSERT_TRUE(fleet.run(40s));
  fleet.check();
  ASSERT_EQ(fleet.world().failure(), "");
  Host& camera = fleet.host_of("cam1");
  Host& computes = fleet.host_of("gpu1");
  fleet.network().cut(camera, computes);
  fleet.network().cut(computes, camera);
  fleet.run(20s);
  const std::uint64_t before = fleet.audit().patches();
  fleet.run(10s);
  EXPECT_EQ(fleet.audit().patches(), before);
  fleet.network().mend(camera, computes);
  fleet.network().mend(computes, camera);
  fleet.run(40s);
  fleet.check();
  EXPECT_EQ(fleet.world().failure(), "");
  EXPECT_GT(fleet.audit().patches(), before);
}

struct Planted {
  const char* name;
  bool Mistakes::*mistake;
  /// Part of what is said when it is found.
  const char* found;
  bool of_actors = false;
};

class PlantedMistakes : public ::testing::TestWithParam<Planted> {};

TEST_P(PlantedMistakes, AreFound) {
  Mistakes mistakes;
  mistakes.*GetParam().mistake = true;
  double hours = 0;
  for (std::uint64_t seed = 1; hours < kBudget; ++seed) {
    Fleet::Options options = Fleet::of_seed(seed, GetParam().of_actors);
    options.mistakes = mistakes;
    Fleet fleet(options);
    const bool is_well = fleet.run(kRun);
    hours += fleet.node_hours();
    // Another one, which this one brings about or not, is not what is looked for.
    if (is_well || fleet.world().failure().find(GetParam().found) == std::string::npos) continue;
    std::cout << "after " << hours << " node-hours: " << fleet.world().failure() << '\n';
    Fleet again(options);
    EXPECT_FALSE(again.run(kRun));
    EXPECT_EQ(again.world().failure(), fleet.world().failure()) << "a seed that fails does so again";
    EXPECT_EQ(again.world().hash(), fleet.world().hash());
    return;
  }
  FAIL() << "not found in " << hours << " node-hours";
}

INSTANTIATE_TEST_SUITE_P(
    All, PlantedMistakes,
    ::testing::Values(
        Planted{"RegistryIgnoresConditions", &Mistakes::registry_ignores_conditions, "fence"},
        Planted{"PlannerGivesOldFences", &Mistakes::planner_gives_old_fences, "fence"},
        Planted{"PlannerLeavesCamerasToTheDead", &Mistakes::planner_leaves_cameras_to_the_dead,
                "nothing is taken of"},
        Planted{"DockIgnoresFences", &Mistakes::dock_ignores_fences, " took camera "},
        Planted{"MemberBelievesTooLong", &Mistakes::member_believes_too_long,
                "believes that its lease holds"},
        Planted{"NetworkReorders", &Mistakes::network_reorders, "took patch"},
        Planted{"CameraEndsWhenCutOff", &Mistakes::camera_ends_when_cut_off, "nothing is taken of"},
        Planted{"RegistryIsTrusted", &Mistakes::registry_is_trusted, "is taken with fence"},
        Planted{"RequestsAreKept", &Mistakes::requests_are_kept, "requests of a node"},
        Planted{"NoAnswerToANewOwner", &Mistakes::no_answer_to_a_new_owner, "tells nothing of camera", true},
        Planted{"BooksEndTooFar", &Mistakes::books_end_too_far, " after #", true},
        Planted{"DiskAnswersTooEarly", &Mistakes::disk_answers_too_early, " has not ", true},
        Planted{"DiskTearsWrites", &Mistakes::disk_tears_writes, " after #", true}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace vigil::fleet::sim
