#include "cluster/membership/plan_keeper.h"

#include <algorithm>
#include <utility>
#include <variant>

namespace vigil::cluster {
namespace {

/// Plans of one transaction: beside them it has conditions, and a plan of a thousand cameras has 200 kB.
constexpr std::size_t kPlansAtOnce = 16;
constexpr std::size_t kBytesAtOnce = RegistryTransaction::kMostBytes / 2;
constexpr std::chrono::milliseconds kAgain{1000};

}  // namespace

PlanKeeper::PlanKeeper(Registry& registry, base::Loop& loop, const base::Clock& clock, FleetMember& member,
                       Options options)
    : registry_(registry),
      loop_(loop),
      clock_(clock),
      member_(member),
      options_(std::move(options)),
      self_(std::make_shared<PlanKeeper*>(this)),
      own_mirror_(registry, loop,
                  {.prefix = member.keys().plan(member.record().name), .changed = [this] { read_own(); }}) {}

PlanKeeper::~PlanKeeper() {
  *self_ = nullptr;
}

void PlanKeeper::want(std::vector<WantedCamera> cameras) {
  std::ranges::sort(cameras, {}, &WantedCamera::name);
  wanted_ = std::move(cameras);
  settled_for_.clear();
  step();
}

void PlanKeeper::follow() {
  follows_ = true;
  step();
}

void PlanKeeper::step() {
  if (!member_.is_planner() && !follows_) {
    fleet_mirror_.reset();
    fleet_.clear();
    return;
  }
  if (!fleet_mirror_) {
    fleet_mirror_.emplace(registry_, loop_,
                          RegistryMirror::Options{.prefix = member_.keys().plans(), .changed = [this] {
                                                    read_fleet();
                                                    plan();
                                                  }});
    return;
  }
  plan();
}

void PlanKeeper::read_own() {
  const RegistryEntry* const entry = own_mirror_.find(member_.keys().plan(member_.record().name));
  NodePlan plan;
  if (entry != nullptr) {
    try {
      plan = parse_plan(entry->value);
    } catch (const std::exception& error) {
      if (options_.log) options_.log(entry->key + ": " + error.what());
      return;
    }
    // The run before this one had it: there will be another.
    if (!plan.is_for(member_.record().incarnation)) return;
    // Of a registry that was set back: what this node has by a later plan holds until there is a new one.
    // Fences that it has seen of others say nothing of that: its own plan may have been the same for long.
    if (plan.fence < newest_) return;
    newest_ = plan.fence;
    member_.saw(plan.fence);
  } else if (!own_mirror_.is_current()) {
    return;
  }
  if (plan == own_) return;
  own_ = std::move(plan);
  if (options_.changed) options_.changed();
}

void PlanKeeper::read_fleet() {
  settled_for_.clear();
  fleet_.clear();
  for (const auto& [key, entry] : fleet_mirror_->entries()) {
    try {
      fleet_.emplace(key.substr(member_.keys().plans().size()), parse_plan(entry.value));
    } catch (const std::exception& error) {
      // It is written anew, since it differs from whatever is planned.
      if (options_.log) options_.log(key + ": " + error.what());
    }
  }
}

void PlanKeeper::plan() {
  if (!wanted_ || !member_.is_planner() || !fleet_mirror_->is_current() || writing_ ||
      fleet_mirror_->revision() < written_)
    return;
  std::map<std::string, NodeRecord> nodes = member_.nodes();
  // Where placement does not look: all of a large fleet's nodes tell it when the configuration changes.
  for (auto& [name, node] : nodes) {
    node.config.clear();
    node.config_seen.clear();
    node.config_fault.clear();
    node.config_version = 0;
  }
  if (nodes == settled_for_) return;
  const Planning planning = plan_fleet({nodes, fleet_, *wanted_, clock_.wall()}, options_.planning);
  unplaced_ = planning.unplaced;
  handovers_ = planning.handovers;
  if (!planning.changes.empty()) return write(planning.changes);
  settled_for_ = std::move(nodes);
}

void PlanKeeper::write(std::vector<PlanChange> changes) {
  const auto planner = member_.planner_condition();
  if (!planner) return;
  RegistryTransaction transaction{{*planner}, {}};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < std::min(changes.size(), kPlansAtOnce) && bytes < kBytesAtOnce; ++i) {
    const std::string key = member_.keys().plan(changes[i].node);
    const RegistryEntry* const there = fleet_mirror_->find(key);
    transaction.conditions.push_back({key, there == nullptr ? 0 : there->modified});
    if (changes[i].plan) {
      RegistryPut put{key, print(*changes[i].plan)};
      bytes += put.value.size();
      transaction.changes.emplace_back(std::move(put));
    } else {
      transaction.changes.emplace_back(RegistryDelete{key});
    }
  }
  writing_ = true;
  registry_.commit(std::move(transaction),
                   [&loop = loop_, self = self_](RegistryResult<RegistryCommit> result) {
                     loop.post([&loop, self, result = std::move(result)] {
                       if (*self == nullptr) return;
                       PlanKeeper& keeper = **self;
                       const auto* const commit = std::get_if<RegistryCommit>(&result);
                       if (commit != nullptr && commit->made) {
                         keeper.writing_ = false;
                         keeper.written_ = commit->header.revision;
                         return keeper.step();
                       }
                       // What is known may be old, or the registry cannot be reached.
                       if (commit != nullptr && keeper.fleet_mirror_) keeper.fleet_mirror_->restart();
                       loop.after(kAgain, [self] {
                         if (*self == nullptr) return;
                         (*self)->writing_ = false;
                         (*self)->step();
                       });
                     });
                   });
}

}  // namespace vigil::cluster
