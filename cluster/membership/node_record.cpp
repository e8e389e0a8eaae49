#include "cluster/membership/node_record.h"

#include <array>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_line.h"

namespace vigil::cluster {
namespace {

using nlohmann::json;

constexpr std::array kStates = {
    std::pair{NodeState::joining, "joining"},
    std::pair{NodeState::ready, "ready"},
    std::pair{NodeState::draining, "draining"},
};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
  for (const auto& [each, name] : table)
    if (each == value) return name;
  return "?";
}

template <class Table>
auto value_in(const Table& table, std::string_view wanted)
    -> std::optional<typename Table::value_type::first_type> {
  for (const auto& [value, name] : table)
    if (wanted == name) return value;
  return std::nullopt;
}

PeerAddress address_of(const json& text) {
  const auto address = parse_peer(text.get<std::string>());
  if (!address) throw std::runtime_error("'" + text.get<std::string>() + "' is no HOST:PORT");
  return *address;
}

}  // namespace

std::string_view name_of(NodeState state) {
  return name_in(kStates, state);
}

bool differ_beyond_configuration(NodeRecord a, const NodeRecord& b) {
  a.config = b.config;
  a.config_seen = b.config_seen;
  a.config_fault = b.config_fault;
  a.config_version = b.config_version;
  return a != b;
}

bool differ_in_substance(NodeRecord a, const NodeRecord& b) {
  a.highest_fence = b.highest_fence;
  a.keeps_events = b.keeps_events;
  return differ_beyond_configuration(std::move(a), b);
}

bool differ_at_once(NodeRecord a, const NodeRecord& b) {
  a.unreachable = b.unreachable;
  return a.keeps_events != b.keeps_events || differ_in_substance(std::move(a), b);
}

std::string print(const NodeRecord& record) {
  json roles = json::array();
  for (const NodeRole role : record.roles) roles.push_back(name_of(role));
  json text = {{"name", record.name},
               {"incarnation", record.incarnation},
               {"roles", roles},
               {"state", name_of(record.state)},
               {"control", text_of(record.control)},
               {"bulk", text_of(record.bulk)},
               {"bulk_key", record.bulk_key},
               {"version", record.version},
               {"commit", record.commit},
               {"protocol", {record.protocol.oldest, record.protocol.newest}},
               {"model", record.model},
               {"weight", record.weight},
               {"cameras", record.cameras},
               {"streams", record.streams},
               {"config", record.config},
               {"config_seen", record.config_seen},
               {"config_fault", record.config_fault},
               {"config_version", record.config_version},
               {"highest_fence", record.highest_fence},
               {"serves", record.serves}};
  // Of those that are well, nothing of it.
  if (!record.unreachable.empty()) text["unreachable"] = record.unreachable;
  if (record.keeps_events) text["keeps_events"] = true;
  if (record.apart) text["apart"] = true;
  if (record.clock_off) text["clock_off"] = true;
  // What is no UTF-8 of a name does not keep a node from being a member.
  return base::json_line(text);
}

NodeRecord parse_node(std::string_view text) {
  try {
    const json read = json::parse(text);
    NodeRecord record;
    record.name = read.at("name");
    record.incarnation = read.at("incarnation");
    for (const json& each : read.at("roles"))
      // A role of a newer build's is none of ours.
      if (const auto role = parse_role(each.get<std::string>())) record.roles.insert(*role);
    const auto state = value_in(kStates, read.at("state").get<std::string>());
    if (!state) throw std::runtime_error("unknown state '" + read.at("state").get<std::string>() + "'");
    record.state = *state;
    record.control = address_of(read.at("control"));
    record.bulk = address_of(read.at("bulk"));
    record.bulk_key = read.value("bulk_key", "");
    record.version = read.value("version", "");
    record.commit = read.value("commit", "");
    record.protocol = {read.at("protocol").at(0), read.at("protocol").at(1)};
    record.model = read.value("model", "");
    record.weight = read.value("weight", 1.0);
    record.cameras = read.value("cameras", 0.0);
    record.streams = read.value("streams", 0.0);
    record.config = read.value("config", "");
    record.config_seen = read.value("config_seen", "");
    record.config_fault = read.value("config_fault", "");
    record.config_version = read.value("config_version", std::uint64_t{0});
    record.highest_fence = read.value("highest_fence", Fence{0});
    record.serves = read.value("serves", false);
    record.keeps_events = read.value("keeps_events", false);
    record.unreachable = read.value("unreachable", std::set<std::string>());
    record.apart = read.value("apart", false);
    record.clock_off = read.value("clock_off", false);
    return record;
  } catch (const std::exception& error) {
    throw std::runtime_error(std::string("no record of a node: ") + error.what());
  }
}

}  // namespace vigil::cluster
