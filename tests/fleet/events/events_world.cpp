#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <utility>

#include "tests/fleet/events/events_world_parts.h"
#include "tests/fleet/events/gateway_contents.h"

namespace vigil::fleet::testing {

World::World(const Options& options) : options_(options), random_(options.seed) {
  for (int i = 0; i < options.gateways; ++i) {
    gateways_.push_back(std::make_unique<Gateway>());
    gateways_.back()->name = "g" + std::to_string(i);
    gateways_.back()->disk = actors::make_memory_outbox();
  }
  for (int i = 0; i < options.makers; ++i) {
    makers_.push_back(std::make_unique<Maker>());
    makers_.back()->name = "m" + std::to_string(i);
    makers_.back()->number = static_cast<std::size_t>(i);
    makers_.back()->disk = actors::make_memory_outbox();
  }
}

World::~World() = default;

void World::after(std::int64_t ms, std::function<void()> what) {
  later_.push({clock_.ms + ms, order_++, std::move(what)});
}

/// For a seed that fails: VIGIL_TRACE=1 tells what happened.
void World::trace(const std::string& what) {
  static const bool wanted = std::getenv("VIGIL_TRACE") != nullptr;
  if (wanted) std::cerr << clock_.ms << ' ' << what << '\n';
}

void World::fail(const std::string& what) {
  if (!failure_) failure_ = std::to_string(clock_.ms) + " ms: " + what;
}

// ---- the registry

void World::put(const std::string& gateway, const GatewaySeen& seen) {
  GatewayView next = truth();
  next[gateway] = seen;
  history_.push_back(std::move(next));
}

void World::remove(const std::string& gateway) {
  GatewayView next = truth();
  if (next.erase(gateway) > 0) history_.push_back(std::move(next));
}

bool World::is_true(const Gateway& gateway) const {
  if (!gateway.alive || gateway.desk->mode() != GatewayMode::serving) return false;
  const auto there = truth().find(gateway.name);
  return there != truth().end() && there->second.born == gateway.desk->born();
}

std::size_t World::serving() const {
  return static_cast<std::size_t>(
      std::count_if(gateways_.begin(), gateways_.end(), [this](const auto& each) { return is_true(*each); }));
}

// ---- the net

bool World::is_cut(const std::string& one, const std::string& other) {
  return cuts_.contains({one, other}) || cuts_.contains({other, one});
}

void World::carry(const std::string& from, const std::string& to, const std::function<void()>& what) {
  ++counts_.messages;
  if (is_cut(from, to)) return;
  const int copies = calm_ ? 1 : chance(loss_) ? 0 : chance(twice_) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    // Now and then one is on its way for very long.
    const std::int64_t way = calm_ ? 2
                             : chance(0.03)
                                 ? static_cast<std::int64_t>(dice(2000))
                                 : 1 + static_cast<std::int64_t>(dice(static_cast<std::uint64_t>(delay_)));
    after(way, what);
  }
}

// ---- what happens

void World::mischief() {
  Gateway& gateway = *gateways_[dice(gateways_.size())];
  Maker& maker = *makers_[dice(makers_.size())];
  const std::size_t others = serving() - (is_true(gateway) ? 1 : 0);
  switch (dice(16)) {
    case 0:
    case 1:
      // One that serves, at least, stays.
      if (gateway.alive && others > 0) stop(gateway, chance(0.5));
      break;
    case 2:
    case 3:
    case 4:
      if (!gateway.alive) start(gateway);
      break;
    case 5:
      if (gateway.alive && !gateway.cut_off && others > 0) lose_lease(gateway);
      break;
    case 6:
      // The power is gone everywhere, whatever each is at, and a disk now and then.
      if (serving() > 0) {
        const bool with_disk = others > 0 && chance(0.3);
        std::vector<Gateway*> all;
        for (auto& each : gateways_)
          if (each->alive) all.push_back(each.get());
        for (Gateway* each : all) stop(*each, with_disk && each == &gateway);
        for (Gateway* each : all) start(*each);
      }
      break;
    case 7:
    case 8:
      if (maker.alive) {
        if (may_stop(maker)) stop(maker, chance(0.4));
      } else {
        start(maker);
        // It is told again what it has.
        maker.owned.clear();
        for (const auto& [series, owner] : owners_)
          if (owner.maker == maker.number) assign(series, owner.maker, owner.fence);
      }
      break;
    case 9:
    case 10:
    case 11: {
      const std::string series = "c" + std::to_string(dice(static_cast<std::uint64_t>(options_.series)));
      assign(series, dice(makers_.size()), ++fences_);
      break;
    }
    case 12:
    case 13: {
      const auto name = [this] {
        const std::uint64_t i = dice(gateways_.size() + makers_.size());
        return i < gateways_.size() ? gateways_[i]->name : makers_[i - gateways_.size()]->name;
      };
      const std::pair cut{name(), name()};
      cuts_.insert(cut);
      after(static_cast<std::int64_t>(dice(600)), [this, cut] { cuts_.erase(cut); });
      break;
    }
    default:
      break;
  }
}

std::optional<std::string> World::run() {
  for (int i = 0; i < options_.series; ++i) {
    const std::string series = "c" + std::to_string(i);
    assign(series, dice(makers_.size()), ++fences_);
  }
  for (auto& maker : makers_) start(*maker);
  for (auto& gateway : gateways_) start(*gateway);
  for (int step = 0; step < options_.steps && !failure_; ++step) {
    if (step > 20 && chance(0.25)) mischief();
    if (chance(0.7)) {
      Maker& maker = *makers_[dice(makers_.size())];
      if (maker.alive) make(maker, "c" + std::to_string(dice(static_cast<std::uint64_t>(options_.series))));
    }
    // As ticks of the shells are.
    for (auto& gateway : gateways_) poke(*gateway);
    for (auto& maker : makers_) poke(*maker);
    const std::int64_t until = clock_.ms + 25;
    while (!later_.empty() && later_.top().at <= until && !failure_) {
      const Later next = later_.top();
      later_.pop();
      clock_.ms = std::max(clock_.ms, next.at);
      next.what();
    }
    clock_.ms = until;
  }
  if (!failure_) settle_down();
  return failure_;
}

bool World::is_quiet() const {
  for (const auto& gateway : gateways_)
    if (!is_true(*gateway)) return false;
  for (const auto& maker : makers_) {
    if (maker->desk->waiting() > 0) return false;
    for (const auto& [series, units] : maker->waiting)
      if (!units.empty()) return false;
  }
  return true;
}

/// Nothing goes wrong any more: what is owed has to come.
void World::settle_down() {
  calm_ = true;
  cuts_.clear();
  for (auto& gateway : gateways_)
    if (!gateway->alive) start(*gateway);
  for (auto& maker : makers_)
    if (!maker->alive) {
      start(*maker);
      maker->owned.clear();
    }
  for (const auto& [series, owner] : owners_) assign(series, owner.maker, owner.fence);
  for (const auto& [series, owner] : owners_) make(*makers_[owner.maker], series);
  for (int step = 0; step < 800 && !failure_; ++step) {
    for (auto& gateway : gateways_) poke(*gateway);
    for (auto& maker : makers_) poke(*maker);
    const std::int64_t until = clock_.ms + 25;
    while (!later_.empty() && later_.top().at <= until && !failure_) {
      const Later next = later_.top();
      later_.pop();
      clock_.ms = std::max(clock_.ms, next.at);
      next.what();
    }
    clock_.ms = until;
    if (later_.empty() && is_quiet()) break;
  }
  if (failure_) return;
  if (!is_quiet()) {
    std::string who;
    for (const auto& gateway : gateways_)
      if (!is_true(*gateway)) who += ' ' + gateway->name + " (" + gateway->joining->trouble() + ")";
    for (const auto& maker : makers_)
      if (maker->desk->waiting() > 0 || maker->desk->claiming() > 0)
        who += ' ' + maker->name + " (" + std::to_string(maker->desk->waiting()) + " under way, " +
               std::to_string(maker->desk->claiming()) + " claims)";
    return fail("it does not come to rest:" + who);
  }
  for (const auto& [unit, maker] : owed_)
    if (!seen_units_.contains(unit)) fail("event " + unit + " of " + maker + " was never published");
  for (const auto& gateway : gateways_) look_at_all(*gateway);
  // The same events at the same numbers, without a hole, everywhere.
  for (const auto& [place, seen] : visible_)
    if (place.second > 1 && !visible_.contains({place.first, place.second - 1}))
      fail(place.first + ' ' + std::to_string(place.second) + " has none before it");
  for (const auto& gateway : gateways_)
    for (const actors::OutboxEvent& event :
         gateway->disk->last_events(std::numeric_limits<std::size_t>::max() / 2)) {
      const auto seen = visible_.find({event.topic, event.sequence});
      if (seen == visible_.end() || seen->second.body != event.body)
        fail(gateway->name + " has another " + event.topic + ' ' + std::to_string(event.sequence));
    }
}

// ---- what has to hold

bool World::has(const Gateway& gateway, const std::string& topic, std::uint64_t sequence,
                const std::string& body) const {
  return testing::body_at(gateway.desk->books(), *gateway.disk, topic, sequence) == body;
}

/// What a gateway shows that it did not show before.
void World::look(Gateway& gateway) {
  if (!gateway.alive || failure_) return;
  if (gateway.desk->books().staged_bytes() > kStagedBytes)
    fail(gateway.name + " has staged more than it may");
  if (gateway.desk->mode() != GatewayMode::serving) {
    gateway.was_true = false;
    return;
  }
  if (gateway.looked_of != gateway.disk->identity()) gateway.looked = 0;
  gateway.looked_of = gateway.disk->identity();
  actors::ReplayQuery query;
  query.topics = {""};
  query.after = gateway.looked;
  query.max_events = 100'000;
  query.max_bytes = query.max_scanned = 100'000'000;
  for (const actors::OutboxEvent& event : gateway.disk->replay(query).events) {
    gateway.looked = event.position;
    const auto [seen, is_new] =
        visible_.try_emplace({event.topic, event.sequence}, Seen{event.body, fence_in(event.body)});
    if (is_new)
      trace(gateway.name + " shows " + event.topic + std::to_string(event.sequence) + " fence " +
            std::to_string(seen->second.fence) + ' ' + unit_in(event.body));
    if (seen->second.body != event.body)
      fail(gateway.name + " shows another event as " + event.topic + ' ' + std::to_string(event.sequence));
    if (!is_new) continue;
    ++counts_.visible;
    seen_units_.insert(unit_in(event.body));
    const auto claimed = claimed_.find(series_key(event.topic));
    if (claimed != claimed_.end() && seen->second.fence < claimed->second.since) {
      const auto last = claimed->second.last.find(event.topic);
      if (last == claimed->second.last.end() || last->second < event.sequence)
        fail(gateway.name + " shows " + event.topic + ' ' + std::to_string(event.sequence) + " of fence " +
             std::to_string(seen->second.fence) + " after the claim of fence " +
             std::to_string(claimed->second.fence));
    }
    for (const auto& other : gateways_)
      if (is_true(*other) && !has(*other, event.topic, event.sequence, event.body))
        fail(gateway.name + " shows " + event.topic + ' ' + std::to_string(event.sequence) + ", which " +
             other->name + " has not");
  }
  if (!std::exchange(gateway.was_true, is_true(gateway)) && is_true(gateway)) look_at_all(gateway);
}

void World::look_at_all(const Gateway& gateway) {
  for (const auto& [place, seen] : visible_)
    if (!has(gateway, place.first, place.second, seen.body))
      fail(gateway.name + " serves, and has not " + place.first + ' ' + std::to_string(place.second));
}

}  // namespace vigil::fleet::testing
