#include "fleet/node/node_desk.h"

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <utility>

#include "cluster/membership/node_roles.h"
#include "cluster/placement/rendezvous.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {
namespace {

using cluster::NodeRole;

constexpr base::Duration kFirstPause{500};
constexpr base::Duration kLongestPause{10'000};
constexpr base::Duration kTheirTurn{3000};
/// How long one that has greeted may not be in the registry.
constexpr base::Duration kUnseen{30'000};
constexpr base::Duration kCheck{10'000};
constexpr base::Duration kCheckAgain{2000};
/// Of those that might be dealt with, how many are tried at once.
constexpr std::size_t kProbes = 3;

/// In which order a node tries others: not all the same first.
std::uint64_t turn_of(const std::string& self, const std::string& other) {
  return cluster::mixed(cluster::Rendezvous::hash_of(self) ^ cluster::Rendezvous::seed_of(other));
}

}  // namespace

void NodeDesk::see(const std::map<std::string, cluster::NodeRecord>& nodes, const cluster::NodeRecord& self) {
  std::erase_if(peers_, [&](const auto& each) {
    return !nodes.contains(each.first) && (each.second.is_seen || clock_.now() >= each.second.again);
  });
  self_ = self.name;
  roles_ = self.roles;
  for (const auto& [name, record] : nodes) {
    if (name == self_) continue;
    Peer& peer = peers_[name];
    if (peer.record.incarnation != record.incarnation) {
      peer = {};
      peer.theirs_first = name < self_;
    }
    if (peer.record != record) peer.record = record;
    peer.is_seen = true;
  }
}

bool NodeDesk::is_needed(const cluster::NodeRecord& node) const {
  return cluster::one_deals_with_all(roles_) || cluster::one_deals_with_all(node.roles) ||
         needed_.contains(node.name) || probes_.contains(node.name);
}

bool NodeDesk::is_counterpart(const Peer& peer) const {
  return peer.is_seen && are_counterparts(roles_, peer.record.roles);
}

bool NodeDesk::are_counterparts(const std::set<NodeRole>& own, const std::set<NodeRole>& other) {
  return cluster::each_deals_with_all(own) || cluster::work_together(own, other);
}

bool NodeDesk::has_counterparts() const {
  return std::ranges::any_of(peers_, [this](const auto& each) { return is_counterpart(each.second); });
}

bool NodeDesk::reaches_a_counterpart() const {
  return std::ranges::any_of(
      peers_, [this](const auto& each) { return is_counterpart(each.second) && reaches(each.first); });
}

std::vector<cluster::NodeRecord> NodeDesk::counterparts(
    const std::map<std::string, cluster::NodeRecord>& nodes, const cluster::NodeRecord& self,
    std::size_t most) {
  std::vector<std::pair<std::uint64_t, const cluster::NodeRecord*>> found;
  for (const auto& [name, node] : nodes)
    if (name != self.name && are_counterparts(self.roles, node.roles))
      found.emplace_back(turn_of(self.name, name), &node);
  std::ranges::sort(found);
  std::vector<cluster::NodeRecord> first;
  for (const auto& [turn, node] : found)
    if (first.size() < most) first.push_back(*node);
  return first;
}

/// Whoever has no way to any that it might deal with tries some: those that are asked now, and then those
/// that it has not tried for the longest.
void NodeDesk::choose_probes() {
  probes_.clear();
  const bool may_know_one = std::ranges::any_of(peers_, [this](const auto& each) {
    const Peer& peer = each.second;
    return is_counterpart(peer) && (reaches(each.first) || (is_needed(peer.record) && peer.trouble.empty() &&
                                                            peer.state != Peer::State::known));
  });
  if (may_know_one) return;
  std::vector<std::tuple<bool, base::Clock::TimePoint, std::uint64_t, std::string>> found;
  for (const auto& [name, peer] : peers_)
    if (is_counterpart(peer))
      found.emplace_back(peer.state != Peer::State::asked, peer.tried, turn_of(self_, name), name);
  std::ranges::sort(found);
  for (const auto& [is_idle, tried, turn, name] : found)
    if (probes_.size() < kProbes) probes_.insert(name);
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
  choose_probes();
  std::vector<cluster::NodeRecord> due;
  for (auto& [name, peer] : peers_) {
    if (peer.state == Peer::State::known || peer.state == Peer::State::asked || !is_needed(peer.record))
      continue;
    if (peer.state == Peer::State::fresh && peer.theirs_first &&
        cluster::may_greet(peer.record.roles, roles_)) {
      peer.state = Peer::State::waiting;
      peer.again = clock_.now() + kTheirTurn;
    }
    if (peer.state == Peer::State::waiting && clock_.now() < peer.again) continue;
    peer.state = Peer::State::asked;
    peer.tried = clock_.now();
    due.push_back(peer.record);
  }
  return due;
}

std::vector<cluster::NodeRecord> NodeDesk::take_checks() {
  std::vector<cluster::NodeRecord> due;
  for (auto& [name, peer] : peers_) {
    if (peer.state != Peer::State::known || clock_.now() < peer.check ||
        !cluster::deal(roles_, peer.record.roles))
      continue;
    // The other side does, otherwise.
    if (!peer.was_greeted && !is_needed(peer.record)) continue;
    peer.check = clock_.now() + kCheck;
    due.push_back(peer.record);
  }
  return due;
}

bool NodeDesk::checked(const std::string& node, const std::string& incarnation, const std::string& fault) {
  Peer* const peer = find(node, incarnation);
  if (peer == nullptr || peer->state != Peer::State::known) return false;
  peer->is_checked = true;
  // Whichever side has asked, the other one need not.
  const bool answers = fault.empty() || cluster::is_about_clocks(fault);
  peer->check = clock_.now() + (answers ? kCheck : kCheckAgain);
  return std::exchange(peer->fault, fault) != fault;
}

bool NodeDesk::reaches(const std::string& node) const {
  const auto peer = peers_.find(node);
  return peer != peers_.end() && peer->second.state == Peer::State::known &&
         (peer->second.fault.empty() || cluster::is_about_clocks(peer->second.fault));
}

bool NodeDesk::is_clock_off() const {
  std::size_t same = 0, other = 0;
  for (const auto& [name, peer] : peers_) {
    if (peer.state != Peer::State::known || !peer.is_checked) continue;
    if (cluster::is_about_clocks(peer.fault)) {
      ++other;
    } else if (peer.fault.empty()) {
      ++same;
    }
  }
  return other > same;
}

void NodeDesk::know(Peer& peer) {
  peer.state = Peer::State::known;
  peer.was_known = true;
  peer.fault.clear();
  peer.trouble.clear();
  peer.is_checked = true;
  // Not all of those that came together.
  peer.check = clock_.now() + kCheck / 2 +
               base::Duration(static_cast<std::int64_t>(turn_of(self_, peer.record.name) %
                                                        static_cast<std::uint64_t>(kCheck.count() / 2)));
}

NodeDesk::Peer* NodeDesk::find(const std::string& node, const std::string& incarnation) {
  const auto peer = peers_.find(node);
  return peer == peers_.end() || peer->second.record.incarnation != incarnation ? nullptr : &peer->second;
}

void NodeDesk::greeted(const std::string& node, const std::string& incarnation) {
  Peer* const peer = find(node, incarnation);
  if (peer == nullptr) return;
  know(*peer);
  peer->was_greeted = true;
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

bool NodeDesk::came(const cluster::NodeRecord& node) {
  if (!peers_.contains(node.name)) {
    const auto is_unseen = [](const auto& each) { return !each.second.is_seen; };
    const auto unseen = [&] { return std::ranges::count_if(peers_, is_unseen); };
    if (unseen() >= static_cast<std::ptrdiff_t>(kMostUnseen))
      std::erase_if(peers_,
                    [&](const auto& each) { return is_unseen(each) && clock_.now() >= each.second.again; });
    if (unseen() >= static_cast<std::ptrdiff_t>(kMostUnseen)) return false;
  }
  Peer& peer = peers_[node.name];
  // The registry may tell of it a little later.
  if (peer.record.incarnation != node.incarnation) {
    peer = {};
    peer.again = clock_.now() + kUnseen;
  }
  peer.record = node;
  know(peer);
  return true;
}

bool NodeDesk::had_way(const std::string& node, const std::string& incarnation) const {
  const auto peer = peers_.find(node);
  return peer != peers_.end() && peer->second.record.incarnation == incarnation && peer->second.was_known;
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
    if (!peer.trouble.empty() || !peer.fault.empty())
      troubles.emplace(name, peer.trouble.empty() ? peer.fault : peer.trouble);
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

bool has_successor(const std::map<std::string, cluster::NodeRecord>& nodes, const cluster::NodeRecord& self,
                   cluster::NodeRole role) {
  return self.roles.contains(role) && std::ranges::any_of(nodes, [&](const auto& node) {
           return node.first != self.name && node.second.state == cluster::NodeState::ready &&
                  node.second.roles.contains(role);
         });
}

bool computes(const cluster::FleetPlan& plan, const std::map<std::string, cluster::NodeRecord>& nodes,
              const std::string& node) {
  return std::ranges::any_of(plan, [&](const auto& each) {
    return nodes.contains(each.first) && nodes_for(each.second).contains(node);
  });
}

}  // namespace vigil::fleet
