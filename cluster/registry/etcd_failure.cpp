#include "cluster/registry/etcd_failure.h"

#include <string_view>

#include "base/one_line.h"

namespace vigil::cluster {
namespace {

using Kind = RegistryFailure::Kind;

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

EtcdVerdict judge(const EtcdStatus& status) {
  switch (status.code) {
    case etcd_code::kCancelled:
    case etcd_code::kUnknown:
    case etcd_code::kDeadlineExceeded:
    case etcd_code::kAborted:
    case etcd_code::kInternal:
    case etcd_code::kUnavailable:
      // gRPC has one number for a server that cannot be reached and for one that is not who it should be.
      if (has(status.text, "handshake failed") || has(status.text, "is not in peer certificate"))
        return {.kind = Kind::refused, .lost = true};
      return {.lost = true, .no_leader = has(status.text, "etcdserver: no leader")};
    case etcd_code::kUnauthenticated:
      return {.kind = Kind::refused, .unknown_user = true};
    case etcd_code::kInvalidArgument:
      // Users were changed since the token was given; users are wanted now.
      return {.kind = Kind::refused,
              .unknown_user = has(status.text, "revision of auth store is old") ||
                              has(status.text, "user name is empty")};
    case etcd_code::kNotFound:
      return {.kind = has(status.text, "lease not found") ? Kind::no_lease : Kind::refused};
    case etcd_code::kResourceExhausted:
      if (has(status.text, "database space exceeded")) return {.kind = Kind::full};
      // It was not looked at, and may be the next time.
      return {.kind = has(status.text, "too many requests") ? Kind::unreachable : Kind::refused};
    default:
      return {.kind = Kind::refused};
  }
}

std::string plain_reason(const std::string& text) {
  std::string_view rest = text;
  for (const std::string_view around : {"failed to connect to all addresses; last error: ", "UNKNOWN: ",
                                        "UNAVAILABLE: ", "INTERNAL: ", "etcdserver: "})
    if (rest.starts_with(around)) rest.remove_prefix(around.size());
  return base::one_line(rest);
}

std::string address_in(const std::string& reason) {
  if (has(reason, "Failed to connect to remote host") || has(reason, "timed out")) return {};
  for (const std::string_view family : {"ipv4:", "ipv6:"}) {
    const std::size_t at = reason.find(family);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + family.size();
    // "ipv6:%5B::1%5D:2379" or "ipv6:[::1]:2379", and then ": ".
    std::string address = reason.substr(begin, reason.find(": ", begin) - begin);
    for (const auto& [escaped, plain] : {std::pair("%5B", "["), std::pair("%5D", "]")})
      if (const std::size_t found = address.find(escaped); found != std::string::npos)
        address.replace(found, 3, plain);
    return address;
  }
  return {};
}

}  // namespace vigil::cluster
