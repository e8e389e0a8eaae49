// vigil bench placement: what placing the cameras of a fleet takes and moves.
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "bench/placement_bench.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "services/build_info.h"
#include "services/command.h"

namespace vigil::services {
namespace {

struct PlacementArguments {
  bench::PlacementBenchOptions bench;
  std::string loads = "equal";
  std::string weights = "equal";
};

constexpr int kMostCameras = 4'000'000;
constexpr int kMostNodes = 100'000;

int bench_placement(PlacementArguments arguments) {
  bench::PlacementBenchOptions& options = arguments.bench;
  options.fleet.mixed_loads = arguments.loads == "mixed";
  options.fleet.mixed_weights = arguments.weights == "mixed";
  if (options.fleet.cameras < options.fleet.nodes)
    throw UsageError("--cameras: expected at least as many as --nodes");
  const cluster::SystemClock clock;
  bench::PlacementBench bench(options, clock);
  bench.run();
  bench.print({{"bench", "placement"},
               {"cameras", options.fleet.cameras},
               {"nodes", options.fleet.nodes},
               {"loads", arguments.loads},
               {"weights", arguments.weights},
               {"slack", options.slack},
               {"most_moves", options.most_moves},
               {"departures", options.day.departures},
               {"churn", options.day.cameras},
               {"hours", options.hours},
               {"seed", options.fleet.seed},
               {"machine", cluster::processor_name()},
               {"commit", kCommit}},
              std::cout);
  return kDone;
}

}  // namespace

void add_bench_placement(CLI::App& bench, Invocation& chosen) {
  CLI::App* command =
      bench.add_subcommand("placement", "Measure how the cameras of a fleet are placed on its nodes");
  command->footer(
      "Prints a JSON line a figure: the time of a full placement on one core, what a lost and a new node "
      "move, how even the loads are, and the moves of a simulated day, in which nodes and cameras come and "
      "go. Each stands beside the hash modulo the number of nodes and rendezvous hashing without bounds.");
  auto arguments = std::make_shared<PlacementArguments>();
  bench::PlacementBenchOptions& options = arguments->bench;
  command->add_option("--cameras", options.fleet.cameras, "Cameras of the fleet")
      ->check(from_to(2, kMostCameras))
      ->capture_default_str();
  command->add_option("--nodes", options.fleet.nodes, "Its nodes")
      ->check(from_to(2, kMostNodes))
      ->capture_default_str();
  command->add_option("--loads", arguments->loads, "Of the cameras: equal, or mixed: from 0.5 to 2")
      ->check(one_of({"equal", "mixed"}))
      ->capture_default_str();
  command->add_option("--weights", arguments->weights, "Of the nodes: equal, or mixed: 1, 2 and 3")
      ->check(one_of({"equal", "mixed"}))
      ->capture_default_str();
  command->add_option("--slack", options.slack, "By what part of its share a node's load may differ from it")
      ->check(from_to(0, 1))
      ->capture_default_str();
  command
      ->add_option("--most-moves", options.most_moves,
                   "Moves that only even out or drain, in a call; of the day, in a minute")
      ->check(from_to(1, kMostCameras))
      ->capture_default_str();
  command->add_option("--hours", options.hours, "Of the simulated day; 0: none")
      ->check(from_to(0, 1000))
      ->capture_default_str();
  command->add_option("--departures", options.day.departures, "How often a node goes in a day")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--churn", options.day.cameras, "Cameras that go in a day, and that come, as a share")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--seed", options.fleet.seed, "Of what happens in the day")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--runs", options.runs, "Runs that count, of all but the day")
      ->check(from_to(1, 1000))
      ->capture_default_str();
  command->callback([&chosen, arguments] { chosen = [arguments] { return bench_placement(*arguments); }; });
}

}  // namespace vigil::services
