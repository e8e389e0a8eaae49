// What etcd's refusals mean.
#include "cluster/registry/etcd_failure.h"

#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using Kind = RegistryFailure::Kind;

TEST(EtcdFailureTest, WhatIsNotKnownToBeUndoneIsUnreachable) {
  for (const int code : {1, 2, 4, 10, 13, 14}) {
    const EtcdVerdict verdict = judge({code, "anything"});
    EXPECT_EQ(verdict.kind, Kind::unreachable) << code;
    EXPECT_TRUE(verdict.lost) << code;
  }
  EXPECT_EQ(judge({8, "etcdserver: too many requests"}).kind, Kind::unreachable);
  EXPECT_FALSE(judge({14, "etcdserver: leader changed"}).no_leader);
  EXPECT_TRUE(judge({14, "etcdserver: no leader"}).no_leader);
  EXPECT_TRUE(judge({14, "etcdserver: no leader"}).lost) << "it may be the only one";
}

TEST(EtcdFailureTest, RefusalsHaveTheirKinds) {
  EXPECT_EQ(judge({5, "etcdserver: requested lease not found"}).kind, Kind::no_lease);
  EXPECT_EQ(judge({5, "etcdserver: something else not found"}).kind, Kind::refused);
  EXPECT_EQ(judge({8, "etcdserver: mvcc: database space exceeded"}).kind, Kind::full);
  EXPECT_EQ(judge({8, "Received message larger than max"}).kind, Kind::refused);
  EXPECT_EQ(judge({7, "etcdserver: permission denied"}).kind, Kind::refused);
  EXPECT_EQ(judge({12, "unknown service"}).kind, Kind::refused);
  EXPECT_TRUE(judge({16, "etcdserver: invalid auth token"}).unknown_user);
  EXPECT_TRUE(judge({3, "etcdserver: user name is empty"}).unknown_user);
  EXPECT_FALSE(judge({3, "etcdserver: authentication failed, invalid user ID or password"}).unknown_user);
  const EtcdVerdict tls =
      judge({14, "UNKNOWN: ipv4:127.0.0.1:1: Ssl handshake failed: certificate verify failed"});
  EXPECT_EQ(tls.kind, Kind::refused);
  EXPECT_TRUE(tls.lost);
}

TEST(EtcdFailureTest, AReasonIsOnePlainLine) {
  EXPECT_EQ(
      plain_reason("failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:9: Failed to "
                   "connect to remote host: Connection refused"),
      "ipv4:127.0.0.1:9: Failed to connect to remote host: Connection refused");
  EXPECT_EQ(plain_reason("etcdserver: permission denied"), "permission denied");
  EXPECT_EQ(plain_reason("two\nlines\x1b[31m"), "two?lines?[31m");
  EXPECT_EQ(plain_reason(""), "");
}

TEST(EtcdFailureTest, AddressesAreFoundInReasons) {
  EXPECT_EQ(address_in("UNKNOWN: ipv4:127.0.0.1:42379: Ssl handshake failed: x"), "127.0.0.1:42379");
  EXPECT_EQ(address_in("ipv6:%5B::1%5D:42379: Socket closed"), "[::1]:42379");
  EXPECT_EQ(address_in("ipv6:[::1]:42379: Socket closed"), "[::1]:42379");
  EXPECT_EQ(address_in("ipv4:127.0.0.1:42379"), "127.0.0.1:42379");
  EXPECT_EQ(address_in("DNS resolution failed"), "");
  EXPECT_EQ(address_in("ipv4:127.0.0.1:9: Failed to connect to remote host: Connection refused"), "");
  EXPECT_EQ(address_in("ipv4:127.0.0.1:9: connection attempt timed out before receiving SETTINGS frame"), "");
  EXPECT_EQ(address_in(""), "");
}

}  // namespace
}  // namespace vigil::cluster
