#include "bench/city_node.h"

#include <algorithm>
#include <utility>

namespace vigil::bench {
namespace {

using cluster::NodeRole;

constexpr std::chrono::milliseconds kTick{500};
/// Pauses between greetings are shorter.
constexpr std::chrono::seconds kGreetingsOver{15};
/// An RTSP camera that is there answers so soon, and then delivers its first key frame.
constexpr std::int64_t kLeastOpening = 300;
constexpr std::int64_t kOpeningSpread = 1200;
/// One without power is not heard of.
constexpr std::chrono::seconds kNoAnswer{3};
/// After which a stream that says nothing is lost.
constexpr std::chrono::seconds kSilence{5};

}  // namespace

CityNode::CityNode(CitySurroundings& surroundings, cluster::NodeRecord record, base::Duration lease,
                   std::uint64_t seed)
    : around_(surroundings),
      seed_(seed),
      thread_(around_.time),
      registry_(around_.etcd, around_.time, thread_, around_.costs),
      desk_(around_.time),
      dialer_(actors::Dialer::Limits()),
      member_(registry_, thread_, around_.time,
              cluster::FleetMember::Options{.fleet = "city",
                                            .record = std::move(record),
                                            .ttl = lease,
                                            .changed = [this] { members_changed(); }}),
      keeper_(registry_, thread_, around_.time, member_,
              cluster::PlanKeeper::Options{
                  .planning = {},
                  .changed = [this] { plan_changed(); },
                  .plan = [this](const auto& input, const auto& options) { return plan(input, options); }}) {
  is_made_ = true;
  if (this->record().roles.contains(NodeRole::stream))
    around_.cameras.set_computing(this->record().name, true);
  member_.stand_for_planner(true);
  tick();
}

CityNode::~CityNode() {
  if (record().roles.contains(NodeRole::stream)) around_.cameras.set_computing(record().name, false);
  for (const auto& [name, camera] : own_) around_.cameras.release(name, record().name);
}

cluster::Planning CityNode::plan(const cluster::PlanningInput& input,
                                 const cluster::PlannerOptions& options) {
  cluster::Planning planning = cluster::plan_fleet(input, options);
  std::size_t written = 0;
  for (const cluster::PlanChange& change : planning.changes)
    if (change.plan) written += change.plan->cameras.size();
  const Nanoseconds cost = static_cast<std::int64_t>(input.cameras.size()) * around_.costs.plan_camera +
                           static_cast<std::int64_t>(written) * around_.costs.print_camera;
  thread_.spend(cost);
  around_.plannings.add(1);
  around_.planner.add(std::chrono::duration<double>(cost).count());
  return planning;
}

void CityNode::members_changed() {
  if (!is_made_) return;
  desk_.see(member_.nodes(), record());
  greets_until_ = around_.time.now() + kGreetingsOver;
  if (member_.is_planner() && !std::exchange(has_wanted_, true)) {
    keeper_.want(around_.wanted());
  } else {
    keeper_.step();
  }
  greet_those_due();
}

void CityNode::want_anew() {
  if (has_wanted_) keeper_.want(around_.wanted());
}

void CityNode::greet_those_due() {
  for (const cluster::NodeRecord& node : desk_.take_greetings()) greet(node);
}

void CityNode::greet(const cluster::NodeRecord& node) {
  around_.greetings.add(1);
  // There and back twice for TCP and TLS, and once for the greeting.
  around_.time.at(6 * around_.costs.way + 2 * around_.costs.handshake,
                  [this, alive = std::weak_ptr(alive_), name = node.name, incarnation = node.incarnation] {
                    if (alive.expired()) return;
                    CityNode* const there = around_.find(name);
                    if (there == nullptr || there->record().incarnation != incarnation) {
                      desk_.failed(name, incarnation, "no way");
                      greets_until_ = around_.time.now() + kGreetingsOver;
                      return;
                    }
                    there->hear(record());
                    desk_.greeted(name, incarnation);
                    judge_all();
                  });
}

void CityNode::hear(const cluster::NodeRecord& node) {
  desk_.came(node);
  judge_all();
}

void CityNode::judge(const std::string& name, Camera& camera) {
  const bool to_stream = camera.delivers && has_way(camera.stream);
  const bool to_former = camera.delivers && !camera.former.empty() && has_way(camera.former);
  if (to_stream && !camera.former.empty() && !std::exchange(camera.fills, true)) begin_to_fill(name, camera);
  const bool is_same = to_stream == std::exchange(camera.reaches_stream, to_stream);
  if (to_former == std::exchange(camera.reaches_former, to_former) && is_same) return;
  around_.cameras.deliver(name, record().name, to_stream, to_former);
}

void CityNode::judge_all() {
  for (auto& [name, camera] : own_) judge(name, camera);
}

void CityNode::begin_to_fill(const std::string& name, Camera& camera) {
  around_.time.at(around_.window, [this, alive = std::weak_ptr(alive_), name, stream = camera.stream_fence] {
    if (alive.expired()) return;
    const auto own = own_.find(name);
    if (own == own_.end() || own->second.stream_fence != stream) return;
    own->second.full = true;
    fills_ = true;
  });
}

void CityNode::fill() {
  member_.fill(fleet::filled_of(keeper_.own(), [this](const std::string& name, const auto& /*entry*/) {
    const auto own = own_.find(name);
    if (own == own_.end()) return false;
    const bool is_down = own->second.tried && !own->second.delivers;
    return is_down || own->second.full;
  }));
}

void CityNode::plan_changed() {
  if (!is_made_) return;
  const auto& plan = keeper_.own().cameras;
  for (auto camera = own_.begin(); camera != own_.end();) {
    if (plan.contains(camera->first)) {
      ++camera;
      continue;
    }
    dialer_.remove({camera->first});
    around_.cameras.release(camera->first, record().name);
    camera = own_.erase(camera);
  }
  for (const auto& [name, entry] : plan) {
    auto camera = own_.find(name);
    if (camera == own_.end()) {
      const std::uint64_t seed = seed_ * 1'000'003 + CityCameras::index_of(name);
      camera = own_.try_emplace(name, Camera{.backoff = actors::Backoff({}, seed)}).first;
      dialer_.add({name}, actors::Dialer::Way::asked, 1, around_.time.now());
    }
    camera->second.fence = entry.fence;
    camera->second.stream = entry.stream;
    camera->second.former = entry.former_stream;
    if (std::exchange(camera->second.stream_fence, entry.stream_fence) != entry.stream_fence)
      camera->second.fills = camera->second.full = false;
    around_.cameras.hold(name, record().name, entry);
    judge(name, camera->second);
  }
  desk_.see(member_.nodes(), record());
  desk_.need(fleet::nodes_for(keeper_.own()));
  greets_until_ = around_.time.now() + kGreetingsOver;
  greet_those_due();
  unsettled_ = true;
  fill();
  turn();
  leave_if_drained();
}

void CityNode::power_changed(std::size_t site, bool on) {
  if (on) return;
  thread_.after(kSilence, [this, site] {
    std::size_t lost = 0;
    for (auto& [name, camera] : own_) {
      if (!camera.delivers || CityCameras::index_of(name) % around_.cameras.sites() != site) continue;
      if (around_.cameras.has_power(name)) continue;
      ++lost;
      fails({name}, camera);
    }
    around_.tell(lost);
    turn();
  });
}

void CityNode::tick() {
  if (around_.time.now() < greets_until_) greet_those_due();
  if (unsettled_) settle();
  if (std::exchange(fills_, false)) fill();
  leave_if_drained();
  thread_.after(kTick, [this] { tick(); });
}

void CityNode::settle() {
  unsettled_ = false;
  member_.settle(fleet::settled_of(keeper_.own(), [this](const std::string& name) {
    const auto own = own_.find(name);
    const bool tried = own != own_.end() && own->second.tried;
    unsettled_ = unsettled_ || !tried;
    return tried;
  }));
}

void CityNode::turn() {
  const base::Clock::TimePoint now = around_.time.now();
  for (;;) {
    const actors::Dialer::Turn turn = dialer_.next(now);
    if (turn.empty()) break;
    apply(turn);
  }
  wake();
}

void CityNode::apply(const actors::Dialer::Turn& turn) {
  for (const actors::SourceId& id : turn.open) open(id);
  for (const actors::Dialer::Question& question : turn.ask) {
    const bool is_there = around_.cameras.has_power(question.id.camera);
    const Nanoseconds time = is_there ? 2 * around_.costs.way : Nanoseconds(kNoAnswer);
    around_.time.at(time, [this, alive = std::weak_ptr(alive_), ticket = question.ticket, is_there] {
      if (alive.expired()) return;
      const auto asked = dialer_.answered(ticket, is_there);
      if (asked && !is_there)
        if (const auto own = own_.find(asked->camera); own != own_.end()) fails(*asked, own->second);
      turn_soon();
    });
  }
}

void CityNode::open(const actors::SourceId& id) {
  const std::chrono::milliseconds time(kLeastOpening +
                                       static_cast<std::int64_t>(around_.random() % kOpeningSpread));
  around_.time.at(time, [this, alive = std::weak_ptr(alive_), id] {
    if (alive.expired()) return;
    const auto own = own_.find(id.camera);
    if (own == own_.end()) return;
    if (around_.cameras.has_power(id.camera)) {
      delivers(id.camera, own->second);
    } else {
      fails(id, own->second);
    }
    turn_soon();
  });
}

void CityNode::delivers(const std::string& name, Camera& camera) {
  dialer_.delivers({name});
  camera.backoff.reset();
  camera.delivers = camera.tried = true;
  judge(name, camera);
  unsettled_ = true;
}

void CityNode::fails(const actors::SourceId& id, Camera& camera) {
  camera.delivers = false;
  camera.tried = true;
  // Nothing of it comes, so that nothing fills.
  unsettled_ = fills_ = true;
  judge(id.camera, camera);
  dialer_.rest(id, around_.time.now() + camera.backoff.next());
}

/// Many answers come at once; one turn is enough.
void CityNode::turn_soon() {
  if (std::exchange(turns_, true)) return;
  around_.time.at(std::chrono::milliseconds(1), [this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    turns_ = false;
    turn();
  });
}

void CityNode::wake() {
  const auto next = dialer_.wake();
  if (!next || (wakes_ && *wakes_ <= *next)) return;
  wakes_ = next;
  around_.time.at(*next - around_.time.now(), [this, alive = std::weak_ptr(alive_), when = *next] {
    if (alive.expired() || wakes_ != when) return;
    wakes_.reset();
    turn();
  });
}

void CityNode::drain(std::function<void()> left) {
  left_ = std::move(left);
  member_.alter([](cluster::NodeRecord& own) { own.state = cluster::NodeState::draining; });
  if (record().roles.contains(NodeRole::stream)) keeper_.follow();
  leave_if_drained();
}

void CityNode::leave_if_drained() {
  if (!left_) return;
  const cluster::FleetPlan* const fleet = keeper_.knows_fleet() ? &keeper_.fleet() : nullptr;
  if (!fleet::is_drained(record(), keeper_.own(), fleet, member_.nodes(),
                         record().roles.contains(NodeRole::stream)))
    return;
  member_.leave(std::exchange(left_, nullptr));
}

}  // namespace vigil::bench
