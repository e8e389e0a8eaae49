// Who asks, and about whose cameras he may: keys of CURVE, and the tenants that each is bound to.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "cluster/asks/answer.h"
#include "cluster/asks/request.h"

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
};

/// By public key. One that is not there may nothing.
using Permissions = std::map<std::string, KeyRights>;

enum class Permission : std::uint8_t {
  granted,
  /// It is another tenant's: to be answered as if it were not there.
  hidden,
  /// It is there for the asker, and this he may not do with it.
  forbidden
};

/// Whether `who` may ask about what belongs to `tenant`, or erase it. A pure function.
Permission may(const Permissions& permissions, const Asker& who, const std::string& tenant, bool erase);

/// What a request is refused with before anything is done for it: nothing if its camera is there and the
/// asker may, or if it names none. `tenant`: its camera's; nothing if there is no such camera. A camera of a
/// tenant that is hidden, or that is not the tenant that was asked for, is refused as one that is not there:
/// byte by byte.
std::optional<AskRefusal> refusal_of(const Permissions& permissions, const Asker& who,
                                     const AskRequest& request, const std::optional<std::string>& tenant);

}  // namespace vigil::cluster
