// Servers with several addresses, of which some drop what comes, or refuse it.
#include "media/connect.h"

#include <chrono>
#include <cstring>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/listener.h"

namespace vigil::media {
namespace {

using namespace std::chrono_literals;

class ConnectTest : public testing::Test {
 protected:
  ConnectTest() { refuses_.stop(); }

  /// Tries them in this order; the port that was connected to.
  static int port_of(const std::vector<const Listener*>& servers, std::chrono::milliseconds time = 20s) {
    std::vector<Address> addresses;
    for (const Listener* server : servers) {
      Address& address = addresses.emplace_back();
      std::memcpy(&address.bytes, &server->address(), sizeof server->address());
      address.size = sizeof server->address();
    }
    Interrupt interrupt({});
    interrupt.allow(time);
    const base::Descriptor socket = connected(addresses, interrupt);
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    EXPECT_EQ(getpeername(socket.number(), reinterpret_cast<sockaddr*>(&peer), &size), 0);
    return port_of(peer);
  }
  static int port_of(const sockaddr_in& address) { return ntohs(address.sin_port); }

  const Listener drops_{0};
  const Listener drops_too_{0};
  Listener refuses_;
  const Listener takes_;
  const Listener takes_too_;
};

TEST_F(ConnectTest, AnAddressThatDropsWhatComesDoesNotUseUpTheTimeOfTheOthers) {
  EXPECT_EQ(port_of({&drops_, &takes_}), port_of(takes_.address()));
  EXPECT_EQ(port_of({&drops_, &drops_too_, &takes_}), port_of(takes_.address()));
  EXPECT_EQ(port_of({&drops_, &refuses_, &takes_, &takes_too_}), port_of(takes_.address()));
}

TEST_F(ConnectTest, TheFirstAddressIsTakenIfItAnswers) {
  EXPECT_EQ(port_of({&takes_, &takes_too_}), port_of(takes_.address()));
  EXPECT_EQ(port_of({&takes_, &drops_}), port_of(takes_.address()));
  EXPECT_EQ(port_of({&refuses_, &takes_, &drops_}), port_of(takes_.address()));
}

TEST_F(ConnectTest, WhereNoneAnswersTheReasonIsThatOfTheLast) {
  const auto reason = [](const std::vector<const Listener*>& servers, std::chrono::milliseconds time) {
    try {
      port_of(servers, time);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(reason({&refuses_}, 20s), "Connection refused");
  EXPECT_EQ(reason({&refuses_, &refuses_}, 20s), "Connection refused");
  EXPECT_EQ(reason({&drops_}, 100ms), "no connection in time");
  EXPECT_EQ(reason({&drops_, &refuses_}, 600ms), "no connection in time");
}

}  // namespace
}  // namespace vigil::media
