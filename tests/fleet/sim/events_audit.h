// What has to hold of events: what a subscriber of any gateway saw is at every gateway that serves.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cluster/membership/fleet_keys.h"
#include "fleet/events/gateway_desk.h"
#include "tests/fleet/sim/registry.h"

namespace vigil::fleet::sim {

class EventsAudit {
 public:
  EventsAudit(RegistryHost& registry, const std::string& fleet);

  /// Of each gateway before any is looked at: where its parts are. `outbox` is that of the desk.
  void enter(const Host& host, const GatewayDesk& desk, const actors::Outbox& outbox);
  /// It does not run (any more), or has no desk now.
  void forget(const Host& host) { gateways_.erase(host.id); }
  /// After every event: what it has and did not have before.
  void look(const Host& host);

  /// Whether it serves, and the registry says that it is there: whatever anybody saw is there then.
  bool is_true(const Host& host) const;
  /// An event went to the subscribers of a gateway: it is on its disk.
  void published(const Host& host, const actors::OutboxEvent& event, const actors::Outbox& outbox);

  /// For so long nothing has been wrong that every window has to be told again: the subscribers of this
  /// gateway were told an alert of each of these cameras within `recent`.
  void calm(const Host& host, const std::vector<std::string>& cameras, Micros recent);

  std::uint64_t events() const { return events_; }
  /// How often a gateway began to serve.
  std::uint64_t served() const { return served_; }

 private:
  struct Gateway {
    const Host* host = nullptr;
    const GatewayDesk* desk = nullptr;
    const actors::Outbox* outbox = nullptr;
    std::string identity;
    std::uint64_t looked = 0;
    bool was_serving = false;
  };

  bool is_true(const Gateway& gateway) const;
  void saw(const Gateway& gateway, const actors::OutboxEvent& event);
  void look_at_all(const Gateway& gateway);
  static bool has(const Gateway& gateway, const std::string& topic, std::uint64_t sequence,
                  std::uint64_t print);

  World& world_;
  cluster::MemoryStore& store_;
  const cluster::FleetKeys keys_;
  std::map<int, Gateway> gateways_;
  /// What subscribers saw of each topic: prints, the first event first.
  std::map<std::string, std::vector<std::uint64_t>> seen_;
  /// Where each event of a topic was, by its id: again under another number it would be told twice.
  std::map<std::pair<std::string, std::string>, std::uint64_t> ids_;
  /// When a gateway has told an alert of a camera last, by the host's number.
  std::map<std::pair<int, std::string>, Micros> told_;
  std::uint64_t events_ = 0;
  std::uint64_t served_ = 0;
};

}  // namespace vigil::fleet::sim
