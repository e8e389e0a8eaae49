#include "bench/city_gateways.h"

#include <algorithm>
#include <utility>

namespace vigil::bench {
namespace {

/// As a maker sends them.
constexpr std::size_t kMostAtOnce = 256;

double seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

CityGateways::CityGateways(VirtualTime& time, const CityCosts& costs, std::size_t subscribers)
    : time_(time),
      costs_(costs),
      subscribers_(subscribers),
      events_(time),
      messages_(time),
      published_(time),
      disk_(time),
      processor_(time) {}

void CityGateways::come(const std::string& gateway) {
  gateways_[gateway] = std::make_shared<Gateway>();
}

void CityGateways::go(const std::string& gateway) {
  const auto found = gateways_.find(gateway);
  if (found == gateways_.end()) return;
  found->second->gone = true;
  // Makers go on with those that are left.
  for (Write& write : std::exchange(found->second->waiting, {})) write.done();
  gateways_.erase(found);
}

void CityGateways::offer(std::size_t events) {
  for (; events > kMostAtOnce; events -= kMostAtOnce) offer(kMostAtOnce);
  if (events == 0 || gateways_.empty()) return;
  events_.add(static_cast<double>(events));
  const Nanoseconds begin = time_.elapsed();
  const auto left = std::make_shared<std::size_t>(gateways_.size());
  const auto uncommitted = std::make_shared<std::size_t>(gateways_.size());
  const auto all = std::make_shared<std::vector<GatewayPtr>>();
  for (const auto& [name, gateway] : gateways_) all->push_back(gateway);
  // An offer and a commit.
  messages_.add(2);
  const auto staged = [this, left, uncommitted, all, events, begin] {
    if (--*left > 0) return;
    for (const GatewayPtr& gateway : *all)
      time_.at(2 * costs_.way, [this, gateway, events, uncommitted, begin] {
        write(gateway, events, [this, uncommitted, begin] {
          if (--*uncommitted == 0) longest_ = std::max(longest_, time_.elapsed() - begin);
        });
      });
  };
  for (const GatewayPtr& gateway : *all)
    time_.at(costs_.way, [this, gateway, events, staged] { write(gateway, events, staged); });
}

void CityGateways::write(const GatewayPtr& gateway, std::size_t events, std::function<void()> done) {
  if (gateway->gone) return done();
  gateway->waiting.push_back({events, std::move(done)});
  work(gateway);
}

void CityGateways::work(const GatewayPtr& gateway) {
  if (gateway->writing || gateway->waiting.empty()) return;
  gateway->writing = true;
  auto batch = std::make_shared<std::vector<Write>>();
  std::swap(*batch, gateway->waiting);
  std::size_t events = 0;
  for (const Write& write : *batch) events += write.events;
  const Nanoseconds took = costs_.gateway_write + static_cast<std::int64_t>(events) * costs_.gateway_event;
  // Meters are of one gateway.
  const auto share = 1 / static_cast<double>(std::max<std::size_t>(1, gateways_.size()));
  disk_.add(seconds(took) * share);
  time_.at(took, [this, gateway, batch, events, share] {
    gateway->writing = false;
    // Half of what is written is committed, and goes out.
    const double sent = static_cast<double>(events * subscribers_) / 2;
    published_.add(sent * share);
    processor_.add(sent * seconds(costs_.publish) * share);
    for (const Write& write : *batch) write.done();
    work(gateway);
  });
}

void CityGateways::begin_phase() {
  for (CityMeter* meter : {&events_, &messages_, &published_, &disk_, &processor_}) meter->reset();
  longest_ = Nanoseconds(0);
}

}  // namespace vigil::bench
