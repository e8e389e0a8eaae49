// What a fleet keeps in its registry, as commands ask for it: one question after the other, each waited for.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/membership/config_agreement.h"
#include "cluster/membership/fleet_keys.h"
#include "cluster/membership/node_record.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// Every call waits for the registry, as long as that may take for an answer; it must not be called on a
/// thread of the registry's. Throws std::runtime_error with the registry's reason when it does not answer or
/// refuses. Not thread-safe.
class FleetStore {
 public:
  FleetStore(std::unique_ptr<Registry> registry, std::string_view fleet)
      : keys_(fleet), registry_(std::move(registry)) {}

  const FleetKeys& keys() const { return keys_; }

  /// The value of one key; nothing if there is no such key.
  std::optional<std::string> value(const std::string& key);
  /// Changes one key, again if another one was quicker; `change` is given what is there, and gives what is to
  /// be there. Throws when others are quicker all the time.
  void change(const std::string& key,
              const std::function<std::string(const std::optional<std::string>&)>& change);

  /// What the fleet runs by, by the registry's own word; and the nodes' records. What cannot be read of these
  /// is left out, and is in `unread`: a line each, with its key.
  std::optional<FleetConfig> config();
  std::map<std::string, NodeRecord> nodes();
  const std::set<std::string>& unread() const { return unread_; }

  /// The text that was put with this content; nothing if there is none (any more), or some of it is missing.
  std::optional<std::string> text(const std::string& hash);
  /// The content whose name begins so; nothing if there is no text of such. Throws when it begins more than
  /// one.
  std::optional<std::string> content_of(const std::string& beginning);
  /// Puts a text, and offers it to the nodes. Returns its content. Forgets texts that no node asks for any
  /// more. Throws, and puts nothing, when it is no configuration.
  std::string put_text(const std::string& text);

  /// What a node begins with: what the fleet runs by or, before it runs by anything, what was offered last.
  struct Beginning {
    /// Empty: there is neither.
    std::string content;
    /// Nothing: the registry does not have it.
    std::optional<std::string> text;
  };
  Beginning beginning();

 private:
  std::vector<RegistryEntry> range(const std::string& prefix);
  std::optional<RegistryEntry> find(const std::string& key);
  bool commit(RegistryTransaction transaction);
  void forget_texts(const std::string& newest);

  const FleetKeys keys_;
  const std::unique_ptr<Registry> registry_;
  std::set<std::string> unread_;
};

}  // namespace vigil::cluster
