// vigil bench city: the control plane of a city in virtual time, and what of it breaks first.
#include <iostream>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "bench/city.h"
#include "bench/city_measured.h"
#include "cluster/process/clock.h"
#include "cluster/process/process.h"
#include "services/build_info.h"
#include "services/command.h"

namespace vigil::services {
namespace {

struct CityArguments {
  bench::CityOptions city;
  std::string lease = "5s";
  std::string steady = "10m";
  std::string window = "40s";
  double etcd_sync = 2;
  bool measure = false;
};

constexpr int kMostCityCameras = 1'000'000;
constexpr int kMostCityNodes = 10'000;
constexpr int kMostCityGateways = 100;

void print_phase(const nlohmann::json& about, const bench::CityPhase& phase) {
  for (const bench::CityPhase::Figure& figure : phase.figures) {
    nlohmann::json line = about;
    line["phase"] = phase.name;
    line["figure"] = figure.name;
    line["unit"] = figure.unit;
    line["value"] = figure.value;
    if (figure.capacity > 0) line["of_capacity"] = figure.value / figure.capacity;
    std::cout << line.dump() << std::endl;
  }
}

int bench_city(CityArguments arguments) {
  bench::CityOptions& options = arguments.city;
  options.lease = duration_of("--lease", arguments.lease);
  options.steady = duration_of("--steady", arguments.steady);
  options.window = duration_of("--window", arguments.window);
  options.costs.etcd_sync = bench::Nanoseconds(static_cast<std::int64_t>(arguments.etcd_sync * 1e6));
  if (options.lease < std::chrono::seconds(1)) throw UsageError("--lease: expected a second or more");
  if (options.nodes < options.gateways + 2)
    throw UsageError("--nodes: expected at least two more than --gateways");
  if (options.cameras < options.nodes) throw UsageError("--cameras: expected at least as many as --nodes");
  const nlohmann::json about = {{"bench", "city"},        {"cameras", options.cameras},
                                {"nodes", options.nodes}, {"gateways", options.gateways},
                                {"seed", options.seed},   {"commit", kCommit}};
  if (arguments.measure) {
    nlohmann::json here = about;
    here["machine"] = cluster::processor_name();
    print_phase(here, bench::measured_city_costs(options, cluster::SystemClock()));
    return kDone;
  }
  bench::City city(options);
  city.run([&](const bench::CityPhase& phase) { print_phase(about, phase); });
  const std::vector<std::string> faults = city.faults();
  for (const std::string& fault : faults) std::cerr << "vigil: at the end: " << fault << '\n';
  return faults.empty() ? kDone : kFailed;
}

}  // namespace

void add_bench_city(CLI::App& bench, Invocation& chosen) {
  CLI::App* command = bench.add_subcommand("city", "Run the control plane of a whole city in virtual time");
  command->footer(
      "Membership, planning and greetings are those of `vigil node`; etcd, gateways, the network and cameras "
      "are modelled by what they were measured to take (docs/scale.md). The city starts, is steady, loses a "
      "node, its planner, etcd's leader, one of its servers, the power of a site and a gateway, and is "
      "upgraded. Prints a JSON "
      "line a figure and phase, the same whenever it is run; of_capacity is 1 where a limit is reached. Exit "
      "code 1 if cameras are without an owner, or have two, at the end.");
  auto arguments = std::make_shared<CityArguments>();
  bench::CityOptions& options = arguments->city;
  command->add_option("--cameras", options.cameras, "Cameras of the city")
      ->check(from_to(2, kMostCityCameras))
      ->capture_default_str();
  command->add_option("--nodes", options.nodes, "Its nodes, of all roles")
      ->check(from_to(2, kMostCityNodes))
      ->capture_default_str();
  command->add_option("--gateways", options.gateways, "Nodes that are gateways")
      ->check(from_to(0, kMostCityGateways))
      ->capture_default_str();
  command
      ->add_option("--camera-nodes", options.camera_nodes,
                   "The part of the others that reads cameras; the rest computes")
      ->check(from_to(0, 1))
      ->capture_default_str();
  command->add_option("--lease", arguments->lease, "After what silence a node counts as gone")
      ->capture_default_str();
  command->add_option("--alerts", options.alerts, "Of a camera in a minute")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--subscribers", options.subscribers, "Of each gateway")
      ->check(from_to(0, kMostCityNodes))
      ->capture_default_str();
  command->add_option("--pages", options.pages, "Pages of the fleet that each gateway makes in a second")
      ->check(from_to(0, 1000))
      ->capture_default_str();
  command->add_option("--window", arguments->window, "Of a camera: a stream that moves is full after it")
      ->capture_default_str();
  command->add_option("--sites", options.sites, "Sites, one of which loses its power")
      ->check(from_to(1, kMostCityNodes))
      ->capture_default_str();
  command
      ->add_option("--churn", options.churn,
                   "Cameras that leave the configuration in a day, and that come, as a share")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--steady", arguments->steady, "How long nothing happens but alerts and churn")
      ->capture_default_str();
  command->add_option("--upgrades", options.upgrades, "Nodes that are upgraded")
      ->check(from_to(0, kMostCityNodes))
      ->capture_default_str();
  command->add_option("--upgrades-at-once", options.upgrades_at_once, "Of these, at once")
      ->check(from_to(1, kMostCityNodes))
      ->capture_default_str();
  command
      ->add_option("--etcd-sync", arguments->etcd_sync, "What a sync of etcd's disk takes, in milliseconds")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--etcd-cores", options.costs.etcd_cores, "Cores of each of its servers")
      ->check(above_zero())
      ->capture_default_str();
  command
      ->add_option("--etcd-servers", options.costs.etcd_servers, "Its servers, among which nodes are spread")
      ->check(from_to(1, 9))
      ->capture_default_str();
  command->add_option("--seed", options.seed, "Of what happens")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_flag("--measure", arguments->measure,
                    "Measure on this machine what nodes take for it, and no city");
  command->callback([&chosen, arguments] { chosen = [arguments] { return bench_city(*arguments); }; });
}

}  // namespace vigil::services
