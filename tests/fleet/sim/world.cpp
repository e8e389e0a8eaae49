#include "tests/fleet/sim/world.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

namespace vigil::fleet::sim {
namespace {

constexpr std::size_t kNoted = 400;

constexpr std::array<std::string_view, 23> kNames = {
    "event", "crash",      "power loss", "start",    "freeze", "thaw",    "cut",       "mend",
    "delay", "clock step", "connected",  "closed",   "taken",  "refused", "plan",      "lease over",
    "write", "published",  "calm",       "restored", "joined", "left",    "disk fails"};

}  // namespace

std::chrono::nanoseconds Host::Clock::elapsed() const {
  return world_.now() + Micros(world_.now().count() / 1'000'000 * drift);
}

base::Clock::TimePoint Host::Clock::now() const {
  return TimePoint(std::chrono::hours(1)) + elapsed();
}

base::Clock::WallTime Host::Clock::wall() const {
  // 2026-08-01T10:00:00Z
  return WallTime(std::chrono::seconds(1785578400)) +
         std::chrono::duration_cast<WallTime::duration>(elapsed() + step);
}

Micros Host::Clock::lasting(std::chrono::nanoseconds time) const {
  const auto micros = std::chrono::duration_cast<Micros>(time);
  // The clock goes on in steps of `drift` microseconds a second.
  return micros - Micros(micros.count() * drift / 1'000'000) + Micros(1 + std::abs(drift));
}

std::string_view name_of(Point point) {
  constexpr std::array<std::string_view, kPoints> kPointNames = {
      "message",        "request of the registry", "connection", "turn",       "write",
      "end of a write", "acknowledgement",         "new outbox", "publication"};
  return kPointNames[static_cast<std::size_t>(point)];
}

bool Host::does(Point point) {
  if (!up || dying) return false;
  ++done[static_cast<std::size_t>(point)];
  if ((!crash_at || crash_at == point) && crash_in > 0 && --crash_in == 0) {
    dying = true;
    ++crashes;
    ++crashes_before[static_cast<std::size_t>(point)];
  }
  return !dying;
}

Host& World::add_host(const std::string& name) {
  hosts_.push_back(std::make_unique<Host>(*this, name, static_cast<int>(hosts_.size())));
  return *hosts_.back();
}

void World::at(Micros time, Host* host, std::function<void()> run) {
  queue_.push_back({std::max(time, now_), ++order_, host, host == nullptr ? 0 : host->life, std::move(run)});
  std::ranges::push_heap(queue_, Later());
}

void World::run_until(Micros end) {
  while (failure_.empty() && !queue_.empty() && queue_.front().at <= end) {
    std::ranges::pop_heap(queue_, Later());
    Event event = std::move(queue_.back());
    queue_.pop_back();
    now_ = event.at;
    if (event.host != nullptr) {
      if (event.life != event.host->life) continue;
      if (event.host->frozen) {
        event.host->held.push_back(std::move(event.run));
        continue;
      }
    }
    ++events_;
    note(Kind::event, event.host == nullptr ? -1 : event.host->id, -1, event.order);
    event.run();
    for (const auto& hook : after_event) hook();
    for (const auto& host : hosts_)
      if (host->dying) bury(*host);
  }
  if (failure_.empty()) now_ = end;
}

void World::bury(Host& host) {
  const bool power_loss = host.loses_power;
  note(power_loss ? Kind::power_loss : Kind::crash, host.id);
  host.up = host.frozen = false;
  host.crash_in = 0;
  // What ends now does not count.
  host.dying = true;
  if (host.on_crash) host.on_crash();
  host.dying = false;
  ++host.life;
  host.held.clear();
  if (crashed) crashed(host, power_loss);
}

void World::crash(Host& host, bool power_loss) {
  if (!host.up) return;
  host.loses_power = power_loss;
  host.dying = true;
  bury(host);
}

void World::freeze(Host& host) {
  if (!host.up || std::exchange(host.frozen, true)) return;
  note(Kind::freeze, host.id);
  if (frozen) frozen(host);
}

void World::thaw(Host& host) {
  if (!host.up || !std::exchange(host.frozen, false)) return;
  note(Kind::thaw, host.id);
  for (auto& run : std::exchange(host.held, {})) at(now_, &host, std::move(run));
  if (thawed) thawed(host);
}

void World::note(Kind kind, int one, int other, std::uint64_t detail) {
  const std::uint64_t what = (static_cast<std::uint64_t>(kind) << 48U) ^
                             (static_cast<std::uint64_t>(one + 1) << 40U) ^
                             (static_cast<std::uint64_t>(other + 1) << 32U);
  hash_ = (hash_ ^ what ^ static_cast<std::uint64_t>(now_.count())) * 0x9e3779b97f4a7c15U;
  hash_ = (hash_ ^ (hash_ >> 29U) ^ detail) * 0xbf58476d1ce4e5b9U;
  if (kind == Kind::event) return;
  noted_.push_back({now_, kind, one, other, detail});
  if (noted_.size() > kNoted) noted_.pop_front();
}

void World::fail(const std::string& what) {
  if (!failure_.empty()) return;
  failure_ = what + " (at " + std::to_string(static_cast<double>(now_.count()) / 1e6) + " s, seed " +
             std::to_string(seed) + ')';
}

std::string World::story() const {
  std::string text;
  const auto name = [this](int id) {
    return id < 0 ? std::string() : ' ' + hosts_.at(static_cast<std::size_t>(id))->name;
  };
  for (const Noted& each : noted_)
    text += std::to_string(static_cast<double>(each.at.count()) / 1e6) + ' ' +
            std::string(kNames.at(static_cast<std::size_t>(each.kind))) + name(each.one) + name(each.other) +
            ' ' + std::to_string(each.detail) + '\n';
  return text;
}

}  // namespace vigil::fleet::sim
