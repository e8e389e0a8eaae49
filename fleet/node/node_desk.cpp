#include "fleet/node/node_desk.h"

#include <algorithm>
#include <utility>

namespace vigil::fleet {
namespace {

constexpr base::Duration kFirstPause{500};
constexpr base::Duration kLongestPause{10'000};
constexpr base::Duration kTheirTurn{3000};

}  // namespace

void NodeDesk::see(const std::map<std::string, cluster::NodeRecord>& nodes, const std::string& self) {
  std::erase_if(peers_, [&](const auto& peer) { return !nodes.contains(peer.first); });
  for (const auto& [name, record] : nodes) {
    if (name == self) continue;
    Peer& peer = peers_[name];
    if (peer.record.incarnation != record.incarnation) {
      peer = {};
      begin(peer, self < name);
    }
    peer.record = record;
  }
}

void NodeDesk::begin(Peer& peer, bool is_ours) {
  peer.state = is_ours ? Peer::State::fresh : Peer::State::waiting;
  peer.again = clock_.now() + kTheirTurn;
}

void NodeDesk::lost(const std::string& node, const std::string& self) {
  const auto peer = peers_.find(node);
  if (peer != peers_.end() && peer->second.state == Peer::State::known) begin(peer->second, self < node);
}

std::vector<cluster::NodeRecord> NodeDesk::take_greetings() {
  std::vector<cluster::NodeRecord> due;
  for (auto& [name, peer] : peers_) {
    const bool is_due = peer.state == Peer::State::fresh ||
                        (peer.state == Peer::State::waiting && clock_.now() >= peer.again);
    if (!is_due) continue;
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
  if (peer.record.incarnation != node.incarnation) peer = {};
  peer.record = node;
  peer.state = Peer::State::known;
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

std::set<std::pair<std::string, std::string>> computing_nodes(const cluster::NodePlan& plan) {
  std::set<std::pair<std::string, std::string>> nodes;
  for (const auto& [camera, entry] : plan.cameras)
    if (!entry.stream.empty() && !entry.vision.empty()) nodes.emplace(entry.vision, entry.stream);
  return nodes;
}

}  // namespace vigil::fleet
