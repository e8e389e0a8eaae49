// The client's side: against servers that go, restart, are slow, or speak nonsense.
#include "cluster/asks/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cluster/asks/ask_site.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;

class AskClientTest : public AskSite {};

TEST_F(AskClientTest, ARequestBelongsToAConnectionThatStands) {
  start();
  AskClient nowhere({.endpoint = "ipc:///nowhere/asks", .clock = &clock_});
  EXPECT_EQ(nowhere.ask(question(), 1h), std::nullopt);
  EXPECT_EQ(nowhere.take().has_value(), false);
}

TEST_F(AskClientTest, AServerThatGoesIsToldAndTheNextOneAsked) {
  start();
  const std::string endpoint = server_->endpoint();
  const auto one = client();
  const auto lost = ask(*one, question("lost"));
  ASSERT_TRUE(wait_requests(1));
  server_.reset();
  auto arrival = next(*one);
  EXPECT_EQ(arrival.tag, lost);
  EXPECT_EQ(arrival.reply,
            AskReply(AskRefusal{AskRefusalType::unavailable, "the connection to " + endpoint + " was lost"}));
  EXPECT_EQ(one->ask(question(), 1h), std::nullopt);
  requests_.clear();
  start({}, std::nullopt, endpoint);
  const auto tag = ask(*one, question("again"));
  EXPECT_NE(tag, lost);
  ASSERT_TRUE(wait_requests(1));
  EXPECT_EQ(requests_[0].request, question("again")) << "what was lost is not asked by itself";
  server_->reply(requests_[0].ticket, AskAnswer{"{}"});
  arrival = next(*one);
  EXPECT_EQ(arrival.tag, tag);
  EXPECT_EQ(arrival.reply, AskReply(AskAnswer{"{}"}));
}

TEST_F(AskClientTest, ATimeThatIsOverIsToldAndTheServerHearsOfIt) {
  start();
  const auto one = client();
  const auto tag = ask(*one, question(), 5s);
  ASSERT_TRUE(wait_requests(1));
  clock_.advance(4999ms);
  server_->reply(requests_[0].ticket, AskProgress{"1"});
  EXPECT_EQ(next(*one).reply, AskReply(AskProgress{"1"}));
  EXPECT_FALSE(one->take().has_value());
  clock_.advance(1ms);
  const auto arrival = next(*one);
  EXPECT_EQ(arrival.tag, tag);
  EXPECT_EQ(arrival.reply, AskReply(AskRefusal{AskRefusalType::too_late, "no answer within 5000 ms"}));
  ASSERT_TRUE(eventually([&] { return !given_up_.empty(); }));
  EXPECT_THAT(given_up_, ElementsAre(GivenUpAsk{requests_[0].ticket, AskEnd::cancelled}));
  EXPECT_FALSE(one->take().has_value()) << "what it said of the withdrawal is for nobody";
}

TEST_F(AskClientTest, WhatIsWithdrawnIsNotHeardOfAgain) {
  start();
  const auto one = client();
  const auto withdrawn = ask(*one, question("withdrawn"));
  const auto kept = ask(*one, question("kept"));
  ASSERT_TRUE(wait_requests(2));
  // The answer and the withdrawal pass each other.
  server_->reply(requests_[0].ticket, AskAnswer{"1"});
  one->cancel(withdrawn);
  one->cancel(withdrawn + 100);
  server_->reply(requests_[1].ticket, AskAnswer{"2"});
  const auto arrival = next(*one);
  EXPECT_EQ(arrival.tag, kept);
  EXPECT_EQ(arrival.reply, AskReply(AskAnswer{"2"}));
}

/// A server that says whatever it likes.
class RudeAskServer {
 public:
  RudeAskServer() : socket_(context_, zmq::socket_type::router) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.bind("tcp://127.0.0.1:*");
    endpoint_ = socket_.get(zmq::sockopt::last_endpoint);
  }
  const std::string& endpoint() const { return endpoint_; }

  /// The next request: its client, its tag and its text.
  std::vector<std::string> take() {
    std::vector<zmq::message_t> parts;
    std::vector<std::string> texts;
    if (!zmq::recv_multipart(socket_, std::back_inserter(parts), zmq::recv_flags::dontwait)) return texts;
    for (const zmq::message_t& part : parts) texts.push_back(part.to_string());
    return texts;
  }
  void send(const std::vector<std::string>& parts) {
    std::vector<zmq::const_buffer> buffers;
    for (const std::string& part : parts) buffers.push_back(zmq::buffer(part));
    zmq::send_multipart(socket_, buffers);
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
  std::string endpoint_;
};

TEST_F(AskClientTest, WhatAnswersNothingThatWasAskedIsIgnored) {
  RudeAskServer server;
  AskClient client({.endpoint = server.endpoint(), .clock = &clock_});
  const auto tag = ask(client, question());
  std::vector<std::string> request;
  ASSERT_TRUE(eventually([&] { return !(request = server.take()).empty(); }));
  ASSERT_EQ(request.size(), 3U);
  EXPECT_EQ(request[1], std::to_string(tag));
  EXPECT_EQ(std::get<AskRequest>(parse_request(request[2])), question());
  const std::string header = to_parts(AskAnswer{"{}"})[0];
  const std::string who = request[0];
  const std::vector<std::string> others = {
      "7", "", std::string(31, '1'), "-1", request[1] + " ", "x" + request[1], "0" + request[1], "\xff"};
  for (const std::string& other : others) {
    server.send({who, other, header, "\"another's\""});
  }
  server.send({who, ""});
  server.send({who, request[1], header, "\"mine\""});
  server.send({who, request[1], header, "\"twice\""});
  const auto arrival = next(client);
  EXPECT_EQ(arrival.tag, tag);
  EXPECT_EQ(arrival.reply, AskReply(AskAnswer{"\"mine\""}));
  const auto second = ask(client, question());
  ASSERT_TRUE(eventually([&] { return !(request = server.take()).empty(); }));
  server.send({who, request[1], "nonsense", "{}"});
  const auto nonsense = next(client);
  EXPECT_EQ(nonsense.tag, second) << "a second answer to the first is none";
  EXPECT_EQ(nonsense.reply, AskReply(AskRefusal{AskRefusalType::unavailable,
                                                "what came from " + server.endpoint() + " is no reply"}));
}

TEST_F(AskClientTest, ProgressWithoutEndDoesNotOutlastItsTime) {
  RudeAskServer server;
  AskClient client({.endpoint = server.endpoint(), .clock = &clock_});
  ask(client, question(), 5s);
  std::vector<std::string> request;
  ASSERT_TRUE(eventually([&] { return !(request = server.take()).empty(); }));
  const auto progress = to_parts(AskProgress{"1"});
  for (int i = 0; i < 50; ++i) server.send({request[0], request[1], progress[0], progress[1]});
  EXPECT_EQ(next(client).reply, AskReply(AskProgress{"1"}));
  clock_.advance(5s);
  EXPECT_EQ(next(client).reply, AskReply(AskRefusal{AskRefusalType::too_late, "no answer within 5000 ms"}));
}

TEST_F(AskClientTest, AnEndpointThatMakesNoSenseIsOneLine) {
  try {
    AskClient client({.endpoint = "tcp://"});
    FAIL() << "no error";
  } catch (const AskError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot ask tcp://: Invalid argument");
  }
}

}  // namespace
}  // namespace vigil::cluster
