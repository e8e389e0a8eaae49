// Small things about events that are shipped.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "actors/alerts/outbox.h"
#include "fleet/messages/event_messages.h"

namespace vigil::fleet {

/// What names the series of a topic: its camera, or, of a process's own news, the topic itself (a camera's
/// name has no '/'). Empty for what is no topic of Vigil.
std::string series_key(std::string_view topic);
/// Whether a series is of what a process tells of itself, and not a camera's.
bool is_own_news(std::string_view series);

/// Of a body; never 0.
std::uint64_t fingerprint(std::string_view body);

/// Copies of one event on several topics have the same; what has one topic only has its own.
std::string unit_name(const std::string& topic, std::uint64_t sequence, const std::string& body);

ShippedEvent shipped(const actors::OutboxEvent& event, std::uint64_t unit = 0);
actors::OutboxEvent kept(const ShippedEvent& event);

std::size_t size_of(const ShippedEvent& event);

/// Another gateway, as the registry tells of it. `born` is another one whenever its record was gone in
/// between.
struct GatewaySeen {
  std::string born;
  std::uint64_t created = 0;
  bool serves = false;
  friend bool operator==(const GatewaySeen&, const GatewaySeen&) = default;
};

/// All gateways that hold their leases, by name.
using GatewayView = std::map<std::string, GatewaySeen>;

}  // namespace vigil::fleet
