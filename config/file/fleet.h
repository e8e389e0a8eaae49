// A configuration's text as nodes of a fleet see it: what of it is one for all of them, and what none of it
// may say where others than its nodes can read it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "config/file/load.h"
#include "config/settings.h"

namespace vigil::config {

/// The top-level keys that are one for the fleet. They are those that a running process follows, but for the
/// log's level; all others are a node's own, and may differ from node to node.
bool is_of_fleet(std::string_view key);

/// Whether the fleet's are not in a node's own text but in the registry, by its `cluster.configuration`;
/// false of a text that cannot be read.
bool is_in_registry(const std::string& own);
/// What is wrong with a key of the fleet's that stands there all the same, behind its name.
inline constexpr std::string_view kInRegistry =
    ": is the fleet's, whose configuration is in the registry (cluster.configuration)";

/// What is one for the fleet, in a form that two texts have in common if they say the same: references as
/// they stand, keys in order, without comments, quotes and layout. Of a text that `parse` takes; throws
/// std::runtime_error of others.
std::string fleet_part(const std::string& text);

/// Passwords that stand in a text as they are, in place of a reference: a problem each, which shows nothing
/// of them.
std::vector<Problem> literal_secrets(const std::string& text);

/// The text without its comments, which may say anything.
std::string without_comments(const std::string& text);

/// A node's own text together with the fleet's, which the registry holds: top-level keys of its own win. What
/// is the fleet's must not stand in `own`. Throws ConfigError.
std::string together(const std::string& own, const std::string& fleet, const std::filesystem::path& file);

}  // namespace vigil::config
