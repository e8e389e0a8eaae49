// Who asks, and about whose cameras he may: keys of CURVE, and the tenants that each is bound to.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

namespace vigil::cluster {

/// What a request's connection proved.
struct Asker {
  /// The client's public key in Z85; nothing for "local": whoever reaches a server without keys, which is on
  /// this machine, and may do everything.
  std::optional<std::string> key;
  bool operator==(const Asker&) const = default;
};

struct KeyRights {
  bool all_tenants = false;
  std::set<std::string> tenants = {};
  /// Whether it may erase what cameras of these tenants have seen.
  bool erase = false;
  bool operator==(const KeyRights&) const = default;
};

/// By public key. One that is not there may nothing.
using Permissions = std::map<std::string, KeyRights>;

/// What `who` may: everything if he is local. A camera of a tenant that is none of these is to be answered as
/// one that is not there, byte by byte. A pure function.
KeyRights rights_of(const Permissions& permissions, const Asker& who);

}  // namespace vigil::cluster
