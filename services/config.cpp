// vigil config: a fleet's configuration in its registry, and which node runs by which.
#include <iostream>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include <CLI/CLI.hpp>

#include "config/file/fleet.h"
#include "config/file/load.h"
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

/// Whether nodes could run by it; otherwise says why not.
bool is_fit(const Site& site, const std::string& text, const ConfigArguments& arguments) {
  if (const auto secrets = config::literal_secrets(text); !secrets.empty()) {
    // What nobody may read is not put where others may.
    std::cerr << config::ConfigError(arguments.file, secrets).what() << '\n';
    return false;
  }
  try {
    const std::string all = config::together(site.text, text, arguments.config);
    config::parse(all, arguments.file, config::process_environment(), {}, config::Unset::accepted,
                  config::Secrets::kept);
    // Nodes read what was written twice.
    if (config::fleet_part(all) == config::fleet_part(text)) return true;
    std::cerr << arguments.file
              << ": says something else once it is written anew; tags and the like are no use\n";
    return false;
  } catch (const config::ConfigError& error) {
    // Lines would be those of both texts together.
    for (const config::Problem& problem : error.problems())
      std::cerr << arguments.file << ": " << problem.message << '\n';
    return false;
  }
}

int put(const ConfigArguments& arguments) {
  const Site site = site_of(arguments);
  check_from_registry(site, arguments.config);
  const std::string text = config::read_text(arguments.file);
  if (!is_fit(site, text, arguments)) return kFailed;
  FleetRegistry registry(site.cluster);
  const std::string hash = registry.put_text(config::without_comments(text));
  std::cout << "configuration " << cluster::shown_hash(hash)
            << " is offered; the fleet runs by it when all its nodes have read it (vigil config status)\n";
  return kDone;
}

int show(const ConfigArguments& arguments) {
  const Site site = site_of(arguments);
  check_from_registry(site, arguments.config);
  FleetRegistry registry(site.cluster);
  const auto now = registry.config();
  if (!now && arguments.hash.empty())
    throw std::runtime_error(registry.unread().empty() ? "the fleet has no configuration yet"
                                                       : *registry.unread().begin());
  std::string wanted = now ? now->hash : "";
  if (!arguments.hash.empty()) {
    const std::string& texts = registry.keys().config_texts();
    wanted.clear();
    for (const cluster::RegistryEntry& entry : registry.range(texts + arguments.hash)) {
      const std::string found =
          entry.key.substr(texts.size(), entry.key.find('/', texts.size()) - texts.size());
      if (!wanted.empty() && wanted != found)
        throw std::runtime_error(arguments.hash + " begins more than one");
      wanted = found;
    }
  }
  const auto text = wanted.empty() ? std::nullopt : registry.text(wanted);
  if (!text)
    throw std::runtime_error("the registry has no text of " +
                             (arguments.hash.empty() ? cluster::shown_hash(wanted) : arguments.hash));
  std::cout << *text;
  return kDone;
}

int status(const ConfigArguments& arguments) {
  FleetRegistry registry(site_of(arguments).cluster);
  const auto registered = registry.config();
  const auto nodes = registry.nodes();
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
  for (const std::string& line : registry.unread()) std::cerr << "vigil: " << line << '\n';
  return all && held.empty() && registry.unread().empty() ? kDone : kFailed;
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
