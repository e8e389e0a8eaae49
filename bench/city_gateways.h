// The gateways of a simulated city: every event is on the disk of all of them before any publishes it.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/city_costs.h"
#include "bench/city_meter.h"
#include "bench/virtual_thread.h"

namespace vigil::bench {

/// A gateway writes what it is offered (staged), says so to the maker, and writes it again when it is told
/// that all have it (committed). Not thread-safe.
class CityGateways {
 public:
  CityGateways(VirtualTime& time, const CityCosts& costs, std::size_t subscribers);

  void come(const std::string& gateway);
  void go(const std::string& gateway);
  std::size_t count() const { return gateways_.size(); }

  /// Events of one maker.
  void offer(std::size_t events);

  void begin_phase();
  /// In this phase.
  const CityMeter& events() const { return events_; }
  /// To one gateway.
  const CityMeter& messages() const { return messages_; }
  const CityMeter& published() const { return published_; }
  /// Seconds of one gateway's disk, and of its processor.
  const CityMeter& disk() const { return disk_; }
  const CityMeter& processor() const { return processor_; }
  /// Seconds from an event until all had committed it, at most.
  double longest() const { return std::chrono::duration<double>(longest_).count(); }

 private:
  struct Write {
    std::size_t events = 0;
    std::function<void()> done;
  };
  struct Gateway {
    std::vector<Write> waiting;
    bool writing = false;
    bool gone = false;
  };
  using GatewayPtr = std::shared_ptr<Gateway>;

  void write(const GatewayPtr& gateway, std::size_t events, std::function<void()> done);
  void work(const GatewayPtr& gateway);

  VirtualTime& time_;
  const CityCosts& costs_;
  const std::size_t subscribers_;
  /// One sync takes what all makers have offered meanwhile.
  std::map<std::string, GatewayPtr> gateways_;
  CityMeter events_, messages_, published_, disk_, processor_;
  Nanoseconds longest_{0};
};

}  // namespace vigil::bench
