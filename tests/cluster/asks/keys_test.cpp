// Who asks, where keys of CURVE say so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/asks/permissions.h"
#include "tests/cluster/asks/ask_site.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using ::testing::ElementsAre;

class AskKeysTest : public AskSite {
 protected:
  void start_with_keys(const AskLimits& limits = {}) {
    start(limits, CurveServer{server_keys_, {north_.public_key, south_.public_key}});
  }
  CurveClient of(const KeyPair& keys) const { return {keys, server_keys_.public_key}; }

  KeyPair server_keys_ = make_key_pair();
  KeyPair north_ = make_key_pair();
  KeyPair south_ = make_key_pair();
  Permissions permissions_ = {{north_.public_key, {.tenants = {"north"}}},
                              {south_.public_key, {.tenants = {"south"}, .erase = true}}};
};

TEST_F(AskKeysTest, ARequestComesWithTheKeyOfItsClientAndItsRights) {
  start_with_keys();
  const auto north = client(of(north_));
  const auto south = client(of(south_));
  ask(*north, question());
  ASSERT_TRUE(wait_requests(1));
  ask(*south, question());
  ASSERT_TRUE(wait_requests(2));
  EXPECT_EQ(requests_[0].who, Asker{north_.public_key});
  EXPECT_EQ(requests_[1].who, Asker{south_.public_key});
  EXPECT_EQ(rights_of(permissions_, requests_[0].who), (KeyRights{.tenants = {"north"}}));
  EXPECT_EQ(rights_of(permissions_, requests_[1].who), (KeyRights{.tenants = {"south"}, .erase = true}));
}

TEST_F(AskKeysTest, AStrangersKeyDoesNotGetIn) {
  start_with_keys();
  const auto stranger = client(of(make_key_pair()));
  ASSERT_TRUE(eventually([&] { return stranger->connection() == ConnectionEvent::refused; }));
  EXPECT_EQ(stranger->ask(question(), 1h), std::nullopt);
  const auto plain = client();
  ASSERT_TRUE(eventually([&] { return plain->connection().has_value(); }));
  EXPECT_NE(plain->connection(), ConnectionEvent::up);
  EXPECT_EQ(plain->ask(question(), 1h), std::nullopt);
  const auto misled = client(CurveClient{north_, make_key_pair().public_key});
  ASSERT_TRUE(eventually([&] { return misled->connection().has_value(); }));
  EXPECT_NE(misled->connection(), ConnectionEvent::up);
  EXPECT_TRUE(requests_.empty());
  // Who is let in is, meanwhile.
  const auto north = client(of(north_));
  ask(*north, question());
  EXPECT_TRUE(wait_requests(1));
}

TEST_F(AskKeysTest, AKeyHasOneShareHoweverOftenItConnects) {
  start_with_keys({.of_client = 1});
  const auto one = client(of(north_));
  const auto other = client(of(north_));
  ask(*one, question());
  ASSERT_TRUE(wait_requests(1));
  ask(*other, question());
  EXPECT_EQ(next(*other).reply,
            AskReply(AskRefusal{AskRefusalType::busy,
                                "as many requests of this client as may be are under way", 1000ms}));
}

TEST_F(AskKeysTest, WhatIsLargestFitsEncryptedAsWell) {
  start_with_keys();
  AskStranger stranger(server_->endpoint(), zmq::socket_type::dealer,
                       [&](zmq::socket_t& socket) { use_curve(socket, of(north_)); });
  stranger.send({"1", R"({"list": {}})" + std::string(kAskRequestBytes - 12, ' ')});
  ASSERT_TRUE(wait_requests(1));
  const auto north = client(of(north_));
  ask(*north, question());
  ASSERT_TRUE(wait_requests(2));
  const std::string largest = "\"" + std::string(kAskAnswerBytes - 2, 'a') + "\"";
  server_->reply(requests_[1].ticket, AskAnswer{largest});
  EXPECT_EQ(next(*north).reply, AskReply(AskAnswer{largest}));
}

TEST_F(AskKeysTest, OffThisMachineWithKeysAlone) {
  start({}, CurveServer{server_keys_, {north_.public_key}}, "tcp://0.0.0.0:0");
  const std::string port = server_->endpoint().substr(server_->endpoint().rfind(':'));
  AskClient north({.endpoint = "tcp://127.0.0.1" + port, .curve = of(north_), .clock = &clock_});
  ask(north, question());
  EXPECT_TRUE(wait_requests(1));
}

// What one key asked for must not be told to another that takes its client's name.
TEST_F(AskKeysTest, AnAnswerGoesToNobodyWhoComesLaterUnderTheSameName) {
  start_with_keys();
  const auto called = [&](const KeyPair& keys) {
    return std::make_unique<AskStranger>(server_->endpoint(), zmq::socket_type::dealer,
                                         [&](zmq::socket_t& socket) {
                                           // As the server's own names begin.
                                           socket.set(zmq::sockopt::routing_id, std::string("\0name", 5));
                                           use_curve(socket, of(keys));
                                         });
  };
  auto north = called(north_);
  north->send({"1", R"({"list": {}})"});
  ASSERT_TRUE(wait_requests(1));
  north.reset();
  const auto south = called(south_);
  south->send({"2", R"({"list": {}})"});
  // It has the name when its own request has come by it, which the former one's end precedes.
  ASSERT_TRUE(wait_requests(2));
  EXPECT_THAT(given_up_, ElementsAre(GivenUpAsk{requests_[0].ticket, AskEnd::gone}));
  EXPECT_FALSE(server_->reply(requests_[0].ticket, AskAnswer{R"("north's")"}));
  server_->reply(requests_[1].ticket, AskAnswer{R"("south's")"});
  EXPECT_THAT(next(*south), ElementsAre("2", ::testing::_, R"("south's")"));
}

}  // namespace
}  // namespace vigil::cluster
