#include "cluster/topics/seen_ids.h"

#include <functional>
#include <string>

#include <nlohmann/json.hpp>

namespace vigil::cluster {

std::optional<SeenIds::Id> SeenIds::id_of(const TopicMessage& message) {
  const auto event = nlohmann::json::parse(message.body, nullptr, /*allow_exceptions=*/false);
  if (!event.is_object()) return std::nullopt;
  std::string name = message.topic;
  for (const char* key : {"source", "id"}) {
    const auto value = event.find(key);
    if (value == event.end() || !value->is_string()) return std::nullopt;
    // No part has a byte like that: what is joined can be taken apart.
    name += '\0' + value->get<std::string>();
  }
  const std::hash<std::string> hash;
  return Id(hash(name), hash('#' + name));
}

bool SeenIds::is_new(const TopicMessage& message) const {
  const auto id = id_of(message);
  return id && !ids_.contains(*id);
}

bool SeenIds::add(const TopicMessage& message) {
  const auto id = id_of(message);
  if (!id) return true;
  if (!ids_.insert(*id).second) return false;
  order_.push_back(*id);
  if (order_.size() > bound_) {
    ids_.erase(order_.front());
    order_.pop_front();
  }
  return true;
}

}  // namespace vigil::cluster
