// Questions and their answers over real sockets, and whatever else comes over the wire.
#include "cluster/asks/server.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cluster/asks/ask_site.h"
#include "tests/cluster/sockets/raw_peer.h"
#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class AskServerTest : public AskSite {
 protected:
  static std::string reason(const std::vector<std::string>& reply) {
    if (reply.size() < 2) return "no reply";
    const json header = json::parse(reply.back());
    return header.value("type", "") + ": " + header.value("message", "");
  }
};

TEST_F(AskServerTest, AnswersFindTheirQuestionsInAnyOrder) {
  start();
  const auto one = client();
  const auto other = client();
  const auto first = ask(*one, question("first"));
  const auto second = ask(*one, question("second"));
  ASSERT_TRUE(wait_requests(2));
  const auto third = ask(*other, MemoryErase{.camera = "gate-7", .from_ms = 3, .to_ms = 4});
  ASSERT_TRUE(wait_requests(3));
  EXPECT_EQ(requests_[0].request, question("first"));
  EXPECT_EQ(requests_[2].request, AskRequest(MemoryErase{.camera = "gate-7", .from_ms = 3, .to_ms = 4}));
  EXPECT_EQ(requests_[0].who, Asker{}) << "without keys, it is local";
  EXPECT_EQ(requests_[0].deadline, clock_.now() + 60s);
  EXPECT_TRUE(server_->reply(requests_[2].ticket, AskRefusal{AskRefusalType::unavailable, "no disk"}));
  EXPECT_TRUE(server_->reply(requests_[1].ticket, AskAnswer{R"({"n": 2})"}));
  EXPECT_TRUE(server_->reply(requests_[0].ticket, AskAnswer{R"({"n": 1})"}));
  auto arrival = next(*one);
  EXPECT_EQ(arrival.tag, second);
  EXPECT_EQ(arrival.reply, AskReply(AskAnswer{R"({"n": 2})"}));
  arrival = next(*one);
  EXPECT_EQ(arrival.tag, first);
  EXPECT_EQ(arrival.reply, AskReply(AskAnswer{R"({"n": 1})"}));
  arrival = next(*other);
  EXPECT_EQ(arrival.tag, third);
  EXPECT_EQ(arrival.reply, AskReply(AskRefusal{AskRefusalType::unavailable, "no disk"}));
  EXPECT_FALSE(server_->reply(requests_[0].ticket, AskAnswer{"{}"})) << "it has had its last word";
}

TEST_F(AskServerTest, ProgressComesBeforeTheAnswerAndEndsNothing) {
  start();
  const auto one = client();
  const auto tag = ask(*one, question());
  ASSERT_TRUE(wait_requests(1));
  EXPECT_TRUE(server_->reply(requests_[0].ticket, AskProgress{"1"}));
  EXPECT_EQ(next(*one).reply, AskReply(AskProgress{"1"}));
  EXPECT_TRUE(server_->reply(requests_[0].ticket, AskAnswer{"2"}));
  const auto arrival = next(*one);
  EXPECT_EQ(arrival.tag, tag);
  EXPECT_EQ(arrival.reply, AskReply(AskAnswer{"2"}));
}

TEST_F(AskServerTest, ServesReqSocketsAndGivesTagsBack) {
  start();
  AskStranger stranger(server_->endpoint(), zmq::socket_type::req);
  stranger.send({"my tag", R"({"list": {}})"});
  ASSERT_TRUE(wait_requests(1));
  server_->reply(requests_[0].ticket, AskAnswer{R"({"cameras": []})"});
  const auto reply = next(stranger);
  ASSERT_EQ(reply.size(), 3U);
  EXPECT_EQ(reply[0], "my tag");
  EXPECT_EQ(json::parse(reply[1]), json::parse(R"({"version": 1, "kind": "answer"})"));
  EXPECT_EQ(reply[2], R"({"cameras": []})");
}

TEST_F(AskServerTest, AClientThatGoesIsGivenUpAndCostsNothing) {
  start();
  auto going = client();
  ask(*going, question());
  ASSERT_TRUE(wait_requests(1));
  going.reset();
  ASSERT_TRUE(eventually([&] { return !given_up_.empty(); }));
  EXPECT_THAT(given_up_, ElementsAre(GivenUpAsk{requests_[0].ticket, AskEnd::gone}));
  EXPECT_FALSE(server_->reply(requests_[0].ticket, AskAnswer{"{}"}));
}

TEST_F(AskServerTest, WhatAClientLeftBehindIsNobodysQuestion) {
  start();
  RawPeer there(server_->endpoint());
  ASSERT_TRUE(there.shake_hands("DEALER"));
  {
    RawPeer gone(server_->endpoint());
    ASSERT_TRUE(gone.shake_hands("DEALER"));
    gone.send(zmtp_frame("1", 1) + zmtp_frame(R"({"list": {"camera": "left-behind"}})"));
  }
  ASSERT_TRUE(gate_.wait_open(1));
  // What is said later comes later. Most often ZeroMQ's thread has seen the other go by then; if it has not,
  // what it left is given up as soon as it has.
  there.send(zmtp_frame("1", 1) + zmtp_frame(R"({"list": {"camera": "there"}})"));
  const auto is_there = [](const AskedRequest& each) {
    return each.request == AskRequest(MemoryList{"there"});
  };
  ASSERT_TRUE(eventually([&] {
    return std::any_of(requests_.begin(), requests_.end(), is_there) &&
           requests_.size() == given_up_.size() + 1;
  }));
  for (const GivenUpAsk& each : given_up_) EXPECT_EQ(each.end, AskEnd::gone);
}

TEST_F(AskServerTest, OneThatFloodsIsBusyAndOthersAreServed) {
  start({.of_client = 3, .retry_after = 250ms});
  AskStranger greedy(server_->endpoint());
  for (int i = 0; i < 300; ++i) greedy.send({std::to_string(i), R"({"list": {"camera": "greedy"}})"});
  const auto modest = client();
  ask(*modest, question());
  ASSERT_TRUE(wait_requests(4));
  const auto modests = std::find_if(requests_.begin(), requests_.end(),
                                    [](const AskedRequest& each) { return each.request == question(); });
  ASSERT_NE(modests, requests_.end()) << "three of one client, and the other's";
  server_->reply(modests->ticket, AskAnswer{"{}"});
  EXPECT_EQ(next(*modest).reply, AskReply(AskAnswer{"{}"}));
  const auto refused = next(greedy);
  EXPECT_EQ(reason(refused), "busy: as many requests of this client as may be are under way");
  EXPECT_EQ(json::parse(refused[1]).at("retry_after_ms"), 250);
  EXPECT_EQ(requests_.size(), 4U);
}

TEST_F(AskServerTest, ACallTakesUpSomeAndNotAll) {
  start({.all = 1000, .of_client = 1000});
  std::vector<std::unique_ptr<AskStranger>> strangers;
  for (int i = 0; i < 8; ++i) {
    strangers.push_back(std::make_unique<AskStranger>(server_->endpoint()));
    for (int tag = 0; tag < 10; ++tag) strangers.back()->send({std::to_string(tag), R"({"list": {}})"});
  }
  std::size_t all = 0;
  std::size_t most = 0;
  const auto until = std::chrono::steady_clock::now() + kLongest;
  while (all < 80 && std::chrono::steady_clock::now() < until) {
    server_->serve();
    const std::size_t taken = server_->take_requests().size();
    all += taken;
    most = std::max(most, taken);
  }
  EXPECT_EQ(all, 80U);
  EXPECT_LE(most, 32U);
}

TEST_F(AskServerTest, ADeadlineIsToldToBothSides) {
  start({.patience = 5s});
  const auto one = client();
  const auto slow = ask(*one, MemoryVerify{});
  const auto fast = ask(*one, MemoryList{});
  ASSERT_TRUE(wait_requests(2));
  clock_.advance(4999ms);
  EXPECT_TRUE(server_->reply(requests_[1].ticket, AskAnswer{"{}"}));
  EXPECT_EQ(next(*one).tag, fast);
  EXPECT_TRUE(given_up_.empty());
  clock_.advance(1ms);
  const auto arrival = next(*one);
  EXPECT_EQ(arrival.tag, slow);
  EXPECT_EQ(arrival.reply, AskReply(AskRefusal{AskRefusalType::too_late, "no answer within 5000 ms"}));
  EXPECT_THAT(given_up_, ElementsAre(GivenUpAsk{requests_[0].ticket, AskEnd::too_late}));
  EXPECT_FALSE(server_->reply(requests_[0].ticket, AskAnswer{"{}"}));
}

TEST_F(AskServerTest, AClientWithdrawsItsRequestAndNoOthers) {
  start();
  AskStranger one(server_->endpoint());
  AskStranger other(server_->endpoint());
  one.send({"a", R"({"list": {}})"});
  ASSERT_TRUE(wait_requests(1));
  other.send({"1", R"({"cancel": "a"})"});
  EXPECT_THAT(next(other), ElementsAre("1", HasSubstr("answer"), R"({"cancelled": false})"));
  EXPECT_TRUE(given_up_.empty());
  one.send({"2", R"({"cancel": "a"})"});
  EXPECT_THAT(next(one), ElementsAre("2", HasSubstr("answer"), R"({"cancelled": true})"));
  EXPECT_THAT(given_up_, ElementsAre(GivenUpAsk{requests_[0].ticket, AskEnd::cancelled}));
  EXPECT_FALSE(server_->reply(requests_[0].ticket, AskAnswer{"{}"}));
}

TEST_F(AskServerTest, WhatIsNoRequestIsRefusedInOneLine) {
  start();
  AskStranger stranger(server_->endpoint());
  const auto refusal = [&](const std::vector<std::string>& parts) {
    stranger.send(parts);
    return reason(next(stranger));
  };
  const std::string list = R"({"list": {}})";
  EXPECT_EQ(refusal({"only one part"}), "bad_request: expected two parts: a tag and a request");
  EXPECT_EQ(refusal({"1", list, ""}), "bad_request: expected two parts: a tag and a request");
  EXPECT_EQ(refusal({"", "", list}), "bad_request: tag: expected 1 to 64 bytes");
  EXPECT_EQ(refusal({std::string(65, 't'), list}), "bad_request: tag: expected 1 to 64 bytes");
  EXPECT_EQ(refusal({"1", R"({"list": 7})"}), "bad_request: list: expected an object");
  EXPECT_EQ(refusal({"1", "\xff\xfe"}).substr(0, 12), "bad_request:");
  stranger.send({std::string("\0\xff", 2), list});
  ASSERT_TRUE(wait_requests(1)) << "a tag may be any bytes";
  server_->reply(requests_[0].ticket, AskAnswer{"{}"});
  EXPECT_EQ(next(stranger)[0], std::string("\0\xff", 2));
  stranger.send({"2", list});
  ASSERT_TRUE(wait_requests(2));
  EXPECT_EQ(refusal({"2", list}), "bad_request: tag: is of a request that is not answered yet");
  EXPECT_EQ(requests_.size(), 2U);
}

// Else whoever takes the name when its owner has gone could be told what the owner asked for.
TEST_F(AskServerTest, ANameThatAClientChoseIsRefused) {
  start();
  AskStranger named(server_->endpoint(), zmq::socket_type::dealer,
                    [](zmq::socket_t& socket) { socket.set(zmq::sockopt::routing_id, "me"); });
  named.send({"1", R"({"list": {}})"});
  EXPECT_EQ(reason(next(named)), "bad_request: the socket's routing id: is the server's to give");
  EXPECT_TRUE(requests_.empty());
}

TEST_F(AskServerTest, TooManyPartsAndTooLargeOnesAreCutOff) {
  start();
  RawPeer large(server_->endpoint());
  ASSERT_TRUE(large.shake_hands("DEALER"));
  large.send(zmtp_frame("1", 1) + zmtp_frame(std::string(kAskRequestBytes + 1, ' ')));
  EXPECT_TRUE(gate_.wait_refused(Refusal::frame_size));
  RawPeer many(server_->endpoint());
  ASSERT_TRUE(many.shake_hands("DEALER"));
  for (int i = 0; i < 9; ++i) many.send(zmtp_frame("x", 1));
  EXPECT_TRUE(gate_.wait_refused(Refusal::message_parts));
  // As large as it may be.
  AskStranger stranger(server_->endpoint());
  stranger.send({"1", R"({"list": {}})" + std::string(kAskRequestBytes - 12, ' ')});
  EXPECT_TRUE(wait_requests(1));
}

TEST_F(AskServerTest, AnAnswerThatIsTooLargeIsToldAsNone) {
  start();
  const auto one = client();
  ask(*one, question());
  ask(*one, question());
  ASSERT_TRUE(wait_requests(2));
  const std::string largest = "\"" + std::string(kAskAnswerBytes - 2, 'a') + "\"";
  EXPECT_TRUE(server_->reply(requests_[0].ticket, AskAnswer{largest}));
  EXPECT_EQ(next(*one).reply, AskReply(AskAnswer{largest}));
  EXPECT_TRUE(server_->reply(requests_[1].ticket, AskAnswer{largest + " "}));
  EXPECT_EQ(next(*one).reply, AskReply(AskRefusal{AskRefusalType::unavailable,
                                                  "the answer has 1048577 bytes; 1048576 may be sent"}));
}

TEST_F(AskServerTest, AnswersWaitForAClientThatDoesNotReadUntilTheirDeadline) {
  start({.of_client = 64});
  AskStranger lazy(server_->endpoint(), zmq::socket_type::dealer,
                   [](zmq::socket_t& socket) { socket.set(zmq::sockopt::rcvhwm, 1); });
  constexpr std::size_t kAll = 40;
  const std::string large = "\"" + std::string(1000 << 10, 'a') + "\"";
  for (std::size_t i = 0; i < kAll; ++i) lazy.send({std::to_string(i), R"({"list": {}})"});
  ASSERT_TRUE(wait_requests(kAll));
  for (const AskedRequest& each : requests_) EXPECT_TRUE(server_->reply(each.ticket, AskAnswer{large}));
  EXPECT_FALSE(server_->reply(requests_.back().ticket, AskAnswer{"{}"})) << "one that waits is the last word";
  // It is full, and others are served.
  const auto other = client();
  ask(*other, question());
  ASSERT_TRUE(wait_requests(kAll + 1));
  server_->reply(requests_.back().ticket, AskAnswer{"{}"});
  EXPECT_EQ(next(*other).reply, AskReply(AskAnswer{"{}"}));
  // It gets them all when it reads.
  std::set<std::string> tags;
  for (std::size_t i = 0; i < kAll; ++i) tags.insert(next(lazy).at(0));
  EXPECT_EQ(tags.size(), kAll);
  // Or none that is too late.
  requests_.clear();
  for (std::size_t i = 0; i < kAll; ++i) lazy.send({std::to_string(i), R"({"list": {}})"});
  ASSERT_TRUE(wait_requests(kAll));
  for (const AskedRequest& each : requests_) server_->reply(each.ticket, AskAnswer{large});
  clock_.advance(60s);
  server_->serve();
  EXPECT_TRUE(given_up_.empty()) << "they were answered";
  std::size_t read = 0;
  lazy.send({"last", R"({"list": {}})"});
  ASSERT_TRUE(eventually([&] {
    for (; !lazy.take().empty();) ++read;
    return requests_.size() > kAll;
  }));
  server_->reply(requests_.back().ticket, AskAnswer{"{}"});
  while (next(lazy).at(0) != "last") ++read;
  EXPECT_LT(read, kAll);
}

TEST_F(AskServerTest, RandomBytesChangeNothing) {
  start({.all = 1000, .of_client = 1000});
  std::mt19937_64 random(7);
  const auto bytes = [&](std::size_t size) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  // Below ZeroMQ's framing, with its greeting and without.
  for (int i = 0; i < 40; ++i) {
    const RawPeer peer(server_->endpoint());
    peer.send((i % 2 == 0 ? zmtp_greeting() : "") + bytes(1 + random() % 400));
    server_->serve();
  }
  // Within it.
  AskStranger dealer(server_->endpoint());
  for (int i = 0; i < 400; ++i) {
    std::vector<std::string> parts(1 + random() % 5);
    for (std::string& part : parts) part = random() % 4 == 0 ? "" : bytes(random() % 60);
    dealer.send(parts);
    server_->serve();
  }
  const auto one = client();
  ask(*one, question());
  ASSERT_TRUE(wait_requests(1));
  EXPECT_EQ(requests_.size(), 1U);
  server_->reply(requests_[0].ticket, AskAnswer{"{}"});
  EXPECT_EQ(next(*one).reply, AskReply(AskAnswer{"{}"}));
}

TEST_F(AskServerTest, WithoutKeysItStaysOnThisMachine) {
  const auto refusal = [](const std::string& endpoint) {
    try {
      AskServer server({.endpoint = endpoint});
    } catch (const AskError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  for (const char* endpoint : {"tcp://0.0.0.0:0", "tcp://*:0", "tcp://[::]:0"}) {
    EXPECT_EQ(refusal(endpoint),
              "cannot take questions on " + std::string(endpoint) +
                  ": without keys, questions are for this machine alone (loopback or ipc://)");
  }
  EXPECT_EQ(refusal("inproc://asks"), "cannot take questions on inproc://asks: expected tcp:// or ipc://");
  EXPECT_EQ(refusal("tcp://127.0.0.1:x"), "cannot take questions on tcp://127.0.0.1:x: Invalid argument");
  EXPECT_EQ(refusal("tcp://127.0.0.1:0"), "accepted");
  start();
  EXPECT_EQ(refusal(server_->endpoint()),
            "cannot take questions on " + server_->endpoint() + ": Address already in use");
}

TEST_F(AskServerTest, AnswersOverALocalSocketAsWell) {
  const TemporaryFolder folder;
  start({}, std::nullopt, "ipc://" + (folder / "asks"));
  auto one = client();
  ask(*one, question());
  ASSERT_TRUE(wait_requests(1));
  server_->reply(requests_[0].ticket, AskAnswer{"{}"});
  EXPECT_EQ(next(*one).reply, AskReply(AskAnswer{"{}"}));
  ask(*one, question());
  ASSERT_TRUE(wait_requests(2));
  one.reset();
  EXPECT_TRUE(eventually([&] { return !given_up_.empty(); }));
}

}  // namespace
}  // namespace vigil::cluster
