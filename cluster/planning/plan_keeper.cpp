#include "cluster/planning/plan_keeper.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <sstream>
#include <utility>
#include <variant>

namespace vigil::cluster {
namespace {

/// Plans of one transaction: beside them it has conditions, and a plan of a thousand cameras has 200 kB.
constexpr std::size_t kPlansAtOnce = 16;
constexpr std::size_t kBytesAtOnce = RegistryTransaction::kMostBytes / 2;
constexpr std::chrono::milliseconds kAgain{1000};
/// For each camera, how much time is between two plannings at least: planning takes about half of that, so
/// that this node has time for what else it does.
constexpr std::chrono::microseconds kPause{20};
/// Of a fleet that starts, the first nodes would be given everything, to hand it over to those that come a
/// moment later. So nobody is given anything while nodes still come: for each camera so long after the last
/// one, up to a bound, and no longer than that in all.
constexpr std::chrono::milliseconds kComing{1};
constexpr std::chrono::milliseconds kLongestComing{3000};
constexpr std::chrono::milliseconds kLongestStart{30'000};
/// At least so long where there was a plan before: of a registry that was set back meanwhile, another node
/// may know higher fences than the plan, and has to have said so before any are given.
constexpr std::chrono::milliseconds kReturning{1000};
/// Of nodes whose leases ended with this one's, as when the registry was away for longer: so long after it,
/// and the time after which a node keeps its lease alive again, they are waited for.
constexpr std::chrono::milliseconds kComingBack{2000};
constexpr int kBeats = 3;
/// Of all cameras, how many may be on their way at once; a fleet that is large moves no slower for it.
constexpr std::size_t kShareOnTheirWay = 200;

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
  std::erase_if(origins_, [this](const auto& origin) { return !wants(origin.first); });
  is_due_ = true;
  step();
}

void PlanKeeper::follow() {
  follows_ = true;
  step();
}

void PlanKeeper::step() {
  look_whether_it_came_back();
  if (!member_.is_planner()) {
    settled_mirror_.reset();
    filled_mirror_.reset();
    refused_mirror_.reset();
    planned_for_.reset();
  }
  if (!member_.is_planner() && !follows_) {
    fleet_mirror_.reset();
    for (const auto& [node, plan] : std::exchange(fleet_, {})) remember_origins(plan);
    return;
  }
  look_whether_it_was_elected();
  const auto keep = [this](std::optional<RegistryMirror>& mirror, const std::string& prefix,
                           std::function<void()> then) {
    if (!mirror)
      mirror.emplace(registry_, loop_, RegistryMirror::Options{.prefix = prefix, .changed = std::move(then)});
  };
  keep(fleet_mirror_, member_.keys().plans(), [this] {
    read_fleet();
    this->changed();
  });
  if (member_.is_planner()) {
    keep(settled_mirror_, member_.keys().settled(), [this] {
      // All nodes settle all the time, and mostly nobody waits for it.
      is_due_ = is_due_ || handovers_ > 0;
      plan();
    });
    keep(filled_mirror_, member_.keys().filled(), [this] {
      is_due_ = is_due_ || fillings_ > 0;
      plan();
    });
    keep(refused_mirror_, member_.keys().refused(), [this] { this->changed(); });
  }
  // When the configuration changes, all nodes of a fleet say so, and nothing moves for it.
  if (member_.is_planner() && (planned_for_ != member_.changes() || is_set_back())) {
    planned_for_ = member_.changes();
    is_due_ = true;
  }
  plan();
}

/// Whether a node has seen a higher fence than the plans have.
bool PlanKeeper::is_set_back() const {
  if (!fleet_mirror_ || !fleet_mirror_->is_current()) return false;
  Fence planned = 0;
  for (const auto& [node, plan] : fleet_) planned = std::max(planned, plan.fence);
  return std::ranges::any_of(member_.nodes(),
                             [planned](const auto& node) { return node.second.highest_fence > planned; });
}

void PlanKeeper::changed() {
  is_due_ = true;
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
    if (plan.fence < newest_) return member_.contradict();
    newest_ = plan.fence;
    member_.saw(plan.fence);
  } else if (!own_mirror_.is_current()) {
    return;
  }
  if (plan == own_) return;
  own_ = std::move(plan);
  if (options_.changed) options_.changed();
}

void PlanKeeper::remember_origins(const NodePlan& gone) {
  for (const auto& [camera, entry] : gone.cameras)
    if (wants(camera)) origins_[camera] = entry.origin_ms;
}

/// Of cameras that no plan has any more, as when somebody has deleted it.
const std::map<std::string, std::int64_t>& PlanKeeper::lost_origins() {
  if (!origins_.empty())
    for (const auto& [node, plan] : fleet_)
      for (const auto& [camera, entry] : plan.cameras) origins_.erase(camera);
  return origins_;
}

bool PlanKeeper::wants(const std::string& camera) const {
  return wanted_ && std::ranges::binary_search(*wanted_, camera, {}, &WantedCamera::name);
}

void PlanKeeper::read_fleet() {
  if (!fleet_mirror_) return;
  for (const std::string& key : fleet_mirror_->take_changed()) {
    const std::string node = key.substr(member_.keys().plans().size());
    // What cannot be read is written anew, since it differs from whatever is planned.
    if (const auto before = fleet_.extract(node)) remember_origins(before.mapped());
    const RegistryEntry* const entry = fleet_mirror_->find(key);
    if (entry == nullptr) continue;
    try {
      fleet_.emplace(node, parse_plan(entry->value));
    } catch (const std::exception& error) {
      if (options_.log) options_.log(key + ": " + error.what());
    }
  }
}

std::map<std::string, std::set<Fence>> PlanKeeper::told(const RegistryMirror& mirror,
                                                        const std::string& prefix) const {
  std::map<std::string, std::set<Fence>> told;
  for (const auto& [key, entry] : mirror.entries()) {
    const std::string name = key.substr(prefix.size());
    const auto node = member_.nodes().find(name);
    std::istringstream words(entry.value);
    std::string incarnation;
    // One that was started again has opened nothing yet.
    if (node == member_.nodes().end() || !(words >> incarnation) || incarnation != node->second.incarnation)
      continue;
    std::set<Fence>& fences = told[name];
    for (Fence fence = 0; words >> fence;) fences.insert(fence);
  }
  return told;
}

void PlanKeeper::plan() {
  const auto is_known = [](const std::optional<RegistryMirror>& mirror) {
    return mirror && mirror->is_current();
  };
  if (!is_due_ || !wanted_ || !member_.is_planner() || !is_known(fleet_mirror_) ||
      !is_known(settled_mirror_) || !is_known(filled_mirror_) || !is_known(refused_mirror_) || writing_)
    return;
  // What was written is mostly seen in a moment; in a registry that was set back, never.
  if (fleet_mirror_->revision() < written_ && clock_.now() < written_at_ + kAgain) return plan_after(kAgain);
  const auto pause =
      std::chrono::duration_cast<base::Duration>(kPause * static_cast<std::int64_t>(wanted_->size()));
  if (planned_at_ && clock_.now() < *planned_at_ + pause) return plan_after(pause);
  if (const base::Duration wait = starting(); wait > base::Duration(0)) return plan_after(wait);
  planned_at_ = clock_.now();
  PlannerOptions planning = options_.planning;
  planning.most_moves = std::max(planning.most_moves, wanted_->size() / kShareOnTheirWay);
  std::map<std::string, Fence> settled;
  for (const auto& [node, fences] : told(*settled_mirror_, member_.keys().settled()))
    if (!fences.empty()) settled[node] = *fences.rbegin();
  Planning planned = options_.plan({member_.nodes(), std::move(settled), fleet_, *wanted_, clock_.wall(),
                                    told(*filled_mirror_, member_.keys().filled()),
                                    told(*refused_mirror_, member_.keys().refused()), lost_origins(), sent_},
                                   planning);
  unplaced_ = std::move(planned.unplaced);
  handovers_ = planned.handovers;
  fillings_ = planned.fillings;
  degraded_ = planned.degraded;
  refused_ = planned.refused;
  // It may have left some moves for the next time.
  is_due_ = !planned.changes.empty();
  if (planned.changes.empty()) return;
  unwritten_.assign(std::make_move_iterator(planned.changes.begin()),
                    std::make_move_iterator(planned.changes.end()));
  writing_ = true;
  write();
}

void PlanKeeper::plan_after(base::Duration time) {
  if (std::exchange(will_plan_, true)) return;
  loop_.after(time, [self = self_] {
    if (*self == nullptr) return;
    (*self)->will_plan_ = false;
    (*self)->plan();
  });
}

/// What a planner before it has sent is written before this one was elected, or never. So all that it plans
/// is of plans that were read since then; what was followed until then may be older.
void PlanKeeper::look_whether_it_was_elected() {
  const auto held = member_.planner_condition();
  if (!held || held->modified == elected_) return;
  elected_ = held->modified;
  if (fleet_mirror_) fleet_mirror_->restart();
}

void PlanKeeper::look_whether_it_came_back() {
  const Revision now = member_.created(member_.record().name);
  if (now == 0 || now == entered_) return;
  // The first one says nothing: with a fleet that starts, `starting` deals.
  if (std::exchange(entered_, now) != 0) entered_at_ = clock_.now();
}

/// How long to wait for owners that are not there, if this node itself was gone for the registry just now:
/// then they mostly come back, too.
base::Duration PlanKeeper::returning(std::size_t owned) const {
  std::size_t planned = 0;
  for (const auto& [node, plan] : fleet_) planned += plan.cameras.size();
  if (owned >= planned || entered_at_ == base::Clock::TimePoint()) return base::Duration(0);
  const auto until = entered_at_ + kComingBack + member_.ttl() / kBeats;
  return std::max(base::Duration(0), std::chrono::ceil<base::Duration>(until - clock_.now()));
}

/// How long to wait for nodes that may still come, of a fleet most of whose cameras have no living owner.
base::Duration PlanKeeper::starting() {
  const auto now = clock_.now();
  if (member_.nodes().size() > nodes_) came_at_ = now;
  nodes_ = member_.nodes().size();
  std::size_t owned = 0;
  for (const auto& [node, plan] : fleet_)
    if (const auto record = member_.nodes().find(node);
        record != member_.nodes().end() && plan.is_for(record->second.incarnation))
      owned += plan.cameras.size();
  if (2 * owned >= wanted_->size()) {
    starts_at_.reset();
    return returning(owned);
  }
  if (!starts_at_) starts_at_ = now;
  const base::Duration least = fleet_.empty() ? base::Duration(0) : base::Duration(kReturning);
  const base::Duration coming = std::max(
      least, std::min<base::Duration>(kLongestComing, kComing * static_cast<std::int64_t>(wanted_->size())));
  const auto until = std::min(came_at_ + coming, *starts_at_ + kLongestStart);
  return std::max(returning(owned), std::chrono::ceil<base::Duration>(until - now));
}

/// The next transaction of what was planned, in its order: what nodes are given first.
void PlanKeeper::write() {
  RegistryTransaction transaction;
  // Without it, another one plans now, and nothing of this is written.
  transaction.conditions.push_back(member_.planner_condition().value_or(
      RegistryCondition{member_.keys().planner(), std::numeric_limits<Revision>::max()}));
  std::size_t bytes = 0;
  for (; transaction.changes.size() < kPlansAtOnce && !unwritten_.empty(); unwritten_.pop_front()) {
    const PlanChange& change = unwritten_.front();
    const std::string key = member_.keys().plan(change.node);
    const std::string value = change.plan ? print(*change.plan) : "";
    // A plan that is too large for any transaction goes by itself, and is refused in words.
    if (bytes > 0 && bytes + value.size() > kBytesAtOnce) break;
    bytes += value.size();
    // Whatever is answered, and if nothing is: it may be written later.
    if (change.plan) sent_ = std::max(sent_, change.plan->fence);
    const RegistryEntry* const there = fleet_mirror_ ? fleet_mirror_->find(key) : nullptr;
    transaction.conditions.push_back({key, there == nullptr ? 0 : there->modified});
    if (change.plan) {
      transaction.changes.emplace_back(RegistryPut{key, value});
    } else {
      transaction.changes.emplace_back(RegistryDelete{key});
    }
  }
  registry_.commit(std::move(transaction),
                   [&loop = loop_, self = self_](RegistryResult<RegistryCommit> result) {
                     loop.post([self, result = std::move(result)] {
                       if (*self != nullptr) (*self)->written(result);
                     });
                   });
}

void PlanKeeper::written(const RegistryResult<RegistryCommit>& result) {
  const auto* const commit = std::get_if<RegistryCommit>(&result);
  if (commit != nullptr && commit->made) {
    written_ = commit->header.revision;
    written_at_ = clock_.now();
    if (!unwritten_.empty()) return write();
    writing_ = false;
    return step();
  }
  // What is known may be old, or the registry cannot be reached.
  const auto* const failure = std::get_if<RegistryFailure>(&result);
  if (failure != nullptr && failure->kind != RegistryFailure::Kind::unreachable && options_.log)
    options_.log("the plan is not written: " + failure->text);
  if (commit != nullptr && fleet_mirror_) fleet_mirror_->restart();
  unwritten_.clear();
  loop_.after(kAgain, [self = self_] {
    if (*self == nullptr) return;
    (*self)->writing_ = false;
    (*self)->step();
  });
}

}  // namespace vigil::cluster
