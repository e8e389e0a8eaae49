#include "cluster/membership/fleet_store.h"

#include <algorithm>
#include <future>
#include <stdexcept>
#include <utility>
#include <variant>

#include "cluster/membership/config_texts.h"
#include "config/file/fleet.h"

namespace vigil::cluster {
namespace {

constexpr int kAttempts = 20;
/// Of configurations that the fleet has left, how many a node may still ask for.
constexpr std::size_t kBefore = 8;

/// Calls, and waits for the answer, which comes within the registry's time.
template <class T, class Call>
T answer(Call&& call) {
  const auto promise = std::make_shared<std::promise<RegistryResult<T>>>();
  auto future = promise->get_future();
  call([promise](RegistryResult<T> result) { promise->set_value(std::move(result)); });
  auto result = future.get();
  if (const auto* failure = std::get_if<RegistryFailure>(&result)) throw std::runtime_error(failure->text);
  return std::get<T>(std::move(result));
}

}  // namespace

std::vector<RegistryEntry> FleetStore::range(const std::string& prefix) {
  return answer<RegistryRange>([&](auto done) { registry_->range(prefix, std::move(done)); }).entries;
}

std::optional<RegistryEntry> FleetStore::find(const std::string& key) {
  for (RegistryEntry& entry : range(key))
    if (entry.key == key) return std::move(entry);
  return std::nullopt;
}

/// Whether its conditions held.
bool FleetStore::commit(RegistryTransaction transaction) {
  return answer<RegistryCommit>(
             [&](auto done) { registry_->commit(std::move(transaction), std::move(done)); })
      .made;
}

std::optional<std::string> FleetStore::value(const std::string& key) {
  auto entry = find(key);
  return entry ? std::optional(std::move(entry->value)) : std::nullopt;
}

void FleetStore::change(const std::string& key,
                        const std::function<std::string(const std::optional<std::string>&)>& change) {
  for (int i = 0; i < kAttempts; ++i) {
    const auto there = find(key);
    std::string value = change(there ? std::optional(there->value) : std::nullopt);
    if (there && there->value == value) return;
    if (commit({.conditions = {{key, there ? there->modified : 0}},
                .changes = {RegistryPut{key, std::move(value)}}}))
      return;
  }
  throw std::runtime_error("the registry: others change " + key + " all the time");
}

std::optional<FleetConfig> FleetStore::config() {
  const auto entry = find(keys_.config());
  if (!entry) return std::nullopt;
  try {
    return parse_config(entry->value);
  } catch (const std::exception& error) {
    // As nodes do, who write it anew once all of them agree.
    unread_.insert(entry->key + ": " + error.what());
    return std::nullopt;
  }
}

std::map<std::string, NodeRecord> FleetStore::nodes() {
  std::map<std::string, NodeRecord> nodes;
  for (const RegistryEntry& entry : range(keys_.nodes())) {
    try {
      NodeRecord record = parse_node(entry.value);
      std::string name = record.name;
      nodes.emplace(std::move(name), std::move(record));
    } catch (const std::exception& error) {
      unread_.insert(entry.key + ": " + error.what());
    }
  }
  return nodes;
}

std::optional<std::string> FleetStore::text(const std::string& hash) {
  return whole_text(range(keys_.config_text(hash)), keys_.config_text(hash));
}

std::optional<std::string> FleetStore::content_of(const std::string& beginning) {
  const std::string texts = keys_.config_texts();
  std::optional<std::string> found;
  for (const RegistryEntry& entry : range(texts + beginning)) {
    const std::string each = entry.key.substr(texts.size(), entry.key.find('/', texts.size()) - texts.size());
    if (found && *found != each) throw std::runtime_error(beginning + " begins more than one");
    found = each;
  }
  return found;
}

std::string FleetStore::put_text(const std::string& text) {
  const std::string hash = content_hash(config::fleet_part(text));
  const std::string prefix = keys_.config_text(hash);
  const std::vector<std::string> parts = parts_of(text);
  std::set<std::string> written;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string key = part_key(prefix, i, parts.size());
    commit({.conditions = {}, .changes = {RegistryPut{key, parts[i]}}});
    written.insert(key);
  }
  // Of a text of the same content that was longer, or shorter.
  for (const RegistryEntry& entry : range(prefix))
    if (!written.contains(entry.key)) commit({.conditions = {}, .changes = {RegistryDelete{entry.key}}});
  change(keys_.config_offer(), [&](const auto&) { return hash; });
  forget_texts(hash);
  return hash;
}

/// But for those that a node may still ask for.
void FleetStore::forget_texts(const std::string& newest) {
  std::set<std::string> kept = {newest};
  const std::size_t unread = unread_.size();
  if (const auto now = config()) {
    kept.insert(now->hash);
    for (std::size_t i = 0; i < std::min(kBefore, now->before.size()); ++i) kept.insert(now->before[i]);
  }
  // Which those are, nobody can say then.
  if (unread_.size() > unread) return;
  for (const RegistryEntry& entry : range(keys_.config_texts())) {
    const std::string rest = entry.key.substr(keys_.config_texts().size());
    if (!kept.contains(rest.substr(0, rest.find('/'))))
      commit({.conditions = {}, .changes = {RegistryDelete{entry.key}}});
  }
}

FleetStore::Beginning FleetStore::beginning() {
  Beginning found;
  if (const auto now = config()) {
    found.content = now->hash;
  } else {
    found.content = value(keys_.config_offer()).value_or("");
  }
  if (!found.content.empty()) found.text = text(found.content);
  return found;
}

}  // namespace vigil::cluster
