// vigil config: a fleet's configuration in its registry, and which node runs by which.
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "config/file/fleet.h"
#include "config/file/load.h"
#include "config/file/offer.h"
#include "services/command.h"
#include "services/fleet_registry.h"

namespace vigil::services {
namespace {

struct ConfigArguments {
  std::string config;
  std::string file;
  std::string hash;
};

struct Site {
  std::string text;
  config::ClusterSettings cluster;
};

Site site_of(const ConfigArguments& arguments) {
  std::string text = config::read_text(arguments.config);
  config::ClusterSettings cluster = cluster_of(text, arguments.config);
  return {std::move(text), std::move(cluster)};
}

void check_from_registry(const Site& site, const std::string& file) {
  if (site.cluster.configuration != config::ConfigurationFrom::registry)
    throw std::runtime_error(
        "nodes of " + file +
        " read its cameras themselves; with `cluster: {configuration: registry}` they have "
        "them from the registry");
}

int put(const ConfigArguments& arguments) {
  const Site site = site_of(arguments);
  check_from_registry(site, arguments.config);
  const std::string text = config::read_text(arguments.file);
  const std::vector<config::Problem> problems = config::problems_of_offer(
      text, arguments.file, site.text, arguments.config, config::process_environment());
  if (!problems.empty()) throw config::ConfigError(arguments.file, problems);
  cluster::FleetStore store = fleet_store(site.cluster);
  const std::string hash = store.put_text(config::without_comments(text));
  std::cout << "configuration " << cluster::shown_hash(hash)
            << " is offered; the fleet runs by it when all its nodes have read it (vigil config status)\n";
  return kDone;
}

int show(const ConfigArguments& arguments) {
  const Site site = site_of(arguments);
  check_from_registry(site, arguments.config);
  cluster::FleetStore store = fleet_store(site.cluster);
  const auto now = store.config();
  if (!now && arguments.hash.empty())
    throw std::runtime_error(store.unread().empty() ? "the fleet has no configuration yet"
                                                    : *store.unread().begin());
  const std::string wanted = !arguments.hash.empty() ? store.content_of(arguments.hash).value_or("")
                             : now                   ? now->hash
                                                     : "";
  const auto text = wanted.empty() ? std::nullopt : store.text(wanted);
  if (!text)
    throw std::runtime_error("the registry has no text of " +
                             (arguments.hash.empty() ? cluster::shown_hash(wanted) : arguments.hash));
  std::cout << *text;
  return kDone;
}

int status(const ConfigArguments& arguments) {
  cluster::FleetStore store = fleet_store(site_of(arguments).cluster);
  const auto registered = store.config();
  const auto nodes = store.nodes();
  const cluster::FleetConfig now = cluster::current_config(nodes, registered);
  if (now.version == 0) {
    std::cout << "the fleet has no configuration yet\n";
  } else {
    std::cout << "version " << now.version << " (" << cluster::shown_hash(now.hash) << ")\n";
  }
  bool all = now.version > 0;
  for (const auto& [name, node] : nodes) {
    const bool current = node.config == now.hash && node.config_version == now.version;
    all = all && current;
    std::cout << name << ": ";
    if (node.config_version == 0) {
      std::cout << "none yet";
    } else {
      std::cout << "version " << node.config_version;
    }
    if (node.config_seen != node.config) std::cout << "; has read " << cluster::shown_hash(node.config_seen);
    if (!node.config_fault.empty()) std::cout << "; cannot take it: " << node.config_fault;
    if (node.state == cluster::NodeState::joining) std::cout << "; waits";
    std::cout << '\n';
  }
  const auto held = cluster::pending(nodes, registered);
  for (const std::string& line : held) std::cout << line << '\n';
  for (const std::string& line : store.unread()) std::cerr << "vigil: " << line << '\n';
  return all && held.empty() && store.unread().empty() ? kDone : kFailed;
}

int run(const std::function<int()>& command) {
  try {
    return command();
  } catch (const config::ConfigError& error) {
    std::cerr << error.what() << '\n';
    return kFailed;
  }
}

}  // namespace

void add_config(CLI::App& root, Invocation& chosen) {
  auto* command = root.add_subcommand("config", "The configuration of a fleet");
  command->require_subcommand(1);
  auto arguments = std::make_shared<ConfigArguments>();
  const auto add = [&](const char* name, const char* what, int (*run_it)(const ConfigArguments&)) {
    auto* part = command->add_subcommand(name, what);
    part->add_option("--config", arguments->config, "the configuration of one of its nodes")
        ->required()
        ->type_name("FILE");
    part->callback([=, &chosen] { chosen = [=] { return run([=] { return run_it(*arguments); }); }; });
    return part;
  };
  add("status", "Which node runs by which version, and what holds a change up", status)
      ->footer("Exit status 1: not all run by the same, or a change is held up.");
  auto* put_command = add("put", "Put cameras, rules and defaults into the registry", put);
  put_command->add_option("FILE", arguments->file, "the cameras, rules and defaults; more if nodes share it")
      ->required()
      ->type_name("");
  put_command->footer(
      "For nodes with `cluster: {configuration: registry}`. Comments are left out, and a file in which a "
      "password stands as it is, in place of a reference, is refused.\n"
      "Example: vigil config put cameras.yaml --config node.yaml");
  auto* show_command = add("show", "Show what the registry holds", show);
  show_command
      ->add_option("--hash", arguments->hash, "of another one than what the fleet runs by: how it begins")
      ->type_name("HASH");
}

}  // namespace vigil::services
