#include "tests/fleet/sim/fleet.h"

#include <algorithm>
#include <utility>

#include "tests/actors/fakes.h"

namespace vigil::fleet::sim {

using namespace std::chrono_literals;
using cluster::NodeRole;

namespace {

/// Cameras of few frames, whose windows are long.
std::vector<config::CameraSettings> settings(int cameras) {
  std::vector<config::CameraSettings> all;
  for (int i = 1; i <= cameras; ++i) {
    const std::string name = "gate" + std::to_string(i);
    auto settings = actors::testing::camera(name, config::Pace::realtime, "/clips/" + name + ".mp4");
    settings->stream.fps = 0.2;
    settings->stream.window = {40s, 20s};
    all.push_back(*settings);
  }
  return all;
}

}  // namespace

Network::Options Fleet::network_of(const Mistakes& mistakes) {
  Network::Options options;
  options.reorders = mistakes.network_reorders;
  return options;
}

std::vector<std::string> Fleet::names(int cameras) {
  std::vector<std::string> names;
  for (int i = 1; i <= cameras; ++i) names.push_back("gate" + std::to_string(i));
  return names;
}

Fleet::Fleet(const Options& options)
    : options_(options),
      world_(options.seed),
      network_(world_, network_of(options.mistakes)),
      registry_(network_),
      audit_(registry_, "city", names(options.cameras)),
      events_(registry_, "city"),
      commons_{world_, network_, registry_, audit_, options_.mistakes, "city", names(options.cameras)},
      clock_(world_),
      bulk_(clock_,
            [this](const std::string& from, const std::string& to, const cluster::Frames& frames,
                   const cluster::MemoryBulkNetwork::Arrive& arrive) { carry(from, to, frames, arrive); }),
      actor_commons_{world_,           network_, registry_, bulk_,
                     audit_,           events_,  "city",    settings(options.cameras),
                     options_.mistakes} {
  for (int i = 1; i <= options.camera_nodes; ++i) add("cam" + std::to_string(i), {NodeRole::camera});
  for (int i = 1; i <= options.computing_nodes; ++i)
    add("gpu" + std::to_string(i), {NodeRole::vision, NodeRole::stream, NodeRole::generate});
  if (options.of_actors)
    for (int i = 1; i <= options.gateways; ++i) add("gw" + std::to_string(i), {NodeRole::gateway});
  std::vector<Host*> hosts;
  std::set<const Host*> gateways;
  for (auto& [id, place] : places_) {
    hosts.push_back(&place.host);
    if (place.roles.contains(NodeRole::gateway)) gateways.insert(&place.host);
    world_.after(world_.random.between(0s, 3s), nullptr, [this, &host = place.host] { start(host); });
  }
  chaos_ = std::make_unique<Chaos>(
      registry_, hosts, std::move(gateways), options.chaos,
      Chaos::Hands{.start = [this](Host& host) { start(host); },
                   .drain = [this](Host& host, std::function<void()> done) { drain(host, std::move(done)); },
                   .is_spare = [this](const Host& host) { return is_spare(host); },
                   .serves = [this](const Host& host) { return events_.is_true(host); },
                   .check = [this] { check(); }});
  world_.after_event.emplace_back([this] { after_event(); });
  if (!options.is_quiet) world_.after(20s, nullptr, [this] { chaos_->begin(); });
}

Fleet::~Fleet() {
  // Nothing that ends now counts.
  for (auto& [id, place] : places_) {
    place.host.dying = true;
    place.node.reset();
  }
}

void Fleet::add(const std::string& name, std::set<NodeRole> roles) {
  Host& host = world_.add_host(name);
  host.clock.drift = static_cast<std::int64_t>(world_.random.below(201)) - 100;
  const auto place = places_.emplace(host.id, Place{host, std::move(roles), nullptr, nullptr, 0}).first;
  place->second.disk = std::make_unique<Disk>(
      world_, host, Disk::Options{.unsynced = options_.mistakes.disk_answers_too_early ? std::size_t{3} : 0});
  host.on_crash = [place] {
    place->second.node.reset();
    place->second.disk->crash();
  };
}

void Fleet::start(Host& host) {
  if (host.up) return;
  Place& place = places_.at(host.id);
  host.up = true;
  world_.note(Kind::start, host.id);
  const std::string incarnation = host.name + '.' + std::to_string(++place.runs);
  if (options_.of_actors) {
    place.node = std::make_unique<ActorNode>(actor_commons_, host, *place.disk, place.roles, incarnation);
  } else {
    place.node = std::make_unique<PlainNode>(commons_, host, place.roles, incarnation);
  }
}

Host& Fleet::host_of(const std::string& name) {
  return *std::ranges::find(world_.hosts(), name, [](const auto& host) { return host->name; })->get();
}

void Fleet::carry(const std::string& from, const std::string& to, const cluster::Frames& frames,
                  const cluster::MemoryBulkNetwork::Arrive& arrive) {
  network_.stream(host_of(from), host_of(to), [frames, arrive] { arrive(frames); });
}

void Fleet::after_event() {
  if (options_.of_actors) {
    for (bool more = true; more;) {
      more = false;
      for (const auto& [id, place] : places_)
        if (place.node && place.node->run()) more = true;
      const auto due = bulk_.step();
      if (due == base::Clock::TimePoint::max()) continue;
      const Micros at = std::max(std::chrono::ceil<Micros>(due - clock_.now()), Micros(1ms)) + world_.now();
      // A step of its own, unless there is one before it.
      if (bulk_due_ > world_.now() && bulk_due_ <= at) continue;
      bulk_due_ = at;
      world_.at(at, nullptr, [] {});
    }
  }
  audit_.look();
  for (const auto& [id, place] : places_)
    if (place.node && place.host.up && !place.host.dying) place.node->tell();
}

void Fleet::check() {
  audit_.calm(options_.of_actors ? Micros(30s) : commons_.patches * 3);
  // Leases that it forgot are as good, while it is away.
  if (chaos_ && chaos_->registry_is_away()) return;
  for (const auto& [id, place] : places_)
    if (options_.of_actors && place.roles.contains(NodeRole::gateway) && !events_.is_true(place.host))
      world_.fail("gateway " + place.host.name + " does not serve, although nothing is wrong");
}

void Fleet::drain(Host& host, std::function<void()> done) {
  places_.at(host.id).node->drain([this, &host, life = host.life, done = std::move(done)] {
    // Not while its own work is on the stack.
    world_.after(0us, nullptr, [this, &host, life, done] {
      if (host.life != life || !host.up) return;
      world_.crash(host, false);
      done();
    });
  });
}

bool Fleet::is_spare(const Host& host) const {
  const Place& own = places_.at(host.id);
  // One that comes late, where another is cut off then, would be the second failure.
  if (own.roles.contains(NodeRole::gateway)) return false;
  return std::ranges::any_of(places_, [&](const auto& each) {
    return &each.second.host != &host && each.second.host.up && each.second.roles == own.roles;
  });
}

std::string Fleet::story() const {
  std::string text = world_.story();
  for (const auto& [id, place] : places_)
    text += place.host.name + ": " + (place.node ? place.node->describe() : std::string("is not there")) +
            (place.host.frozen ? ", frozen" : "") + '\n';
  return text + world_.failure();
}

double Fleet::node_hours() const {
  return static_cast<double>(world_.now().count()) / 3.6e9 * static_cast<double>(places_.size());
}

bool Fleet::run(Micros time) {
  world_.run_until(world_.now() + time);
  return world_.failure().empty();
}

}  // namespace vigil::fleet::sim
