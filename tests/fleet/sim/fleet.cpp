#include "tests/fleet/sim/fleet.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tests/actors/fakes.h"

namespace vigil::fleet::sim {

using namespace std::chrono_literals;
using cluster::NodeRole;

namespace {

/// How long nobody may be told of a camera when all is well: more than one window, and what that takes.
constexpr std::chrono::seconds kUntold{25};

/// Cameras of few frames, whose windows are long. Each window is told, and explained where a node has nothing
/// else to do.
std::vector<config::CameraSettings> settings(const Fleet::Options& options) {
  std::vector<config::CameraSettings> all;
  for (int i = 1; i <= options.cameras; ++i) {
    const std::string name = "gate" + std::to_string(i);
    auto settings = actors::testing::camera(name, config::Pace::realtime, "/clips/" + name + ".mp4");
    settings->stream.fps = 0.2;
    settings->stream.window = {20s, 10s};
    settings->rules.front().confirm = {1, 1};
    settings->rules.front().max_per_hour = 1'000'000;
    settings->rules.front().explain = options.layout == Fleet::Options::Layout::stages;
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
      actor_commons_{world_, network_,          registry_,        bulk_, audit_, events_,
                     "city", settings(options), options_.mistakes} {
  add_nodes();
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
                   .disks_fail =
                       [this](Host& host, bool fails) {
                         places_.at(host.id).made->fail(fails);
                         places_.at(host.id).kept->fail(fails);
                       },
                   .is_spare = [this](const Host& host) { return is_spare(host); },
                   .serves = [this](const Host& host) { return events_.is_true(host); },
                   .check = [this] { check(); }});
  world_.after_event.emplace_back([this] { after_event(); });
  if (!options.is_quiet) world_.after(20s, nullptr, [this] { chaos_->begin(); });
}

Fleet::Options Fleet::of_seed(std::uint64_t seed, bool of_actors) {
  Options options{.seed = seed, .of_actors = of_actors};
  options.layout = std::array{Options::Layout::apart, Options::Layout::gate,
                              of_actors ? Options::Layout::stages : Options::Layout::apart,
                              Options::Layout::alike}[seed % 4];
  options.chaos.restores = seed % 3 == 0;
  options.chaos.disks = of_actors;
  return options;
}

void Fleet::add_nodes() {
  const std::set<NodeRole> computing = {NodeRole::vision, NodeRole::stream, NodeRole::generate};
  const auto number = [](const char* name, int i) { return name + std::to_string(i); };
  if (options_.layout == Options::Layout::alike) {
    std::set<NodeRole> all = computing;
    all.insert(NodeRole::camera);
    if (options_.of_actors) all.insert(NodeRole::gateway);
    for (int i = 1; i <= 3; ++i) add(number("all", i), all);
    return;
  }
  int gateways = options_.of_actors ? options_.gateways : 0;
  for (int i = 1; i <= options_.camera_nodes; ++i) {
    std::set<NodeRole> roles = {NodeRole::camera};
    if (i == 1 && gateways > 0 && options_.layout == Options::Layout::gate) {
      roles.insert(NodeRole::gateway);
      --gateways;
    }
    add(number("cam", i), roles);
  }
  if (options_.layout == Options::Layout::stages) {
    for (int i = 1; i <= options_.computing_nodes; ++i) {
      add(number("tower", i), {NodeRole::vision});
      add(number("stream", i), {NodeRole::stream});
    }
    add("words", {NodeRole::generate});
  } else {
    for (int i = 1; i <= options_.computing_nodes; ++i) add(number("gpu", i), computing);
  }
  for (int i = 1; i <= gateways; ++i) add(number("gw", i), {NodeRole::gateway});
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
  const auto disk = [&] {
    return std::make_unique<Disk>(
        world_, host,
        Disk::Options{.unsynced = options_.mistakes.disk_answers_too_early ? std::size_t{3} : 0,
                      .tears = options_.mistakes.disk_tears_writes});
  };
  const auto place =
      places_.emplace(host.id, Place{host, std::move(roles), disk(), disk(), nullptr, 0}).first;
  host.on_crash = [place] {
    place->second.node.reset();
    place->second.made->crash();
    place->second.kept->crash();
  };
}

void Fleet::start(Host& host) {
  if (host.up) return;
  Place& place = places_.at(host.id);
  host.up = true;
  world_.note(Kind::start, host.id);
  const std::string incarnation = host.name + '.' + std::to_string(++place.runs);
  if (options_.of_actors) {
    place.node = std::make_unique<ActorNode>(actor_commons_, host, ActorNode::Disks{*place.made, *place.kept},
                                             place.roles, incarnation);
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
  if (!options_.of_actors) return;
  // Leases that it forgot are as good, while it is away.
  const bool is_away = chaos_ && chaos_->registry_is_away();
  for (const auto& [id, place] : places_) {
    if (!place.roles.contains(NodeRole::gateway)) continue;
    if (!is_away && !events_.is_true(place.host))
      world_.fail("gateway " + place.host.name + " does not serve, although nothing is wrong");
    events_.calm(place.host, commons_.cameras, kUntold);
  }
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
