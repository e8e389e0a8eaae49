// The replay protocol over real sockets, with whatever comes over the wire.
#include "cluster/topics/replay.h"

#include <random>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq_addon.hpp>

#include "cluster/topics/topics.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FakeSource final : public ReplaySource {
 public:
  ReplayPage replay(const ReplayQuery& query) override {
    if (fails) throw std::runtime_error("the outbox in /secret/place is broken");
    asked = query;
    ++count;
    return page;
  }
  std::optional<ReplayRefusal> refuse(const ReplayQuery& query) const override {
    if (query.from && query.topics.front() != "a/") return ReplayRefusal{"from: expected a topic"};
    return std::nullopt;
  }
  ReplayPage page{"A", {{"a/", 7, std::string("x\0y", 3), 12}, {"b/", 1, "", 13}}, 13, true, 20};
  ReplayQuery asked;
  int count = 0;
  bool fails = false;
};

std::optional<std::variant<ReplayPage, ReplayRefusal>> ask(ReplayServer& server, ReplayClient& client,
                                                           const ReplayQuery& query) {
  for (int i = 0; i < 1000 && !client.ask(query); ++i) std::this_thread::sleep_for(2ms);
  for (int i = 0; i < 1000; ++i) {
    server.serve();
    if (auto answer = client.take_answer()) return answer;
    std::this_thread::sleep_for(2ms);
  }
  return std::nullopt;
}

TEST(Replay, APageComesBackAsItWas) {
  FakeSource source;
  ReplayServer server({.endpoint = "tcp://127.0.0.1:0"}, source);
  ReplayClient client({.endpoint = server.endpoint()});
  ReplayQuery query;
  query.topics = {"a/", ""};
  query.after = std::nullopt;
  query.since_ms = 1785578400000;
  query.limit = 3;
  const auto answer = ask(server, client, query);
  ASSERT_TRUE(answer.has_value());
  const auto& page = std::get<ReplayPage>(*answer);
  EXPECT_EQ(page.outbox, "A");
  EXPECT_EQ(page.cursor, 13U);
  EXPECT_EQ(page.newest, 20U);
  EXPECT_TRUE(page.more);
  ASSERT_EQ(page.events.size(), 2U);
  EXPECT_EQ(page.events[0].body, std::string("x\0y", 3));
  EXPECT_EQ(page.events[0].sequence, 7U);
  EXPECT_EQ(page.events[1].position, 13U);
  EXPECT_THAT(source.asked.topics, ElementsAre("a/", ""));
  EXPECT_EQ(source.asked.after, std::nullopt);
  EXPECT_EQ(source.asked.since_ms, 1785578400000);
  EXPECT_EQ(source.asked.limit, 3U);
}

TEST(Replay, ASourceThatFailsIsARefusalWithoutItsReason) {
  FakeSource source;
  source.fails = true;
  ReplayServer server({.endpoint = "tcp://127.0.0.1:0"}, source);
  ReplayClient client({.endpoint = server.endpoint()});
  ReplayQuery query;
  query.topics = {"a/"};
  const auto answer = ask(server, client, query);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(std::get<ReplayRefusal>(*answer).reason, "the outbox cannot be read now");
}

TEST(Replay, WhatTheSourceRefusesItIsNotAskedFor) {
  FakeSource source;
  ReplayServer server({.endpoint = "tcp://127.0.0.1:0"}, source);
  ReplayClient client({.endpoint = server.endpoint()});
  ReplayQuery query;
  query.topics = {"a"};
  query.from = 1;
  const auto answer = ask(server, client, query);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(std::get<ReplayRefusal>(*answer).reason, "from: expected a topic");
  EXPECT_EQ(source.count, 0);
}

TEST(Replay, AQueryThatIsNoneIsRefusedWithTheReason) {
  const auto refusal = [](const std::string& text) {
    const auto query = parse_query(text);
    const auto* refused = std::get_if<ReplayRefusal>(&query);
    return refused == nullptr ? "accepted" : refused->reason;
  };
  EXPECT_EQ(refusal(R"({"topics": ["alert/"]})"), "accepted");
  EXPECT_EQ(refusal(R"({"topics": ["a/"], "from": 18446744073709551615})"), "accepted");
  EXPECT_THAT(refusal(""), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal("[]"), HasSubstr("expected a JSON object"));
  EXPECT_THAT(refusal(std::string(100'000, '[')), HasSubstr("expected a JSON object"));
  EXPECT_EQ(refusal("{}"), "topics: is missing");
  for (const char* topics : {"[]", "7", "[7]", R"("alert/")", "null"}) {
    EXPECT_EQ(refusal(std::string(R"({"topics": )") + topics + "}"), "topics: expected 1 to 64 texts");
  }
  json many;
  many["topics"] = std::vector<std::string>(65, "a/");
  EXPECT_EQ(refusal(many.dump()), "topics: expected 1 to 64 texts");
  for (const char* after : {"-1", "1.5", "\"soon\"", "18446744073709551616", "null", "[]"}) {
    EXPECT_THAT(refusal(std::string(R"({"topics": ["a"], "after": )") + after + "}"),
                HasSubstr("after: expected"))
        << after;
  }
  EXPECT_THAT(refusal(R"({"topics": ["a"], "since_ms": 9223372036854775807})"),
              HasSubstr("since_ms: expected"));
  EXPECT_THAT(refusal(R"({"topics": ["a"], "limit": 0})"), HasSubstr("limit: expected"));
  EXPECT_THAT(refusal(R"({"topics": ["a", "b"], "from": 1})"), HasSubstr("from: expected a single topic"));
  EXPECT_THAT(refusal(R"({"topics": ["a"], "form": 1})"), HasSubstr("legal keys: topics, after"));
  const auto generous = parse_query(R"({"topics": ["a"], "limit": 100000})");
  EXPECT_EQ(std::get<ReplayQuery>(generous).limit, 256U) << "an answer is bounded";
}

/// A client that sends whatever it likes.
class Stranger {
 public:
  Stranger(const std::string& endpoint, zmq::socket_type type) : socket_(context_, type) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.connect(endpoint);
  }
  void send(const std::vector<std::string>& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      socket_.send(zmq::buffer(parts[i]),
                   i + 1 < parts.size() ? zmq::send_flags::sndmore : zmq::send_flags::none);
    }
  }
  std::vector<std::string> receive(ReplayServer& server) {
    for (int i = 0; i < 2000; ++i) {
      server.serve();
      std::vector<zmq::message_t> parts;
      if (zmq::recv_multipart(socket_, std::back_inserter(parts), zmq::recv_flags::dontwait)) {
        std::vector<std::string> texts;
        for (const zmq::message_t& part : parts) texts.push_back(part.to_string());
        return texts;
      }
      std::this_thread::sleep_for(1ms);
    }
    return {};
  }

 private:
  zmq::context_t context_;
  zmq::socket_t socket_;
};

TEST(Replay, ServesReqSocketsAndGivesTagsBack) {
  FakeSource source;
  ReplayServer server({.endpoint = "tcp://127.0.0.1:0"}, source);
  Stranger client(server.endpoint(), zmq::socket_type::req);
  client.send({"my tag", R"({"topics": ["a/"], "after": 5})"});
  const auto reply = client.receive(server);
  ASSERT_EQ(reply.size(), 10U);
  EXPECT_EQ(reply[0], "my tag");
  EXPECT_EQ(json::parse(reply[1]),
            json::parse(R"({"outbox": "A", "cursor": 13, "more": true, "newest": 20, "events": 2})"));
  EXPECT_THAT(std::vector(reply.begin() + 2, reply.begin() + 6),
              ElementsAre("a/", "7", "12", std::string("x\0y", 3)));
  client.send({"only one part"});
  const auto refusal = client.receive(server);
  ASSERT_EQ(refusal.size(), 2U);
  EXPECT_EQ(json::parse(refusal[1]).at("error").at("type"), "bad_request");
  EXPECT_EQ(json::parse(refusal[1]).at("error").at("message"), "expected two parts: a tag and a query");
}

TEST(Replay, AnswersSomeAtATimeAndEveryClientInTurn) {
  FakeSource source;
  ReplayServer server({.endpoint = "tcp://127.0.0.1:0"}, source);
  Stranger greedy(server.endpoint(), zmq::socket_type::dealer);
  Stranger modest(server.endpoint(), zmq::socket_type::dealer);
  for (int i = 0; i < 500; ++i) greedy.send({"g", R"({"topics": ["greedy/"]})"});
  modest.send({"m", R"({"topics": ["modest/"]})"});
  // Once both are connected and have queries waiting, one call serves both.
  int calls = 0;
  bool served = false;
  while (!served && ++calls < 2000) {
    const int before = source.count;
    server.serve();
    EXPECT_LE(source.count - before, 8);
    served = !modest.receive(server).empty();
  }
  EXPECT_TRUE(served);
  EXPECT_LT(source.count, 500) << "before the greedy one had all of its answers";
}

/// Each answer takes 4 ms of a time that only it moves.
class SlowSource final : public ReplaySource, public base::Clock {
 public:
  ReplayPage replay(const ReplayQuery&) override {
    now_ += 4ms;
    ++count;
    return {"A", {}, 0, false, 0};
  }
  TimePoint now() const override { return now_; }
  WallTime wall() const override { return {}; }
  int count = 0;

 private:
  TimePoint now_{};
};

TEST(Replay, ACallTakesNoLongerThanItsTimeAndOneAnswer) {
  SlowSource source;
  ReplayServer server({.endpoint = "tcp://127.0.0.1:0", .at_once = 5ms, .clock = &source}, source);
  Stranger greedy(server.endpoint(), zmq::socket_type::dealer);
  for (int i = 0; i < 20; ++i) greedy.send({"g", R"({"topics": ["a/"]})"});
  int most = 0;
  while (source.count < 20) {
    const int before = source.count;
    server.serve();
    most = std::max(most, source.count - before);
    std::this_thread::yield();
  }
  EXPECT_LE(most, 2) << "the second began before the 5 ms were over";
}

int connect_to(const std::string& endpoint) {
  const int connection = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::stoi(endpoint.substr(endpoint.rfind(':') + 1))));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return connection;
}

TEST(Replay, RandomBytesChangeNothing) {
  FakeSource source;
  ReplayServer server({.endpoint = "tcp://127.0.0.1:0"}, source);
  TopicPublisher publisher({.endpoint = "tcp://127.0.0.1:0", .linger = 0ms});
  std::mt19937_64 random(7);
  const auto bytes = [&](std::size_t size) {
    std::string text(size, '\0');
    for (char& c : text) c = static_cast<char>(random());
    return text;
  };
  // Below ZeroMQ's framing, with its greeting and without.
  for (int i = 0; i < 40; ++i) {
    for (const std::string& endpoint : {server.endpoint(), publisher.endpoint()}) {
      const int connection = connect_to(endpoint);
      std::string text = bytes(1 + random() % 400);
      if (i % 2 == 0)
        text = std::string("\xff\0\0\0\0\0\0\0\1\x7f\3\0NULL", 16) + std::string(48, '\0') + text;
      EXPECT_EQ(::send(connection, text.data(), text.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(text.size()));
      ::close(connection);
    }
    server.serve();
    publisher.serve();
  }
  // Within it.
  Stranger dealer(server.endpoint(), zmq::socket_type::dealer);
  Stranger subscriber(publisher.endpoint(), zmq::socket_type::xsub);
  for (int i = 0; i < 400; ++i) {
    std::vector<std::string> parts(1 + random() % 5);
    for (std::string& part : parts) part = random() % 4 == 0 ? "" : bytes(random() % 60);
    dealer.send(parts);
    subscriber.send({bytes(random() % 60)});
    server.serve();
    publisher.serve();
  }
  ReplayClient client({.endpoint = server.endpoint()});
  ReplayQuery query;
  query.topics = {"a/"};
  const auto answer = ask(server, client, query);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(std::get<ReplayPage>(*answer).events.size(), 2U);
  EXPECT_TRUE(publisher.publish({"a/", 1, "x", 1}));
}

TEST(Replay, APortInUseIsOneLineWithItsName) {
  FakeSource source;
  ReplayServer first({.endpoint = "tcp://127.0.0.1:0"}, source);
  try {
    ReplayServer second({.endpoint = first.endpoint()}, source);
    FAIL() << "no error";
  } catch (const TopicError& error) {
    EXPECT_EQ(std::string(error.what()), "cannot replay on " + first.endpoint() + ": Address already in use");
  }
}

}  // namespace
}  // namespace vigil::cluster
