// What a node tells the others of itself.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cluster/peers/peer_address.h"

namespace vigil::cluster {

/// What a node does for its fleet. camera: reads cameras, and makes alerts of their answers; vision: makes
/// visual tokens; stream: asks windows; generate: completes answers; cache: keeps what windows have left;
/// gateway: keeps and publishes events, and answers people.
enum class NodeRole : std::uint8_t { camera, vision, stream, generate, cache, gateway };

std::string_view name_of(NodeRole role);
std::optional<NodeRole> parse_role(std::string_view name);

/// A number that grows with every change of a camera's owner: receivers refuse what comes with a lower one
/// than they have seen (plan.h).
using Fence = std::uint64_t;

/// The forms of messages that a build speaks. Two builds fit if they have one in common, and speak the newest
/// of these.
struct ProtocolRange {
  std::uint32_t oldest = 1;
  std::uint32_t newest = 1;
  friend bool operator==(const ProtocolRange&, const ProtocolRange&) = default;
};

/// joining: it is there and may not be given anything yet; ready; draining: it wants to be rid of what it
/// has.
enum class NodeState : std::uint8_t { joining, ready, draining };

std::string_view name_of(NodeState state);

struct NodeRecord {
  /// One of the fleet at a time.
  std::string name;
  /// Tells one run of the program from another.
  std::string incarnation;
  std::set<NodeRole> roles;
  NodeState state = NodeState::joining;
  /// Where others reach it: by messages; with bulk bytes, and the public key of CURVE that it has there
  /// (empty: plain text).
  PeerAddress control;
  PeerAddress bulk;
  std::string bulk_key;
  /// Of the program.
  std::string version;
  std::string commit;
  ProtocolRange protocol;
  /// Names what its model computes by what is in its files; empty if it has none.
  std::string model;
  /// Its share of what nodes of its roles have, and how much it may have at most, in loads: of cameras that
  /// it reads, of streams that it computes. 0: no bound.
  double weight = 1;
  double cameras = 0;
  double streams = 0;
  /// The configuration that it runs by, and the newest one that it has read, each by its content; and why it
  /// cannot take that, if so (config_agreement.h).
  std::string config;
  std::string config_seen;
  std::string config_fault;
  /// Of `config`; 0: none yet.
  std::uint64_t config_version = 0;
  /// Of all that it has seen of the fleet: a registry that was restored has forgotten some.
  Fence highest_fence = 0;
  /// Of a gateway: whether it has all events, and publishes them.
  bool serves = false;
  /// It has events of cameras that are other nodes' by now, and that no gateway has taken: theirs wait a
  /// moment.
  bool keeps_events = false;
  /// Nodes with which it has to deal and to which it has had no way for a while; the first of them by name.
  std::set<std::string> unreachable = {};
  /// There are nodes with which those of its roles deal, and it has no way to any of them, or none of those
  /// that it has asked has one to it.
  bool apart = false;
  /// Its clock is not that of most nodes with which it deals.
  bool clock_off = false;
  friend bool operator==(const NodeRecord&, const NodeRecord&) = default;
};

/// Whether the two differ in more than their configuration, which all nodes of a fleet alter at once; in what
/// counts for the plan, or for who deals with whom; in what every node has to know at once, which of one node
/// that cannot be reached all tell that deal with it.
bool differ_beyond_configuration(NodeRecord a, const NodeRecord& b);
bool differ_in_substance(NodeRecord a, const NodeRecord& b);
bool differ_at_once(NodeRecord a, const NodeRecord& b);

/// JSON of one line.
std::string print(const NodeRecord& record);
/// What it does not know is passed over, so that a newer build's can be read. Throws std::runtime_error: one
/// line with what is missing or wrong.
NodeRecord parse_node(std::string_view json);

}  // namespace vigil::cluster
