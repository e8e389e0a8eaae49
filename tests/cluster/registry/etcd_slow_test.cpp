// The way to etcd is long: a connection and a first answer take more than an attempt has at first.
#include <mutex>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/registry/etcd_registry.h"
#include "tests/cluster/registry/asking.h"
#include "tests/cluster/registry/etcd_server.h"
#include "tests/cluster/registry/slow_proxy.h"

namespace vigil::cluster::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Way {
  const char* name;
  std::size_t endpoints;
  std::chrono::milliseconds delay;
};

/// What a node has with 5 s a call, five times as fast: 0.65 s each way to one server, 0.5 s to each of
/// three. Both take twice to and fro.
class SlowEtcdTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (const std::string why = no_etcd(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(SlowEtcdTest, ItIsFoundAndFoundAgain) {
  EtcdServer server;
  server.wait();
  std::vector<std::unique_ptr<SlowProxy>> proxies;
  std::vector<std::string> endpoints;
  for (std::size_t i = 0; i < GetParam().endpoints; ++i) {
    proxies.push_back(std::make_unique<SlowProxy>(server.endpoint(), GetParam().delay));
    endpoints.push_back(proxies.back()->endpoint());
  }
  std::mutex mutex;
  std::vector<std::string> log;
  EtcdRegistry registry(
      {.endpoints = endpoints, .plain_text = true, .time_limit = 1s, .log = [&](const std::string& line) {
         const std::lock_guard lock(mutex);
         log.push_back(line);
       }});
  Asking ask(registry);
  const Revision first = until_good([&] { return ask.put("a", "1"); }).header.revision;
  Seen seen(registry, "", first);
  seen.until(first);
  server.kill();
  server.start();
  // What a proxy took for a server that is not there yet is closed again.
  const Revision last = until_good([&] { return ask.put("a", "2"); }).header.revision;
  EXPECT_EQ(short_form(seen.until(last)).back(), "a=2");
  const std::lock_guard lock(mutex);
  EXPECT_THAT(log, Contains(AllOf(StartsWith("registry: connected to etcd at "),
                                  HasSubstr(": its first answer took "), HasSubstr(", and should take "))));
}

INSTANTIATE_TEST_SUITE_P(Ways, SlowEtcdTest,
                         ::testing::Values(Way{"OneServer", 1, 130ms}, Way{"ThreeServers", 3, 100ms}),
                         [](const auto& way) { return way.param.name; });

}  // namespace
}  // namespace vigil::cluster::testing
