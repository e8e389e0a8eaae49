// etcd's servers die, hang, forget, are full, and know users or do not.
#include "cluster/registry/etcd_registry.h"

#include <csignal>
#include <deque>
#include <filesystem>
#include <latch>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/registry/asking.h"
#include "tests/cluster/registry/etcd_server.h"
#include "tests/cluster/registry/slow_proxy.h"

namespace vigil::cluster::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using Kind = RegistryFailure::Kind;
using std::chrono::steady_clock;

template <class Call>
steady_clock::duration time_of(Call call) {
  const auto begin = steady_clock::now();
  call();
  return steady_clock::now() - begin;
}

std::size_t threads() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<std::size_t>(std::distance(begin(tasks), end(tasks)));
}

class EtcdRegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = no_etcd(); !why.empty()) GTEST_SKIP() << why;
  }
  EtcdRegistry::Options options(std::vector<std::string> endpoints, base::Duration time_limit = 10s) {
    return {.endpoints = std::move(endpoints),
            .plain_text = true,
            .time_limit = time_limit,
            .ping = 500ms,
            .log = [this](const std::string& line) {
              const std::lock_guard lock(mutex_);
              log_.push_back(line);
            }};
  }
  std::vector<std::string> log() {
    const std::lock_guard lock(mutex_);
    return log_;
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> log_;
};

TEST_F(EtcdRegistryTest, OptionsThatAreOfNoUseAreRefused) {
  const auto why_not = [](const EtcdRegistry::Options& options) -> std::string {
    try {
      const EtcdRegistry registry(options);
      return "none";
    } catch (const RegistryError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(why_not({.endpoints = {"h:1"}}), "registry: neither TLS nor plain text in so many words");
  EXPECT_EQ(why_not({.endpoints = {}, .plain_text = true}), "registry: no endpoint");
  for (const std::string endpoint :
       {"host", ":1", "host:", "host:x", "http://host:1", "user:secret@host:1", ""})
    EXPECT_EQ(why_not({.endpoints = {endpoint}, .plain_text = true}), "registry: an endpoint is HOST:PORT");
  EXPECT_EQ(why_not({.endpoints = {"h:1", "[::1]:2"}, .plain_text = true}), "none");
  EXPECT_EQ(why_not({.endpoints = {"h:1"}, .plain_text = true, .user = "u"}),
            "registry: a user and a password come together");
  EXPECT_EQ(why_not({.endpoints = {"h:1"}, .plain_text = true, .time_limit = 0s}),
            "registry: no time for a call");
}

TEST_F(EtcdRegistryTest, WithoutAServerACallHasItsTime) {
  const std::string nobody = "127.0.0.1:" + std::to_string(free_ports(1)[0]);
  EtcdRegistry registry(options({nobody}, 300ms));
  RegistryFailure failure;
  const auto took = time_of([&] { failure = bad(Asking(registry).range("")); });
  EXPECT_GE(took, 290ms);
  EXPECT_LT(took, 2s);
  EXPECT_EQ(failure.kind, Kind::unreachable);
  EXPECT_THAT(failure.text,
              AllOf(StartsWith("registry: etcd at " + nobody + ": "), HasSubstr("Connection refused")));
  EXPECT_THAT(bad(Asking(registry).put("a", "")).text, HasSubstr("Connection refused"));
}

TEST_F(EtcdRegistryTest, AServerThatIsKilledAndStartsAgainIsFoundAgain) {
  EtcdServer server;
  EtcdRegistry registry(options({server.endpoint()}));
  Asking ask(registry);
  const LeaseId lease = good(ask.grant(60s)).id;
  const Revision first = good(ask.put("a", "1", lease)).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  server.kill();
  server.start();
  // The first may be sent before it is known that the connection is none.
  const Revision last = until_good([&] { return ask.put("a", "2"); }).header.revision;
  EXPECT_THAT(short_form(seen.until(last)), ElementsAre("a=1", "a=2"));
  EXPECT_EQ(good(ask.keep_alive(lease)).id, lease);
  EXPECT_EQ(seen.headers().front().history, seen.headers().back().history);
  EXPECT_THAT(log(), Contains("registry: connected to etcd at " + server.endpoint()));
}

TEST_F(EtcdRegistryTest, ACallThatWaitsWhileTheServerStartsIsAnswered) {
  EtcdServer server;
  server.kill();
  EtcdRegistry registry(options({server.endpoint()}));
  std::promise<RegistryResult<RegistryCommit>> promise;
  registry.commit({{}, {RegistryPut{"a", "", 0}}},
                  [&](auto result) { promise.set_value(std::move(result)); });
  server.start();
  EXPECT_TRUE(good(promise.get_future().get()).made);
}

TEST_F(EtcdRegistryTest, AServerThatHangsIsUnreachableUntilItGoesOn) {
  EtcdServer server;
  EtcdRegistry registry(options({server.endpoint()}, 1s));
  Asking ask(registry);
  const Revision first = until_good([&] { return ask.put("a", "1"); }).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  server.signal(SIGSTOP);
  // The first on a connection that was good, the second without one.
  for (int i = 0; i < 2; ++i) {
    RegistryFailure failure;
    const auto took = time_of([&] { failure = bad(ask.put("a", "2")); });
    EXPECT_EQ(failure.kind, Kind::unreachable);
    EXPECT_THAT(failure.text, StartsWith("registry: etcd at " + server.endpoint() + ": "));
    EXPECT_GE(took, 450ms);
    EXPECT_LT(took, 1500ms);
  }
  server.signal(SIGCONT);
  const Revision last = until_good([&] { return ask.put("b", ""); }).header.revision;
  EXPECT_EQ(short_form(seen.until(last)).back(), "b=");
}

TEST_F(EtcdRegistryTest, DestructionIsQuickWhileAServerHangs) {
  EtcdServer server;
  const std::size_t before = threads();
  for (const bool connected : {true, false}) {
    std::optional<EtcdRegistry> registry(options({server.endpoint()}, 1s));
    std::optional<Seen> seen;
    if (connected) {
      const Revision first = until_good([&] { return Asking(*registry).put("a", "1"); }).header.revision;
      seen.emplace(*registry, "", first);
      seen->until(first);
      server.signal(SIGSTOP);
    } else {
      EXPECT_EQ(bad(Asking(*registry).range("")).kind, Kind::unreachable);
    }
    for (int i = 0; i < 100; ++i) {
      registry->range("", [](const auto&) { ADD_FAILURE() << "it goes with the registry"; });
      registry->keep_alive(1, [](const auto&) { ADD_FAILURE() << "it goes with the registry"; });
    }
    EXPECT_LT(time_of([&] { registry.reset(); }), 300ms);
  }
  // gRPC would let an attempt to connect live on for 20 s.
  const auto until = steady_clock::now() + 8s;
  while (threads() > before && steady_clock::now() < until) std::this_thread::sleep_for(10ms);
  EXPECT_LE(threads(), before) << "no thread is left";
}

TEST_F(EtcdRegistryTest, ASilentConnectionIsNoticedWithoutACall) {
  EtcdServer one, other;
  one.wait();
  EtcdRegistry registry(options({one.endpoint(), other.endpoint()}));
  const Revision first = good(Asking(registry).put("a", "1")).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  one.signal(SIGSTOP);
  // Another cluster is what it finds then.
  EXPECT_EQ(seen.failure().kind, Kind::replaced);
}

class EtcdClusterTest : public EtcdRegistryTest {
 protected:
  void SetUp() override {
    EtcdRegistryTest::SetUp();
    if (IsSkipped()) return;
    const std::vector<int> ports = free_ports(6);
    std::string cluster;
    for (std::size_t i = 0; i < 3; ++i)
      cluster += (i == 0 ? "" : ",") + names_[i] + "=http://127.0.0.1:" + std::to_string(ports[3 + i]);
    for (std::size_t i = 0; i < 3; ++i)
      servers_.push_back(std::make_unique<EtcdServer>(EtcdServer::Options{
          .name = names_[i], .port = ports[i], .peer_port = ports[3 + i], .cluster = cluster}));
    for (const auto& server : servers_) server->wait();
  }
  std::vector<std::string> endpoints() const {
    std::vector<std::string> endpoints;
    for (const auto& server : servers_) endpoints.push_back(server->endpoint());
    return endpoints;
  }

  const std::array<std::string, 3> names_ = {"one", "two", "three"};
  std::vector<std::unique_ptr<EtcdServer>> servers_;
};

TEST_F(EtcdClusterTest, OneOfThreeMayBeDead) {
  servers_[0]->kill();
  EtcdRegistry registry(options(endpoints()));
  Asking ask(registry);
  const Revision first = until_good([&] { return ask.put("a", "1"); }).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  servers_[0]->start();
  servers_[0]->wait();
  servers_[1]->kill();
  const RegistryCommit second = until_good([&] { return ask.put("a", "2"); });
  EXPECT_EQ(short_form(seen.until(second.header.revision)).back(), "a=2");
  EXPECT_EQ(second.header.history, 1U);
}

TEST_F(EtcdClusterTest, OneOfThreeMayHang) {
  EtcdRegistry registry(options(endpoints(), 3s));
  Asking ask(registry);
  const LeaseId lease = until_good([&] { return ask.grant(60s); }).id;
  const Revision first = until_good([&] { return ask.put("a", "1", lease); }).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  servers_[0]->signal(SIGSTOP);
  EXPECT_EQ(good(ask.range("a")).entries.size(), 1U) << "asked of the next within the time of the call";
  EXPECT_EQ(until_good([&] { return ask.keep_alive(lease); }).id, lease);
  const Revision last = until_good([&] { return ask.put("a", "2"); }).header.revision;
  EXPECT_EQ(short_form(seen.until(last)).back(), "a=2");
}

TEST_F(EtcdClusterTest, WithoutMostOfThemNobodyAnswersAndAWatchGoesOnLater) {
  EtcdRegistry registry(options(endpoints(), 1500ms));
  Asking ask(registry);
  const Revision first = until_good([&] { return ask.put("a", "1"); }).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  servers_[1]->kill();
  servers_[2]->kill();
  EXPECT_EQ(bad(ask.put("a", "2")).kind, Kind::unreachable);
  EXPECT_EQ(bad(ask.range("")).kind, Kind::unreachable);
  servers_[1]->start();
  const Revision last = until_good([&] { return ask.put("b", "3"); }).header.revision;
  EXPECT_EQ(short_form(seen.until(last)).back(), "b=3");
}

// A city's clients would ask each of the servers, again and again, while these elect one.
TEST_F(EtcdClusterTest, AServerThatKnowsNoLeaderSpeaksForAllOfThem) {
  std::deque<SlowProxy> ways;
  for (int i = 0; i < 3; ++i) ways.emplace_back(servers_[0]->endpoint(), 0ms);
  EtcdRegistry registry(options({ways[0].endpoint(), ways[1].endpoint(), ways[2].endpoint()}, 3s));
  Asking ask(registry);
  until_good([&] { return ask.put("a", "1"); });
  servers_[1]->kill();
  servers_[2]->kill();
  const auto connections = [&] {
    return ways[0].connections() + ways[1].connections() + ways[2].connections();
  };
  // Also when it has long known so.
  for (int i = 0; i < 2; ++i) {
    const std::size_t before = connections();
    EXPECT_EQ(bad(ask.put("a", "2")).kind, Kind::unreachable);
    EXPECT_LE(connections() - before, 5U) << "in the three seconds of the call";
  }
}

TEST_F(EtcdRegistryTest, WhatWasForgottenWhileTheConnectionWasBrokenEndsAWatch) {
  EtcdServer server;
  EtcdRegistry registry(options({server.endpoint()}, 1s));
  Asking ask(registry);
  const Revision first = until_good([&] { return ask.put("a", "1"); }).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  // Others go on while this one does not hear of it: the server listens elsewhere.
  server.kill();
  server.move();
  server.start();
  server.wait();
  for (int i = 0; i < 3; ++i) server.ctl("put a " + std::to_string(i));
  server.ctl("compact " + std::to_string(first + 2));
  server.kill();
  server.move();
  server.start();
  EXPECT_EQ(seen.failure().kind, Kind::compacted);
  EXPECT_THAT(seen.failure().text, HasSubstr("revision " + std::to_string(first + 1) + " is forgotten"));
  EXPECT_EQ(seen.so_far().size(), 1U);
}

TEST_F(EtcdRegistryTest, AFullOneTakesNoChange) {
  EtcdServer server({.more = {"--quota-backend-bytes", "1048576"}});
  EtcdRegistry registry(options({server.endpoint()}));
  Asking ask(registry);
  RegistryResult<RegistryCommit> put;
  for (int i = 0; i < 100; ++i) {
    put = ask.put("key" + std::to_string(i), std::string(100'000, 'x'));
    if (std::holds_alternative<RegistryFailure>(put)) break;
  }
  EXPECT_EQ(bad(put).kind, Kind::full);
  EXPECT_EQ(bad(put).text, "registry: etcd at " + server.endpoint() + ": mvcc: database space exceeded");
  EXPECT_FALSE(good(ask.range("")).entries.empty());
  EXPECT_EQ(bad(ask.put("a", "")).kind, Kind::full);
}

TEST_F(EtcdRegistryTest, ManyLargeValuesComeAtOnce) {
  EtcdServer server;
  EtcdRegistry registry(options({server.endpoint()}));
  Asking ask(registry);
  const std::string value(500'000, 'x');
  Revision last = 0;
  for (int i = 0; i < 20; ++i) last = good(ask.put("k" + std::to_string(i), value)).header.revision;
  EXPECT_EQ(good(ask.range("k")).entries.size(), 20U) << "10 MB; gRPC would stop at 4";
  EXPECT_EQ(Seen(registry, "k", 1).until(last).size(), 20U);
}

class EtcdUsersTest : public EtcdRegistryTest {
 protected:
  static constexpr const char* kPassword = "s3cret-word";

  void enable_users(const EtcdServer& server) {
    server.wait();
    server.ctl("user add root:root");
    server.ctl("user grant-role root root");
    server.ctl(std::string("user add vigil:") + kPassword);
    server.ctl("role add fleet");
    server.ctl("role grant-permission fleet readwrite --prefix /vigil/");
    server.ctl("user grant-role vigil fleet");
    const std::string said = server.ctl("auth enable");
    ASSERT_THAT(said, HasSubstr("Authentication Enabled"));
  }
  EtcdRegistry::Options of_user(const EtcdServer& server, const std::string& password = kPassword) {
    EtcdRegistry::Options with = options({server.endpoint()}, 3s);
    with.user = "vigil";
    with.password = password;
    return with;
  }
};

TEST_F(EtcdUsersTest, AUserHasItsRightsAndNoMore) {
  EtcdServer server;
  enable_users(server);
  EtcdRegistry registry(of_user(server));
  Asking ask(registry);
  const Revision first = good(ask.put("/vigil/a", "1")).header.revision;
  EXPECT_EQ(good(ask.range("/vigil/")).entries.size(), 1U);
  Seen seen(registry, "/vigil/", first);
  EXPECT_THAT(short_form(seen.until(first)), ElementsAre("/vigil/a=1"));
  const RegistryFailure refused = bad(ask.put("/other", ""));
  EXPECT_EQ(refused.kind, Kind::refused);
  EXPECT_EQ(refused.text, "registry: etcd at " + server.endpoint() + ": permission denied");
  EXPECT_EQ(bad(ask.range("")).kind, Kind::refused);
  const RegistryFailure blind = Seen(registry, "/", 1).failure();
  EXPECT_EQ(blind.kind, Kind::refused);
  EXPECT_THAT(blind.text, HasSubstr("permission denied"));
}

TEST_F(EtcdUsersTest, AWrongPasswordIsRefusedAtOnceAndNotShown) {
  EtcdServer server;
  enable_users(server);
  EtcdRegistry registry(of_user(server, "wr0ng-word"));
  RegistryFailure failure;
  EXPECT_LT(time_of([&] { failure = bad(Asking(registry).put("/vigil/a", "")); }), 2500ms);
  EXPECT_EQ(failure.kind, Kind::refused);
  EXPECT_EQ(failure.text, "registry: etcd at " + server.endpoint() +
                              ": authentication failed, invalid user ID or password");
  EtcdRegistry unlucky(of_user(server, "invalid"));
  EXPECT_THAT(bad(Asking(unlucky).put("/vigil/a", "")).text, HasSubstr("failed, *** user ID or password"));
  EtcdRegistry nameless(options({server.endpoint()}, 3s));
  EXPECT_THAT(bad(Asking(nameless).range("/vigil/")).text, HasSubstr("user name is empty"));
  for (const std::string& line : log()) EXPECT_THAT(line, Not(HasSubstr("wr0ng")));
}

TEST_F(EtcdUsersTest, ATokenThatIsKnownNoMoreIsRenewed) {
  EtcdServer server;
  enable_users(server);
  EtcdRegistry registry(of_user(server));
  Asking ask(registry);
  const Revision first = good(ask.put("/vigil/a", "1")).header.revision;
  server.ctl("--user root:root user add somebody:else");
  EXPECT_TRUE(good(ask.put("/vigil/a", "2")).made) << "the users are others than when the token was given";
  // That forgets all tokens, as their end does.
  const auto forget = [&] {
    server.ctl("--user root:root auth disable");
    ASSERT_THAT(server.ctl("auth enable"), HasSubstr("Authentication Enabled"));
  };
  forget();
  EXPECT_TRUE(good(ask.put("/vigil/a", "3")).made);
  forget();
  Seen seen(registry, "/vigil/", first);
  EXPECT_EQ(seen.until(first + 2).size(), 3U);
  for (const std::string& line : log()) ADD_FAILURE() << "the connection was not lost: " << line;
}

TEST_F(EtcdUsersTest, UsersMayBeEnabledLater) {
  EtcdServer server;
  EtcdRegistry registry(of_user(server));
  Asking ask(registry);
  EXPECT_TRUE(good(ask.put("/vigil/a", "1")).made) << "a server without users takes everybody";
  enable_users(server);
  EXPECT_TRUE(good(ask.put("/vigil/a", "2")).made);
  EXPECT_EQ(bad(ask.put("/other", "")).kind, Kind::refused);
}

}  // namespace
}  // namespace vigil::cluster::testing
