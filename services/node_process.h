// The process of a node: what is made, what is started, and what is awaited.
#pragma once

#include <set>
#include <string>

#include <spdlog/logger.h>

#include "cluster/membership/node_roles.h"
#include "cluster/process/file_watch.h"
#include "fleet/messages/messages.h"
#include "services/ending.h"
#include "services/fleet_file.h"
#include "services/log.h"

namespace vigil::services {

/// What a node begins with.
struct NodeStart {
  /// The configuration's file, and what was read of it at the start.
  FleetSource& source;
  cluster::FileWatch& watch;
  fleet::ReadConfigurationPtr read;
  std::set<cluster::NodeRole> roles;
  std::string name;
};

/// A node from its start until somebody asks for its end, or the fleet does not want it; then it hands over
/// what it has. Returns the exit code. Throws for what is wrong, or is not there, before anything runs that
/// would have to be told to end.
int run_node(const NodeStart& start, Ending& ending, spdlog::logger& logger, Announcer& announcer);

}  // namespace vigil::services
