#include "bench/placement_controls.h"

#include <cmath>

#include "cluster/placement/rendezvous.h"

namespace vigil::bench {
namespace {

using cluster::PlacementNodeState;
using cluster::Rendezvous;

class Modulo final : public PlacementControl {
 private:
  void change_nodes(const PlacementFleet& fleet) override {
    in_.clear();
    for (std::size_t i = 0; i < fleet.nodes.size(); ++i)
      if (fleet.nodes[i].state == PlacementNodeState::in) in_.push_back(i);
  }
  std::size_t node_of(std::uint64_t camera) const override { return in_[camera % in_.size()]; }

  std::vector<std::size_t> in_;
};

class FirstChoice final : public PlacementControl {
 public:
  explicit FirstChoice(const PlacementFleet& fleet) : rendezvous_(all(fleet)) {}

 private:
  static std::vector<Rendezvous::Node> all(const PlacementFleet& fleet) {
    std::vector<Rendezvous::Node> nodes;
    nodes.reserve(fleet.nodes.size());
    for (const cluster::PlacementNode& node : fleet.nodes)
      nodes.push_back({node.name, std::llround(node.weight * 1e6)});
    return nodes;
  }

  void change_nodes(const PlacementFleet& fleet) override {
    const std::vector<bool> before = in_;
    in_.resize(fleet.nodes.size());
    new_.clear();
    for (std::size_t i = 0; i < fleet.nodes.size(); ++i) {
      in_[i] = fleet.nodes[i].state == PlacementNodeState::in;
      if (in_[i] && (before.empty() || !before[i])) new_.push_back(i);
    }
  }
  std::size_t node_of(std::uint64_t camera) const override {
    return *rendezvous_.first_of(camera, [this](std::size_t node) { return in_[node]; });
  }
  /// Of those that stayed, it prefers the one that it has.
  std::size_t node_after(std::uint64_t camera, std::size_t before) const override {
    if (!in_[before]) return node_of(camera);
    std::size_t best = before;
    for (const std::size_t node : new_)
      if (rendezvous_.prefers(camera, node, best)) best = node;
    return best;
  }

  Rendezvous rendezvous_;
  std::vector<bool> in_;
  /// Since the last change.
  std::vector<std::size_t> new_;
};

}  // namespace

void PlacementControl::start(const PlacementFleet& fleet) {
  change_nodes(fleet);
  hashes_.clear();
  nodes_.clear();
  for (const cluster::PlacementItem& camera : fleet.cameras) {
    hashes_.push_back(Rendezvous::hash_of(camera.name));
    nodes_.push_back(node_of(hashes_.back()));
  }
}

std::size_t PlacementControl::follow(const PlacementFleet& fleet, const PlacementMinute& minute) {
  if (minute.changed_nodes) change_nodes(fleet);
  std::size_t left = 0;
  std::size_t moved = 0;
  for (std::size_t i = 0; i < hashes_.size(); ++i) {
    if (!minute.removed.empty() && minute.removed[i]) continue;
    const std::size_t node = minute.changed_nodes ? node_after(hashes_[i], nodes_[i]) : nodes_[i];
    if (node != nodes_[i]) ++moved;
    hashes_[left] = hashes_[i];
    nodes_[left++] = node;
  }
  hashes_.resize(left);
  nodes_.resize(left);
  for (std::size_t i = left; i < fleet.cameras.size(); ++i) {
    hashes_.push_back(Rendezvous::hash_of(fleet.cameras[i].name));
    nodes_.push_back(node_of(hashes_.back()));
  }
  return moved;
}

std::unique_ptr<PlacementControl> modulo_control() {
  return std::make_unique<Modulo>();
}

std::unique_ptr<PlacementControl> rendezvous_control(const PlacementFleet& fleet) {
  return std::make_unique<FirstChoice>(fleet);
}

}  // namespace vigil::bench
