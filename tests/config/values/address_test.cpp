#include "config/values/address.h"

#include <gtest/gtest.h>

namespace vigil::config {
namespace {

TEST(Address, TheEndpointNextToOneHasTheNextPortOrAPathOfItsOwn) {
  EXPECT_EQ(endpoint_next_to("ipc:///run/vigil"), "ipc:///run/vigil.replay");
  EXPECT_EQ(endpoint_next_to("tcp://[::1]:7"), "tcp://[::1]:8");
  EXPECT_EQ(endpoint_next_to("tcp://127.0.0.1:65535"), "") << "there is no next port";
  EXPECT_EQ(endpoint_next_to("nonsense"), "");
}

TEST(Address, APortIsANumberThatCanBeListenedOn) {
  for (const char* port : {"1", "9464", "65535"}) EXPECT_TRUE(is_port(port)) << port;
  for (const char* other : {"", "0", "65536", "-1", "80x", " 80"}) EXPECT_FALSE(is_port(other)) << other;
}

TEST(Address, OnlyThisMachineReachesALoopbackAddress) {
  for (const char* near : {"127.0.0.1:80", "127.1.2.3:80", "localhost:80", "[::1]:80"})
    EXPECT_TRUE(is_loopback_address(near)) << near;
  for (const char* far : {"0.0.0.0:80", "10.0.0.1:80", "[::]:80", "127.example.org:80"})
    EXPECT_FALSE(is_loopback_address(far)) << far;
}

TEST(Address, ThatOfNoInterfaceIsThatOfAll) {
  for (const char* every : {"0.0.0.0:80", "[::]:80", "[0:0::0]:80"})
    EXPECT_TRUE(is_every_address(every)) << every;
  for (const char* one : {"10.0.0.0:80", "[::1]:80", "0.0.0.0.example:80", "localhost:80", ":80", "[]:80"})
    EXPECT_FALSE(is_every_address(one)) << one;
}

}  // namespace
}  // namespace vigil::config
