// What a URL may begin with, as all who ask the table of it see it.
#include "media/schemes.h"

#include <chrono>
#include <cstdlib>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "media/origin.h"
#include "media/server.h"
#include "tests/media/clip.h"
#include "tests/media/test_server.h"

namespace vigil::media {
namespace {

/// The environment names a proxy while it lives. No thread runs that looks.
class Proxy {
 public:
  explicit Proxy(const std::string& host) {
    setenv("http_proxy", ("http://" + host).c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~Proxy() {
    unsetenv("http_proxy");  // NOLINT(concurrency-mt-unsafe)
  }
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
};

TEST(Schemes, AreFoundByNameAndInUrls) {
  for (const Scheme& scheme : schemes()) {
    EXPECT_EQ(find_scheme(scheme.name), &scheme);
    EXPECT_EQ(scheme_of(std::string(scheme.name) + "://h/x"), &scheme);
  }
  for (const char* none : {"", "rtsp", "rtsp:/h", "://h", "RTSP://h", "lavfi://x", "/a/rtsp://h"})
    EXPECT_EQ(scheme_of(none), nullptr) << none;
}

TEST(Schemes, HaveOnePort) {
  for (const Scheme& scheme : schemes()) {
    const std::string url = std::string(scheme.name) + "://h/x";
    EXPECT_EQ(origin_of(url)->port, scheme.port == 0 ? -1 : scheme.port) << url;
    const auto server = server_of(url);
    EXPECT_EQ(server ? server->port : "0", std::to_string(scheme.asked ? scheme.port : 0)) << url;
  }
}

TEST(Schemes, GoThroughAProxyOrAreAsked) {
  for (const Scheme& scheme : schemes()) {
    // Of plain HTTP, FFmpeg asks the proxy for the whole URL.
    if (!scheme.asked || scheme.name == "http") continue;
    const TestServer proxy(http_answers({}));
    const std::string url = std::string(scheme.name) + "://127.0.0.1:1/x";
    const Proxy named(proxy.host());
    ReadOptions options;
    options.open_timeout = std::chrono::seconds(20);
    EXPECT_NE(error_of(url, options), "") << url;
    EXPECT_EQ(proxy.received().find("CONNECT 127.0.0.1:1 ") != std::string::npos, scheme.proxied()) << url;
    EXPECT_EQ(server_of(url).has_value(), !scheme.proxied()) << url;
  }
}

}  // namespace
}  // namespace vigil::media
