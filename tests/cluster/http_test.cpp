// The server of metrics and health, asked by its own client and by a client that does not keep to HTTP.
#include "cluster/http.h"

#include <atomic>
#include <stdexcept>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::string at(const HttpServer& server, const std::string& path) {
  return "http://127.0.0.1:" + std::to_string(server.port()) + path;
}

std::string reason_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const HttpError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Http, AnswersEachPathAndKnowsNoOther) {
  std::atomic<int> asked{0};
  const HttpServer server("127.0.0.1:0",
                          {{"/state",
                            [&] {
                              ++asked;
                              return HttpResponse{503, "application/json", "{\"ready\":false}"};
                            }},
                           {"/broken", []() -> HttpResponse { throw std::runtime_error("no idea"); }}});
  const HttpResponse state = http_get(at(server, "/state"), 5s);
  EXPECT_EQ(state.status, 503);
  EXPECT_EQ(state.content_type, "application/json");
  EXPECT_EQ(state.body, "{\"ready\":false}");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(http_get(at(server, "/other"), 5s).status, 404);
  const HttpResponse broken = http_get(at(server, "/broken"), 5s);
  EXPECT_EQ(broken.status, 500);
  EXPECT_EQ(broken.body, "no idea\n");
}

TEST(Http, AnAddressInUseIsNamed) {
  const HttpServer first("127.0.0.1:0", {});
  const std::string listen = "127.0.0.1:" + std::to_string(first.port());
  EXPECT_EQ(reason_of([&] { HttpServer(listen, {}); }),
            "cannot listen on " + listen + ": the address is in use or not this machine's");
}

TEST(Http, RefusesWhatIsNoAddress) {
  for (const char* listen :
       {"", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1"})
    EXPECT_THAT(reason_of([&] { HttpServer(listen, {}); }), HasSubstr("not HOST:PORT")) << listen;
  for (const char* url : {"", "127.0.0.1:80", "https://127.0.0.1/"})
    EXPECT_THAT(reason_of([&] { http_get(url, 1s); }), HasSubstr("not an http:// address")) << url;
}

TEST(Http, AServersAddressMayEndWithSlashes) {
  for (const char* server : {"http://127.0.0.1:9464", "http://127.0.0.1:9464/", "http://127.0.0.1:9464//"})
    EXPECT_EQ(url_of(server, "/status"), "http://127.0.0.1:9464/status") << server;
  EXPECT_EQ(url_of("http://proxy/vigil/", "/status"), "http://proxy/vigil/status");
  EXPECT_EQ(url_of("/", "/status"), "/status");
}

TEST(Http, NobodyThereIsAnError) {
  int port = 0;
  { port = HttpServer("127.0.0.1:0", {}).port(); }
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/";
  EXPECT_THAT(reason_of([&] { http_get(url, 2s); }), HasSubstr(url));
}

// A client that connects and says nothing, or nonsense, must not keep others waiting nor the server from
// ending.
TEST(Http, OutlivesClientsThatDoNotKeepToTheProtocol) {
  const HttpServer server("127.0.0.1:0", {{"/", [] { return HttpResponse{.body = "ok"}; }}});
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(server.port()));
  std::vector<int> sockets;
  for (int i = 0; i < 3; ++i) {
    sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));
    ASSERT_EQ(::connect(sockets.back(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  const std::string nonsense("\x00\xff GET GET\r\n\r\n", 14);
  ASSERT_GT(::send(sockets[0], nonsense.data(), nonsense.size(), MSG_NOSIGNAL), 0);
  EXPECT_EQ(http_get(at(server, "/"), 5s).body, "ok");
  for (const int socket : sockets) ::close(socket);
}

}  // namespace
}  // namespace vigil::cluster
