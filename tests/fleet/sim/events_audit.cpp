#include "tests/fleet/sim/events_audit.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "actors/alerts/books.h"
#include "actors/messages/topic.h"
#include "base/fnv1a.h"
#include "cluster/membership/node_record.h"
#include "tests/fleet/events/gateway_contents.h"

namespace vigil::fleet::sim {
namespace {

std::string id_of(const std::string& body) {
  const nlohmann::json event = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  return event.is_object() ? event.value("id", std::string()) : std::string();
}

std::string place(const std::string& topic, std::uint64_t sequence) {
  return topic + '#' + std::to_string(sequence);
}

}  // namespace

EventsAudit::EventsAudit(RegistryHost& registry, const std::string& fleet)
    : world_(registry.network().world()), store_(registry.store()), keys_(fleet) {}

bool EventsAudit::is_true(const Host& host) const {
  const auto gateway = gateways_.find(host.id);
  return gateway != gateways_.end() && is_true(gateway->second);
}

bool EventsAudit::is_true(const Gateway& gateway) const {
  if (!gateway.host->up || gateway.host->dying || gateway.desk->mode() != GatewayMode::serving) return false;
  const std::string key = keys_.node(gateway.host->name);
  for (const cluster::RegistryEntry& entry : store_.range(key).entries)
    if (entry.key == key)
      return cluster::parse_node(entry.value).incarnation + '@' + std::to_string(entry.created) ==
             gateway.desk->born();
  return false;
}

bool EventsAudit::has(const Gateway& gateway, const std::string& topic, std::uint64_t sequence,
                      std::uint64_t print) {
  const auto body = testing::body_at(gateway.desk->books(), *gateway.outbox, topic, sequence);
  return body && base::fnv1a(*body) == print;
}

void EventsAudit::enter(const Host& host, const GatewayDesk& desk, const actors::Outbox& outbox) {
  Gateway& gateway = gateways_[host.id];
  gateway.host = &host;
  gateway.desk = &desk;
  gateway.outbox = &outbox;
}

void EventsAudit::look(const Host& host) {
  const auto found = gateways_.find(host.id);
  if (found == gateways_.end()) return;
  Gateway& gateway = found->second;
  const GatewayDesk& desk = *gateway.desk;
  const actors::Outbox& outbox = *gateway.outbox;
  if (gateway.identity != outbox.identity()) {
    gateway.identity = outbox.identity();
    gateway.looked = 0;
  }
  if (desk.mode() != GatewayMode::serving) {
    gateway.was_serving = false;
    return;
  }
  if (!gateway.was_serving && is_true(gateway)) {
    gateway.was_serving = true;
    ++served_;
    look_at_all(gateway);
  }
  if (outbox.last_position() == gateway.looked) return;
  actors::ReplayQuery query;
  query.topics = {""};
  query.after = gateway.looked;
  query.max_events = query.max_bytes = query.max_scanned = 100'000'000;
  for (const actors::OutboxEvent& event : outbox.replay(query).events) saw(gateway, event);
  gateway.looked = outbox.last_position();
}

void EventsAudit::saw(const Gateway& gateway, const actors::OutboxEvent& event) {
  std::vector<std::uint64_t>& prints = seen_[event.topic];
  const std::uint64_t print = base::fnv1a(event.body);
  const std::string where = place(event.topic, event.sequence);
  if (event.sequence <= prints.size()) {
    if (prints.at(event.sequence - 1) != print)
      world_.fail("gateway " + gateway.host->name + " has another event as " + where);
    return;
  }
  if (event.sequence > prints.size() + 1)
    return world_.fail("gateway " + gateway.host->name + " has " + where + " after #" +
                       std::to_string(prints.size()));
  prints.push_back(print);
  ++events_;
  world_.note(Kind::published, -1, -1, event.sequence);
  if (const std::string id = id_of(event.body); !id.empty()) {
    const auto [known, is_new] = ids_.emplace(std::pair(event.topic, id), event.sequence);
    if (!is_new)
      world_.fail("event " + id + " is " + where + " and #" + std::to_string(known->second) + ", too");
  }
  for (const auto& [host, other] : gateways_)
    if (&other != &gateway && is_true(other) && !has(other, event.topic, event.sequence, print))
      world_.fail("gateway " + gateway.host->name + " has " + where + ", which " + other.host->name +
                  " has not");
}

void EventsAudit::look_at_all(const Gateway& gateway) {
  for (const auto& [topic, prints] : seen_)
    for (std::size_t i = 0; i < prints.size(); ++i)
      if (!has(gateway, topic, i + 1, prints[i]))
        return world_.fail("gateway " + gateway.host->name + " serves, and has not " + place(topic, i + 1));
}

void EventsAudit::published(const Host& host, const actors::OutboxEvent& event,
                            const actors::Outbox& outbox) {
  world_.note(Kind::published, host.id, -1, event.sequence);
  if (!outbox.position_of(event.topic, event.sequence))
    world_.fail("gateway " + host.name + " published " + place(event.topic, event.sequence) +
                ", which is not on its disk");
  if (const auto camera = actors::series_of(event.topic);
      camera && actors::kind_of(event.topic) == actors::TopicKind::rule)
    told_[{host.id, *camera}] = world_.now();
}

void EventsAudit::calm(const Host& host, const std::vector<std::string>& cameras, Micros recent) {
  for (const std::string& camera : cameras) {
    const auto told = told_.find({host.id, camera});
    if (told == told_.end() || world_.now() - told->second > recent)
      world_.fail("gateway " + host.name + " tells nothing of camera " + camera +
                  ", although all nodes are there");
  }
}

}  // namespace vigil::fleet::sim
