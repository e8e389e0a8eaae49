#include "tests/fleet/sim/chaos.h"

#include <algorithm>
#include <utility>

namespace vigil::fleet::sim {

using namespace std::chrono_literals;

Chaos::Chaos(RegistryHost& registry, std::vector<Host*> hosts, std::set<const Host*> gateways,
             Options options, Hands hands)
    : registry_(registry),
      network_(registry.network()),
      world_(network_.world()),
      random_(world_.random),
      hosts_(std::move(hosts)),
      gateways_(std::move(gateways)),
      options_(options),
      hands_(std::move(hands)) {}

Host& Chaos::any_host() {
  return *hosts_[random_.below(hosts_.size())];
}

bool Chaos::may_hit(const std::set<const Host*>& hosts) const {
  const auto is_well = [&](const Host* gateway) {
    const auto faults = hit_.find(gateway);
    return (faults == hit_.end() || faults->second == 0) && hands_.serves(*gateway);
  };
  if (std::ranges::none_of(gateways_, [&](const Host* each) { return hosts.contains(each); })) return true;
  return std::ranges::all_of(gateways_, is_well) || std::ranges::any_of(gateways_, [&](const Host* each) {
           return !hosts.contains(each) && is_well(each);
         });
}

void Chaos::hit(const std::set<const Host*>& hosts) {
  for (const Host* host : hosts) ++hit_[host];
}

void Chaos::healed(const std::set<const Host*>& hosts) {
  for (const Host* host : hosts) --hit_[host];
}

void Chaos::storm() {
  is_calm_ = false;
  if (options_.restores && backup_ == nullptr && !std::exchange(will_back_up_, true))
    world_.after(random_.between(0us, options_.storm), nullptr, [this] {
      will_back_up_ = false;
      backup_ = registry_.store().backup();
    });
  next(world_.now() + options_.storm);
}

void Chaos::next(Micros end) {
  world_.after(random_.between(options_.least_between, options_.most_between), nullptr, [this, end] {
    if (world_.now() >= end) return calm();
    fault();
    next(end);
  });
}

void Chaos::last(Micros time, std::function<void()> end) {
  const std::uint64_t id = ++last_;
  under_way_[id] = std::move(end);
  world_.after(time, nullptr, [this, id] { finish(id); });
}

void Chaos::finish(std::uint64_t id) {
  if (const auto found = under_way_.extract(id)) found.mapped()();
}

void Chaos::calm() {
  is_calm_ = true;
  for (auto& [id, end] : std::exchange(under_way_, {})) end();
  // Whoever did not come back with the end of its fault may be spared.
  for (Host* host : hosts_)
    if (!host->up && (!hands_.is_spare(*host) || random_.chance(0.7))) hands_.start(*host);
  world_.after(options_.calm, nullptr, [this] {
    hands_.check();
    if (random_.chance(0.5)) return storm_again();
    // With the registry gone nothing moves, and everything goes on.
    ++counts_["registry away"];
    is_away_ = true;
    for (Host* host : hosts_) cut_from_registry(*host);
    world_.after(options_.away, nullptr, [this] {
      hands_.check();
      is_away_ = false;
      for (Host* host : hosts_) mend_registry(*host);
      storm_again();
    });
  });
}

void Chaos::cut_from_registry(Host& host) {
  network_.cut(host, registry_.host());
  network_.cut(registry_.host(), host);
}

void Chaos::mend_registry(Host& host) {
  network_.mend(host, registry_.host());
  network_.mend(registry_.host(), host);
}

void Chaos::storm_again() {
  for (Host* host : hosts_)
    if (!host->up) hands_.start(*host);
  storm();
}

bool Chaos::cut(const std::vector<std::pair<Host*, Host*>>& ways) {
  // Leases are what counts.
  std::set<const Host*> hosts;
  for (const auto& [from, to] : ways) {
    if (from == &registry_.host()) hosts.insert(to);
    if (to == &registry_.host()) hosts.insert(from);
  }
  if (ways.empty() || !may_hit(hosts)) return false;
  hit(hosts);
  for (const auto& [from, to] : ways) network_.cut(*from, *to);
  // Some are over before anybody notices, some take as long as a lease.
  const Micros time = random_.chance(0.5) ? random_.between(100ms, 4s) : random_.between(4s, 40s);
  last(time, [this, ways, hosts] {
    healed(hosts);
    for (const auto& [from, to] : ways) network_.mend(*from, *to);
  });
  return true;
}

bool Chaos::cut_some() {
  Host& one = any_host();
  Host* const etcd = &registry_.host();
  std::vector<std::pair<Host*, Host*>> ways;
  const auto both = [&](Host* a, Host* b) {
    if (a == b) return;
    ways.emplace_back(a, b);
    ways.emplace_back(b, a);
  };
  switch (random_.below(7)) {
    case 0:
      both(&one, &any_host());
      break;
    case 1:
      if (Host& other = any_host(); &other != &one) ways.emplace_back(&one, &other);
      break;
    case 2:
      both(&one, etcd);
      break;
    case 3:
      ways.emplace_back(&one, etcd);
      if (random_.chance(0.5)) ways.back() = {etcd, &one};
      break;
    case 4:
      // A node from all.
      for (Host* host : hosts_) both(&one, host);
      both(&one, etcd);
      break;
    case 5:
      // The registry from all.
      for (Host* host : hosts_) both(host, etcd);
      break;
    default:
      // One part from the other; the registry is with one of them.
      std::vector<Host*> parts[2];
      for (Host* host : hosts_) parts[random_.below(2)].push_back(host);
      parts[random_.below(2)].push_back(etcd);
      for (Host* a : parts[0])
        for (Host* b : parts[1]) both(a, b);
  }
  return cut(ways);
}

void Chaos::crash() {
  Host& host = any_host();
  if (!host.up || host.crash_in > 0 || !may_hit({&host})) return;
  hit({&host});
  if (random_.chance(0.5)) {
    // One that it comes to, again and again or now and then.
    std::vector<std::size_t> points;
    for (std::size_t i = 0; i < kPoints; ++i)
      if (host.done[i] > 0) points.push_back(i);
    if (points.empty()) points.push_back(0);
    const std::size_t point = points[random_.below(points.size())];
    host.crash_at = static_cast<Point>(point);
    host.crash_in = 1 + random_.below(std::clamp<std::uint64_t>(host.done[point], 1, 5));
  } else {
    host.crash_at.reset();
    host.crash_in = 1 + random_.below(random_.chance(0.5) ? 20 : 400);
  }
  host.loses_power = random_.chance(0.5);
  const Micros away = random_.chance(0.5) ? random_.between(100ms, 5s) : random_.between(5s, 60s);
  // Whoever has less to do than that comes to it all the same.
  world_.after(std::min<Micros>(away / 2, 5s), nullptr, [this, &host, before = host.crashes] {
    if (host.crashes > before || host.crash_in == 0) return;
    ++host.crashes;
    world_.crash(host, host.loses_power);
  });
  last(away, [this, &host, before = host.crashes] {
    if (host.crashes > before) ++counts_["crash"];
    healed({&host});
    host.crash_in = 0;
    if (!host.up && !is_calm_) hands_.start(host);
  });
}

void Chaos::power_cut() {
  std::vector<Host*> hosts;
  for (Host* host : hosts_)
    if (gateways_.contains(host)) hosts.push_back(host);
  const bool are_up =
      std::ranges::all_of(hosts, [](const Host* host) { return host->up && host->crash_in == 0; });
  if (hosts.empty() || !are_up || !may_hit(gateways_)) return;
  hit(gateways_);
  std::uint64_t before = 0;
  for (Host* host : hosts) {
    host->crash_at.reset();
    host->crash_in = 1 + random_.below(20);
    host->loses_power = true;
    before += host->crashes;
  }
  last(random_.between(100ms, 20s), [this, hosts, before] {
    std::uint64_t now = 0;
    for (const Host* host : hosts) now += host->crashes;
    if (now == before + hosts.size()) {
      ++counts_["power cut"];
    } else {
      counts_["crash"] += static_cast<int>(now - before);
    }
    healed(gateways_);
    for (Host* host : hosts) {
      host->crash_in = 0;
      if (!host->up && !is_calm_) hands_.start(*host);
    }
  });
}

void Chaos::drain() {
  Host& host = any_host();
  if (!host.up || host.frozen || !may_hit({&host})) return;
  const Micros away = random_.between(100ms, 30s);
  // It may end in another way meanwhile.
  hit({&host});
  last(away + 60s, [this, &host] { healed({&host}); });
  hands_.drain(host, [this, &host, away] {
    ++counts_["drain"];
    if (is_calm_) return hands_.start(host);
    last(away, [this, &host] {
      if (!host.up && !is_calm_) hands_.start(host);
    });
  });
}

bool Chaos::freeze() {
  Host& host = any_host();
  if (!host.up || host.frozen || !may_hit({&host})) return false;
  hit({&host});
  world_.freeze(host);
  last(random_.between(50ms, random_.chance(0.5) ? 3s : 25s), [this, &host, life = host.life] {
    healed({&host});
    if (host.life == life) world_.thaw(host);
  });
  return true;
}

bool Chaos::delay() {
  Host& from = random_.chance(0.2) ? registry_.host() : any_host();
  Host& to = random_.chance(0.2) ? registry_.host() : any_host();
  const Micros by = random_.between(10ms, 2s);
  if (&from == &to) return false;
  world_.note(Kind::delay, from.id, to.id, static_cast<std::uint64_t>(by.count()));
  network_.delay(from, to, by);
  last(random_.between(1s, 40s), [this, &from, &to] { network_.delay(from, to, 0us); });
  return true;
}

bool Chaos::step_clock() {
  Host& host = any_host();
  host.clock.step = random_.between(-600s, 600s);
  world_.note(Kind::clock_step, host.id, -1, static_cast<std::uint64_t>(host.clock.step.count()));
  last(random_.between(1s, 60s), [&host] { host.clock.step = 0us; });
  return true;
}

bool Chaos::fail_disks() {
  Host& host = any_host();
  if (!may_hit({&host})) return false;
  hit({&host});
  world_.note(Kind::disk_fails, host.id);
  hands_.disks_fail(host, true);
  last(random_.between(100ms, random_.chance(0.5) ? 2s : 20s), [this, &host] {
    healed({&host});
    hands_.disks_fail(host, false);
  });
  return true;
}

/// All gateways may have to come again.
bool Chaos::restore() {
  if (backup_ == nullptr || !may_hit(gateways_)) return false;
  world_.note(Kind::restored);
  registry_.store().restore(std::exchange(backup_, nullptr), 1 + random_.below(2));
  return true;
}

void Chaos::fault() {
  const auto count = [this](const char* what, bool done) {
    if (done) ++counts_[what];
  };
  const std::uint64_t roll = random_.below(100);
  if (roll < 6 && options_.disks) {
    count("disk that fails", fail_disks());
  } else if (roll < 40) {
    count("cut", cut_some());
  } else if (roll < 57) {
    crash();
  } else if (roll < 60) {
    power_cut();
  } else if (roll < 70) {
    count("freeze", freeze());
  } else if (roll < 82) {
    count("delay", delay());
  } else if (roll < 88) {
    count("clock step", step_clock());
  } else if (roll < 95) {
    drain();
  } else if (roll < 97 || !options_.restores) {
    registry_.store().compact(registry_.store().header().revision);
    count("compaction", true);
  } else {
    count("restore", restore());
  }
}

}  // namespace vigil::fleet::sim
