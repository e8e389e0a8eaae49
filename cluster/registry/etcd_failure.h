// What etcd's refusals mean.
#pragma once

#include <string>

#include "cluster/registry/etcd_channel.h"
#include "cluster/registry/registry.h"

namespace vigil::cluster {

/// What to do about a call that failed.
struct EtcdVerdict {
  RegistryFailure::Kind kind = RegistryFailure::Kind::unreachable;
  /// It was not looked at, because the server does not know (any more) who asks.
  bool unknown_user = false;
  /// The server may be gone, or cut off.
  bool lost = false;
  /// The servers have none of them that leads: mostly the others would say the same, until they have elected
  /// one.
  bool no_leader = false;
};

EtcdVerdict judge(const EtcdStatus& status);

/// What was said, without what gRPC and etcd put around it, in one line.
std::string plain_reason(const std::string& text);

/// The address in numbers, with its port, of a server that could be reached and yet was of no use; empty if
/// the reason tells of none.
std::string address_in(const std::string& reason);

}  // namespace vigil::cluster
