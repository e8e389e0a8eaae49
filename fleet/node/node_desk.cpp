#include "fleet/node/node_desk.h"

#include <algorithm>
#include <utility>

#include "fleet/messages/messages.h"

namespace vigil::fleet {
namespace {

using cluster::NodeRole;

constexpr base::Duration kFirstPause{500};
constexpr base::Duration kLongestPause{10'000};
constexpr base::Duration kTheirTurn{3000};
/// How long one that has greeted may not be in the registry.
constexpr base::Duration kUnseen{30'000};

}  // namespace

void NodeDesk::see(const std::map<std::string, cluster::NodeRecord>& nodes, const std::string& self) {
  std::erase_if(peers_, [&](const auto& each) {
    return !nodes.contains(each.first) && (each.second.is_seen || clock_.now() >= each.second.again);
  });
  if (const auto own = nodes.find(self); own != nodes.end()) roles_ = own->second.roles;
  for (const auto& [name, record] : nodes) {
    if (name == self) continue;
    Peer& peer = peers_[name];
    if (peer.record.incarnation != record.incarnation) {
      peer = {};
      peer.theirs_first = name < self;
    }
    if (peer.record != record) peer.record = record;
    peer.is_seen = true;
  }
}

bool NodeDesk::is_needed(const cluster::NodeRecord& node) const {
  return roles_.contains(NodeRole::gateway) || node.roles.contains(NodeRole::gateway) ||
         needed_.contains(node.name);
}

bool NodeDesk::may_greet_us(const cluster::NodeRecord& node) const {
  if (roles_.contains(NodeRole::gateway) || node.roles.contains(NodeRole::gateway)) return true;
  const auto computes = [](NodeRole role) { return role != NodeRole::camera; };
  if (node.roles.contains(NodeRole::camera) && std::ranges::any_of(roles_, computes)) return true;
  // To send it visual tokens, which one that encodes itself does without.
  return node.roles.contains(NodeRole::vision) && roles_.contains(NodeRole::stream) &&
         !roles_.contains(NodeRole::vision);
}

bool NodeDesk::deals_with(const std::string& node) const {
  const auto peer = peers_.find(node);
  return peer != peers_.end() && (peer->second.was_known || is_needed(peer->second.record));
}

void NodeDesk::lost(const std::string& node, const std::string& self) {
  const auto peer = peers_.find(node);
  if (peer == peers_.end() || peer->second.state != Peer::State::known) return;
  peer->second.state = Peer::State::fresh;
  peer->second.theirs_first = node < self;
}

std::vector<cluster::NodeRecord> NodeDesk::take_greetings() {
  std::vector<cluster::NodeRecord> due;
  for (auto& [name, peer] : peers_) {
    if (peer.state == Peer::State::known || peer.state == Peer::State::asked || !is_needed(peer.record))
      continue;
    if (peer.state == Peer::State::fresh && peer.theirs_first && may_greet_us(peer.record)) {
      peer.state = Peer::State::waiting;
      peer.again = clock_.now() + kTheirTurn;
    }
    if (peer.state == Peer::State::waiting && clock_.now() < peer.again) continue;
    peer.state = Peer::State::asked;
    due.push_back(peer.record);
  }
  return due;
}

NodeDesk::Peer* NodeDesk::find(const std::string& node, const std::string& incarnation) {
  const auto peer = peers_.find(node);
  return peer == peers_.end() || peer->second.record.incarnation != incarnation ? nullptr : &peer->second;
}

void NodeDesk::greeted(const std::string& node, const std::string& incarnation) {
  Peer* const peer = find(node, incarnation);
  if (peer == nullptr) return;
  peer->state = Peer::State::known;
  peer->was_known = true;
  peer->trouble.clear();
  peer->pause = {};
}

void NodeDesk::failed(const std::string& node, const std::string& incarnation, const std::string& reason) {
  Peer* const peer = find(node, incarnation);
  if (peer == nullptr) return;
  peer->state = Peer::State::waiting;
  peer->trouble = reason;
  peer->pause = peer->pause == base::Duration(0) ? kFirstPause : std::min(kLongestPause, 2 * peer->pause);
  peer->again = clock_.now() + peer->pause;
}

void NodeDesk::came(const cluster::NodeRecord& node) {
  Peer& peer = peers_[node.name];
  // The registry may tell of it a little later.
  if (peer.record.incarnation != node.incarnation) {
    peer = {};
    peer.again = clock_.now() + kUnseen;
  }
  peer.record = node;
  peer.state = Peer::State::known;
  peer.was_known = true;
}

bool NodeDesk::knows(const std::string& node) const {
  const auto peer = peers_.find(node);
  return peer != peers_.end() && peer->second.state == Peer::State::known;
}

std::vector<cluster::NodeRecord> NodeDesk::known() const {
  std::vector<cluster::NodeRecord> records;
  for (const auto& [name, peer] : peers_)
    if (peer.state == Peer::State::known) records.push_back(peer.record);
  return records;
}

std::map<std::string, std::string> NodeDesk::troubles() const {
  std::map<std::string, std::string> troubles;
  for (const auto& [name, peer] : peers_)
    if (!peer.trouble.empty()) troubles.emplace(name, peer.trouble);
  return troubles;
}

std::string former_device_of(const cluster::PlannedCamera& camera) {
  return device_of(cluster::former_vision_of(camera), camera.former_stream);
}

std::set<std::pair<std::string, std::string>> computing_nodes(const cluster::NodePlan& plan) {
  std::set<std::pair<std::string, std::string>> nodes;
  for (const auto& [camera, entry] : plan.cameras)
    if (!entry.stream.empty() && !entry.vision.empty()) nodes.emplace(entry.vision, entry.stream);
  for (const auto& [camera, entry] : plan.cameras)
    if (!entry.former_stream.empty()) nodes.emplace(cluster::former_vision_of(entry), entry.former_stream);
  return nodes;
}

std::set<std::string> nodes_for(const cluster::NodePlan& plan) {
  std::set<std::string> nodes;
  for (const auto& [vision, stream] : computing_nodes(plan)) {
    nodes.insert(vision);
    nodes.insert(stream);
  }
  return nodes;
}

bool computes(const cluster::FleetPlan& plan, const std::map<std::string, cluster::NodeRecord>& nodes,
              const std::string& node) {
  return std::ranges::any_of(plan, [&](const auto& each) {
    return nodes.contains(each.first) && nodes_for(each.second).contains(node);
  });
}

}  // namespace vigil::fleet
