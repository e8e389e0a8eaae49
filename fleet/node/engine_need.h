// What of the model a node computes with, by its roles.
#pragma once

#include <optional>
#include <set>

#include "cluster/membership/node_roles.h"
#include "config/settings.h"
#include "engine/engine.h"

namespace vigil::fleet {

/// Nothing: it computes nothing.
std::optional<engine::Halves> halves_of(const std::set<cluster::NodeRole>& roles);

/// The engine of such a node. Another device for answers is for nodes that ask windows and complete answers
/// themselves: where one of both is other nodes', a second model would have nothing to do.
config::EngineSettings engine_of(config::EngineSettings settings, const std::set<cluster::NodeRole>& roles);

}  // namespace vigil::fleet
