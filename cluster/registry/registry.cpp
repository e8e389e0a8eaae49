#include "cluster/registry/registry.h"

#include <unordered_set>

namespace vigil::cluster {
namespace {

RegistryFailure refused(std::string text) {
  return {RegistryFailure::Kind::refused, "registry: " + std::move(text)};
}

}  // namespace

std::optional<RegistryFailure> why_not(const RegistryTransaction& transaction) {
  if (transaction.conditions.size() > RegistryTransaction::kMost ||
      transaction.changes.size() > RegistryTransaction::kMost)
    return refused("more than " + std::to_string(RegistryTransaction::kMost) +
                   " conditions or changes in a transaction");
  std::size_t bytes = 0;
  for (const RegistryCondition& condition : transaction.conditions) {
    if (condition.key.empty()) return refused("a condition without a key");
    bytes += condition.key.size();
  }
  std::unordered_set<std::string_view> keys;
  for (const RegistryChange& change : transaction.changes) {
    const std::string& key = std::visit([](const auto& of) -> const std::string& { return of.key; }, change);
    if (key.empty()) return refused("a change without a key");
    if (!keys.insert(key).second) return refused("a key is changed twice in a transaction");
    bytes += key.size();
    if (const auto* put = std::get_if<RegistryPut>(&change)) bytes += put->value.size();
  }
  if (bytes > RegistryTransaction::kMostBytes)
    return refused("a transaction of " + std::to_string(bytes) + " bytes; " +
                   std::to_string(RegistryTransaction::kMostBytes) + " at most");
  return std::nullopt;
}

}  // namespace vigil::cluster
