#include "fleet/past/erasure_book.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

namespace vigil::fleet {
namespace {

using cluster::RegistryTransaction;
using nlohmann::json;

json object_of(std::string_view text) {
  json object = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) throw std::runtime_error("is no JSON object");
  return object;
}

template <class T>
T member(const json& object, const char* key) {
  const auto entry = object.find(key);
  if (entry == object.end()) throw std::runtime_error(std::string(key) + " is missing");
  try {
    return entry->get<T>();
  } catch (const json::exception&) {
    throw std::runtime_error(std::string(key) + " is not what it should be");
  }
}

/// The rest of a key behind its prefix; empty if it does not begin so.
std::string behind(const std::string& key, const std::string& prefix) {
  return key.compare(0, prefix.size(), prefix) == 0 ? key.substr(prefix.size()) : "";
}

}  // namespace

std::string print(const FleetErasure& erasure) {
  return json{{"tenant", erasure.camera.tenant},
              {"camera", erasure.camera.camera},
              {"from_ns", erasure.wall.from},
              {"to_ns", erasure.wall.to}}
      .dump(-1, ' ', false, json::error_handler_t::replace);
}

FleetErasure parse_erasure(std::string_view text) {
  const json object = object_of(text);
  return {{member<std::string>(object, "tenant"), member<std::string>(object, "camera")},
          {member<std::int64_t>(object, "from_ns"), member<std::int64_t>(object, "to_ns")}};
}

std::vector<std::string> ErasureBook::see(const Entries& entries) {
  erasures_.clear();
  nodes_.clear();
  done_.clear();
  std::vector<std::string> faults;
  for (const auto& [key, entry] : entries) {
    try {
      if (const std::string id = behind(key, keys_.erasures()); !id.empty()) {
        erasures_[id] = {parse_erasure(entry.value), entry.modified};
      } else if (const std::string node = behind(key, keys_.past_nodes()); !node.empty()) {
        nodes_[node] = member<bool>(object_of(entry.value), "disk");
      } else if (const std::string done = behind(key, keys_.erased()); !done.empty()) {
        const std::size_t slash = done.find('/');
        if (slash == std::string::npos) throw std::runtime_error("names no node");
        done_[done.substr(0, slash)][done.substr(slash + 1)] = {
            member<std::size_t>(object_of(entry.value), "pages")};
      }
    } catch (const std::exception& error) {
      faults.push_back("the registry's key " + key + ": " + error.what());
    }
  }
  const auto is_gone = [&](const std::string& id) { return !erasures_.contains(id); };
  for (const auto& [id, erasure] : erasures_)
    if (known_.insert(id).second) new_.push_back(erasure.what);
  // One that is gone and comes again is another one; what was done, and is not any more, is due again: the
  // registry may have been set back.
  std::erase_if(known_, is_gone);
  std::erase_if(told_, [&](const std::string& id) {
    return is_gone(id) || (done_here_.contains(id) && !has_done(id, node_));
  });
  done_here_.clear();
  for (const auto& [id, erasure] : erasures_)
    if (has_done(id, node_)) done_here_.insert(id);
  return faults;
}

bool ErasureBook::has_done(const std::string& id, const std::string& node) const {
  const auto done = done_.find(id);
  return done != done_.end() && done->second.contains(node);
}

std::vector<FleetErasure> ErasureBook::take_new() {
  return std::exchange(new_, {});
}

std::vector<ErasureBook::Due> ErasureBook::take_due() {
  std::vector<Due> due;
  for (const auto& [id, erasure] : erasures_)
    if (!has_done(id, node_) && told_.insert(id).second) due.push_back({id, erasure.what});
  return due;
}

RegistryTransaction ErasureBook::done(const std::string& id, std::size_t pages) const {
  RegistryTransaction transaction;
  const auto erasure = erasures_.find(id);
  if (erasure == erasures_.end()) return transaction;
  transaction.conditions.push_back({keys_.erasure(id), erasure->second.modified});
  transaction.changes.push_back(cluster::RegistryPut{keys_.erased(id, node_), json{{"pages", pages}}.dump()});
  return transaction;
}

RegistryTransaction ErasureBook::begin(bool has_disk) const {
  RegistryTransaction transaction;
  const auto known = nodes_.find(node_);
  if (known != nodes_.end() && (known->second || !has_disk)) return transaction;
  transaction.changes.push_back(
      cluster::RegistryPut{keys_.past_node(node_), json{{"disk", has_disk}}.dump()});
  return transaction;
}

bool ErasureBook::had_disk() const {
  const auto known = nodes_.find(node_);
  return known != nodes_.end() && known->second;
}

RegistryTransaction ErasureBook::order(const std::string& id, const FleetErasure& what) const {
  RegistryTransaction transaction;
  transaction.conditions.push_back({keys_.erasure(id), 0});
  transaction.changes.push_back(cluster::RegistryPut{keys_.erasure(id), print(what)});
  return transaction;
}

std::vector<std::string> ErasureBook::left(const std::string& id) const {
  std::vector<std::string> left;
  if (!erasures_.contains(id)) return left;
  for (const auto& [node, has_disk] : nodes_)
    if ((has_disk || present_.contains(node)) && !has_done(id, node)) left.push_back(node);
  return left;
}

std::size_t ErasureBook::waiting() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(erasures_, [&](const auto& each) { return !left(each.first).empty(); }));
}

std::size_t ErasureBook::pages(const std::string& id) const {
  std::size_t pages = 0;
  const auto done = done_.find(id);
  if (done == done_.end()) return pages;
  for (const auto& [node, each] : done->second) pages += each.pages;
  return pages;
}

RegistryTransaction ErasureBook::clean_up(base::Clock::TimePoint now) {
  RegistryTransaction transaction;
  const auto remove = [&](const std::string& key) {
    if (transaction.changes.size() < RegistryTransaction::kMost)
      transaction.changes.push_back(cluster::RegistryDelete{key});
  };
  std::erase_if(over_since_, [&](const auto& each) { return !erasures_.contains(each.first); });
  // The erasure goes ahead of what was done: what is there without it is over.
  for (const auto& [id, erasure] : erasures_) {
    if (!left(id).empty()) {
      over_since_.erase(id);
    } else if (now - over_since_.try_emplace(id, now).first->second >= kKept) {
      remove(keys_.erasure(id));
    }
  }
  for (const auto& [id, nodes] : done_) {
    if (erasures_.contains(id)) continue;
    for (const auto& [node, done] : nodes) remove(keys_.erased(id, node));
  }
  return transaction;
}

std::set<std::string> ErasureBook::with_disk() const {
  std::set<std::string> nodes;
  for (const auto& [node, has_disk] : nodes_)
    if (has_disk) nodes.insert(node);
  return nodes;
}

}  // namespace vigil::fleet
