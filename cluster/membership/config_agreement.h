// Which configuration a fleet runs by: a change is applied by all nodes or by none.
//
// Each node reads its own copy, and tells by its record which content it has read last (`config_seen`), or
// why it cannot take that (`config_fault`). When all nodes that run have read the same without a fault, the
// one that plans writes it into the registry as the fleet's, with the next version; each node runs by it from
// when it sees that, and tells so (`config`, `config_version`).
//
// - Who runs by the fleet's configuration has a say; who joins with another one waits until the fleet has
//   taken that, or its file says what the fleet's does. So copies that arrive at different times, and a node
//   with an old one, change nothing and stop nothing.
// - A node that is gone (its lease has ended) has none. One that has a fault, or is behind, holds a
//   change up, and `pending` names it.
// - When nobody runs (a fleet that was stopped as a whole), those that wait have the say: they begin
//   with what all of them have, unless the fleet had it before and left it.
// - Versions never go back: of what the registry says and what nodes have told, the highest counts, also when
//   the registry was set back to a backup.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/membership/node_record.h"

namespace vigil::cluster {

/// A fleet's configuration, by its content.
struct FleetConfig {
  std::string hash;
  /// 0: there is none yet.
  std::uint64_t version = 0;
  /// Those that it had before, the newest first, as many as are remembered.
  std::vector<std::string> before;
  friend bool operator==(const FleetConfig&, const FleetConfig&) = default;
};

/// JSON of one line.
std::string print(const FleetConfig& config);
/// Throws std::runtime_error: one line.
FleetConfig parse_config(std::string_view json);

/// What names a configuration's content: SHA-256 of it, in 64 hexadecimal digits; and as much of that as is
/// shown to people.
std::string content_hash(std::string_view content);
std::string shown_hash(const std::string& hash);

/// The fleet's configuration, as far as the registry and the nodes' records tell.
FleetConfig current_config(const std::map<std::string, NodeRecord>& nodes,
                           const std::optional<FleetConfig>& registered);

/// What keeps nodes from running by what some have read: a line for each content, with the nodes that hold it
/// up and why. Empty if there is no change under way. For logs and people, on any node.
std::vector<std::string> pending(const std::map<std::string, NodeRecord>& nodes,
                                 const std::optional<FleetConfig>& registered);

/// What one node does about it. A plain class: its inputs are what was read and what the registry says.
class ConfigAgreement {
 public:
  explicit ConfigAgreement(std::string node) : node_(std::move(node)) {}

  /// The node has read this. Without a fault it can run by it, and by the few that it has read before.
  void read(const std::string& hash, const std::string& fault);
  /// Who is there, this node as it told last included; and what the registry holds.
  void see(const std::map<std::string, NodeRecord>& nodes, const std::optional<FleetConfig>& registered);

  /// What this node has to run by from now on, once for each change. Nothing while it has not read it.
  std::optional<FleetConfig> take();

  /// Whether it runs by what the fleet runs by: then it may be given cameras.
  bool is_in_force() const;
  /// Whether it may plan: nobody plans by a configuration that is not the fleet's.
  bool may_plan() const;
  /// What is to be written as the fleet's, if this node is the one that plans.
  std::optional<FleetConfig> proposal() const;
  /// Why it is not in force, in one line; empty if it is.
  std::string waits() const;

  /// Puts into a record what this node tells.
  void tell(NodeRecord& record) const;

  /// What it runs by.
  const FleetConfig& running() const { return running_; }
  FleetConfig current() const;

 private:
  bool has_read(const std::string& hash) const;

  const std::string node_;
  std::map<std::string, NodeRecord> nodes_;
  std::optional<FleetConfig> registered_;
  /// Without a fault, the newest last.
  std::deque<std::string> read_;
  std::string seen_;
  std::string fault_;
  FleetConfig running_;
};

}  // namespace vigil::cluster
