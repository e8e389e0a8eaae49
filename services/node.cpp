// vigil node: this process as a node of a fleet.
#include <iostream>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>

#include "cluster/membership/node_roles.h"
#include "cluster/process/clock.h"
#include "cluster/process/end_requests.h"
#include "cluster/process/file_watch.h"
#include "cluster/process/process.h"
#include "config/checks/short_grace.h"
#include "config/file/fleet.h"
#include "config/file/load.h"
#include "config/schema/fields.h"
#include "fleet/node/engine_need.h"
#include "services/command.h"
#include "services/ending.h"
#include "services/fleet_file.h"
#include "services/fleet_registry.h"
#include "services/node_need.h"
#include "services/node_process.h"
#include "services/service_parts.h"
#include "services/signals.h"

namespace vigil::services {
namespace {

struct NodeArguments {
  std::string config;
  std::vector<std::string> roles;
  std::string name;
};

/// What the node begins with, once it is there. Throws.
fleet::ReadConfigurationPtr read_start(FleetSource& source) {
  const std::string own = source.text();
  if (config::is_in_registry(own)) {
    // What is wrong with it would be so, too, when the rest has come.
    config::parse(own, source.file(), config::process_environment(), {}, config::Unset::problem,
                  config::Secrets::kept, config::Holds::own);
    const config::ClusterSettings complete = cluster_of(own, source.file());
    const auto say = [](const std::string& line) { std::cerr << "vigil: " << line << '\n'; };
    cluster::FleetStore store = fleet_store(complete);
    wait_for_configuration(store, source, say);
  }
  FleetText text = fleet_text(source.text(), source.file());
  if (!text.problems.empty()) throw std::runtime_error(text.problems);
  return std::move(text.read);
}

int run(const NodeArguments& arguments) {
  const std::set<cluster::NodeRole> roles = roles_of(arguments.roles);
  check_threads(kThreads);
  Ending ending(kDone);
  const cluster::SystemClock clock;
  cluster::EndRequests requests(clock);
  // Before it is read, so that no change is missed while the model loads.
  cluster::FileWatch watch(arguments.config);
  const Signals handler(
      [&] {
        const auto meaning = requests.take();
        if (meaning == cluster::EndRequests::Meaning::quit) quit();
        if (meaning == cluster::EndRequests::Meaning::nothing) return;
        ending.ask();
      },
      [&watch] { watch.poke(); });
  FleetSource source(arguments.config);
  fleet::ReadConfigurationPtr start;
  try {
    start = read_start(source);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
  const config::Settings& settings = *start->settings;
  const auto logger = make_logger(settings.log);
  Announcer announcer(*logger);
  if (fleet::halves_of(roles))
    for (const std::string& line : config::short_grace(settings)) announcer.warn(line);
  try {
    std::string name = !arguments.name.empty() ? arguments.name : settings.name;
    if (name.empty()) name = cluster::host_name();
    return run_node({source, watch, start, roles, name}, ending, *logger, announcer);
  } catch (const std::exception& error) {
    announcer.error(error.what());
    return kFailed;
  }
}

}  // namespace

void add_node(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("node", "Be a node of a fleet");
  auto arguments = std::make_shared<NodeArguments>();
  command->add_option("--config", arguments->config, "the fleet's configuration, with a section `cluster`")
      ->required()
      ->type_name("FILE");
  command->add_option("--roles", arguments->roles, "what it does, with commas: " + cluster::names_of_roles())
      ->required()
      ->type_name("ROLE");
  command
      ->add_option("--name", arguments->name,
                   "this node's name, instead of the configuration's or the host's")
      ->check([](const std::string& name) {
        return config::is_name(name) ? std::string() : "expected " + std::string(config::kName.expected);
      })
      ->type_name("NAME");
  command->footer(
      "The first SIGTERM or SIGINT hands its cameras over to other nodes, finishes what is under way within "
      "the configuration's grace period, and ends.\n"
      "Example: vigil node --roles camera,vision,stream,generate --config fleet.yaml\n"
      "The vision tower on nodes of its own: --roles vision on some, --roles stream,generate on others; "
      "explanations, too: --roles stream, --roles generate.");
  command->callback([arguments, &chosen] { chosen = [arguments] { return run(*arguments); }; });
}

}  // namespace vigil::services
