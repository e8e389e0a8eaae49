#include "tests/fleet/sim/audit.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <variant>

#include "cluster/membership/node_record.h"

namespace vigil::fleet::sim {
namespace {

/// By which a lease may run out for the registry before it does for its owner.
constexpr std::chrono::milliseconds kApart{5};

}  // namespace

using cluster::Fence;
using cluster::NodePlan;

Audit::Audit(RegistryHost& registry, const std::string& fleet, std::vector<std::string> cameras)
    : world_(registry.network().world()),
      store_(registry.store()),
      keys_(fleet),
      cameras_(std::move(cameras)) {
  listener_ = store_.listen([this](cluster::MemoryStore::Notice notice) {
    is_changed_ = true;
    if (notice == cluster::MemoryStore::Notice::restored) was_restored_ = true;
  });
}

Audit::~Audit() {
  store_.forget(listener_);
}

void Audit::look() {
  if (!std::exchange(is_changed_, false)) return;
  if (std::exchange(was_restored_, false)) {
    // What the registry forgot it may give again; those who have it refuse it then.
    for (const auto& [given, node] : given_) given_twice_ = std::max(given_twice_, given.second);
    seen_ = 0;
    plan_.clear();
    records_.clear();
    given_.clear();
    owners_.clear();
    restored_at_ = world_.now();
    const cluster::RegistryRange all = store_.range(keys_.root());
    for (const cluster::RegistryEntry& entry : all.entries) {
      if (entry.key.starts_with(keys_.plans())) {
        see_plan(entry.key.substr(keys_.plans().size()), cluster::parse_plan(entry.value));
      } else if (entry.key.starts_with(keys_.nodes())) {
        record_of(entry.key.substr(keys_.nodes().size())) = cluster::parse_node(entry.value).incarnation;
      }
    }
    seen_ = all.header.revision;
    return;
  }
  const auto result = store_.changes(keys_.root(), seen_ + 1);
  const auto* news = std::get_if<cluster::RegistryNews>(&result);
  if (news == nullptr) return world_.fail("the audit has missed changes of the registry");
  seen_ = news->header.revision;
  bool plans_changed = false;
  cluster::Revision at = 0;
  for (const auto& [deleted, entry] : news->events) {
    // All of a revision belongs together.
    if (entry.modified != at && plans_changed) check_plans();
    at = entry.modified;
    if (entry.key.starts_with(keys_.plans())) {
      plans_changed = true;
      const std::string node = entry.key.substr(keys_.plans().size());
      world_.note(Kind::plan, -1, -1, static_cast<std::uint64_t>(entry.modified));
      if (deleted) {
        plan_.erase(node);
      } else {
        see_plan(node, cluster::parse_plan(entry.value));
      }
    } else if (entry.key.starts_with(keys_.nodes())) {
      const std::string node = entry.key.substr(keys_.nodes().size());
      if (deleted) {
        record_of(node).clear();
        for (const auto& host : world_.hosts())
          if (host->name == node) gone_[static_cast<std::size_t>(host->id)] = world_.now();
        world_.note(Kind::lease_over, -1, -1, static_cast<std::uint64_t>(entry.modified));
      } else {
        record_of(node) = cluster::parse_node(entry.value).incarnation;
      }
    }
  }
  if (plans_changed) check_plans();
}

std::string& Audit::record_of(const std::string& node) {
  records_.resize(world_.hosts().size());
  gone_.resize(world_.hosts().size());
  for (const auto& host : world_.hosts())
    if (host->name == node) return records_[static_cast<std::size_t>(host->id)];
  throw std::logic_error("a record of node " + node + ", which is none");
}

void Audit::see_plan(const std::string& node, const NodePlan& plan) {
  for (const auto& [camera, entry] : plan.cameras) {
    const auto [given, is_new] = given_.emplace(std::pair(camera, entry.fence), node);
    if (!is_new && given->second != node)
      world_.fail("fence " + std::to_string(entry.fence) + " of camera " + camera + " was given to node " +
                  given->second + " and to node " + node);
    if (entry.fence > plan.fence)
      world_.fail("node " + node + "'s plan says that its highest fence is " + std::to_string(plan.fence) +
                  ", and has " + std::to_string(entry.fence) + " of camera " + camera);
  }
  plan_[node] = plan;
}

void Audit::check_plans() {
  for (const std::string& camera : cameras_) {
    Fence highest = 0;
    std::string owner;
    for (const auto& [node, plan] : plan_) {
      const auto entry = plan.cameras.find(camera);
      if (entry == plan.cameras.end()) continue;
      if (entry->second.fence == highest)
        return world_.fail("camera " + camera + " has two owners with fence " + std::to_string(highest) +
                           ": " + owner + " and " + node);
      if (entry->second.fence > highest) {
        highest = entry->second.fence;
        owner = node;
      }
    }
    auto& [before, was] = owners_[camera];
    if (owner.empty()) {
      // Nobody is there to have it: what it had is remembered.
      continue;
    }
    if (cluster::owner_of(plan_, camera) != owner)
      return world_.fail("owner_of says another owner of camera " + camera);
    if (owner != was && highest <= before)
      return world_.fail("camera " + camera + " went from node " + was + " to " + owner +
                         ", and its fence from " + std::to_string(before) + " to " + std::to_string(highest));
    if (highest < before)
      return world_.fail("the fence of camera " + camera + " went back from " + std::to_string(before) +
                         " to " + std::to_string(highest));
    if (owner != was) ++moves_;
    before = highest;
    was = owner;
  }
}

void Audit::taken(const Host& dock, const std::string& camera, Fence fence, const std::string& owner,
                  std::uint32_t generation, std::uint64_t sequence) {
  ++patches_;
  world_.note(Kind::taken, dock.id, -1, fence);
  Taken& last = taken_[{dock.id, camera}];
  if (last.life != dock.life) last = {};
  if (fence < last.fence)
    world_.fail("node " + dock.name + " took camera " + camera + " with fence " + std::to_string(fence) +
                " after " + std::to_string(last.fence));
  const bool is_same = fence == last.fence && owner == last.owner;
  if (is_same && generation == last.generation && sequence <= last.sequence)
    world_.fail("node " + dock.name + " took patch " + std::to_string(sequence) + " of camera " + camera +
                " after " + std::to_string(last.sequence));
  last = {dock.life, fence, owner, generation, sequence};
  sends(dock, camera, fence, owner, " sent camera ");
  auto& recent = last_[camera];
  if (fence >= recent.second) recent = {world_.now(), fence};
}

void Audit::guest(const Host& dock, const std::string& camera, Fence fence, const std::string& owner) {
  Taken& last = taken_[{dock.id, camera}];
  if (last.life != dock.life) last = {};
  last.life = dock.life;
  if (fence < last.fence)
    world_.fail("node " + dock.name + " lets node " + owner + " send camera " + camera + " with fence " +
                std::to_string(fence) + " after " + std::to_string(last.fence));
  last.fence = std::max(fence, last.fence);
  sends(dock, camera, fence, owner, " have camera ");
}

void Audit::sends(const Host& dock, const std::string& camera, Fence fence, const std::string& owner,
                  const char* what) {
  const auto check = [&](auto& senders, const auto& key) {
    const auto [sender, is_new] = senders.emplace(key, owner);
    if (!is_new && sender->second != owner)
      world_.fail("nodes " + sender->second + " and " + owner + what + camera + " with fence " +
                  std::to_string(fence));
  };
  if (fence > given_twice_) check(senders_, std::pair(camera, fence));
  check(senders_to_, std::tuple(dock.id, dock.life, camera, fence));
}

void Audit::believes(const Host& node, const std::string& incarnation, bool is_member) {
  if (!is_member || world_.now() - restored_at_ < std::chrono::seconds(30)) return;
  const auto id = static_cast<std::size_t>(node.id);
  // Clocks differ a little in how fast they go.
  const bool is_there =
      id < records_.size() && (records_[id] == incarnation || world_.now() - gone_[id] < kApart);
  if (!is_there) world_.fail("node " + node.name + " believes that its lease holds, and it has run out");
}

void Audit::bounded(const char* what, std::size_t waiting, std::size_t most) {
  if (waiting > most)
    world_.fail(std::string(what) + ": " + std::to_string(waiting) + " wait, and no more than " +
                std::to_string(most) + " may");
}

void Audit::calm(Micros recent) {
  world_.note(Kind::calm);
  for (const std::string& camera : cameras_) {
    const auto last = last_.find(camera);
    const std::string owner = cluster::owner_of(plan_, camera);
    if (owner.empty()) {
      world_.fail("camera " + camera + " has no owner, although all nodes are there");
    } else if (last == last_.end() || world_.now() - last->second.first > recent) {
      world_.fail("nothing is taken of camera " + camera + " of node " + owner +
                  ", although all nodes are there");
    } else if (const Fence fence = plan_.at(owner).cameras.at(camera).fence; last->second.second != fence) {
      world_.fail("camera " + camera + " is taken with fence " + std::to_string(last->second.second) +
                  ", and the plan says " + std::to_string(fence));
    }
  }
}

}  // namespace vigil::fleet::sim
