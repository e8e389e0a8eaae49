// The server of metrics and health, asked by its own client and by clients that do not keep to HTTP.
#include "cluster/http/http.h"

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/tcp.h>
#include <sys/resource.h>

#include "cluster/http/http_client.h"
#include "cluster/process/process.h"
#include "tests/cluster/http/raw_client.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::RawClient;
using ::testing::StartsWith;
using ::testing::ThrowsMessage;

HttpRoute page(std::string path, std::string body) {
  return {.path = std::move(path),
          .handler = [body = std::move(body)](const HttpRequest&) { return HttpResponse{.body = body}; }};
}

HttpRoute probe() {
  HttpRoute route = page("/healthz", "ok\n");
  route.quick = true;
  return route;
}

HttpServer::Options serving(std::vector<HttpRoute> routes, HttpLimits limits = {}) {
  return {.listen = "127.0.0.1:0", .routes = std::move(routes), .limits = limits};
}

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
  std::string logged;
  HttpServer::Options options =
      serving({{.path = "/state",
                .handler =
                    [&](const HttpRequest&) {
                      ++asked;
                      return HttpResponse{503, "application/json", "{\"ready\":false}"};
                    }},
               {.path = "/broken", .handler = [](const HttpRequest&) -> HttpResponse {
                  throw std::runtime_error("/etc/secret: no idea");
                }}});
  options.log = [&](const std::string& line) { logged = line; };
  const HttpServer server(std::move(options));
  const HttpResponse state = http_get(at(server, "/state"), 5s);
  EXPECT_EQ(state.status, 503);
  EXPECT_EQ(state.content_type, "application/json");
  EXPECT_EQ(state.body, "{\"ready\":false}");
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(http_get(at(server, "/other"), 5s).status, 404);
  const HttpResponse broken = http_get(at(server, "/broken"), 5s);
  EXPECT_EQ(broken.status, 500);
  EXPECT_EQ(broken.body, "500 Internal Server Error\n") << "whoever asks may be a stranger";
  EXPECT_EQ(logged, "http: /broken failed: /etc/secret: no idea");
}

TEST(Http, HandlersSeeTheRequest) {
  const HttpServer server(serving(
      {{.method = "POST",
        .path = "/echo",
        .handler =
            [](const HttpRequest& request) {
              return HttpResponse{.body = request.method + '|' + request.path + '|' + request.query + '|' +
                                          std::string(request.header("x-tag")) + '|' + request.body};
            },
        .max_body = 16}}));
  RawClient client(server.port());
  client.send("POST /echo?a=%20b&c HTTP/1.1\r\nHost: h\r\nX-Tag: t\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_THAT(client.answer(), HasSubstr("\r\n\r\nPOST|/echo|a=%20b&c|t|hello"));
  client.send("POST http://h:80/echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.send("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n");
  EXPECT_THAT(client.answer(), HasSubstr("\r\n\r\nPOST|/echo|||abcde"));
  client.send("POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_THAT(client.until("\r\n\r\n"), StartsWith("HTTP/1.1 100 Continue"));
  client.send("ok");
  EXPECT_THAT(client.answer(), HasSubstr("POST|/echo|||ok"));
}

TEST(Http, APathThatEndsWithASlashHasWhatLiesBehindIt) {
  const auto echo = [](const HttpRequest& request) { return HttpResponse{.body = request.path}; };
  const HttpServer server(serving({{.path = "/files/", .handler = echo}, page("/", "root")}));
  EXPECT_EQ(http_get(at(server, "/files/a/b.jpg"), 5s).body, "/files/a/b.jpg");
  EXPECT_EQ(http_get(at(server, "/files/"), 5s).body, "/files/");
  EXPECT_EQ(http_get(at(server, "/files"), 5s).status, 404);
  EXPECT_EQ(http_get(at(server, "/filesystem"), 5s).status, 404);
  EXPECT_EQ(http_get(at(server, "/"), 5s).body, "root");
  EXPECT_EQ(http_get(at(server, "/other"), 5s).status, 404) << "the root has nothing behind it";
}

TEST(Http, WhatWaitsForOthersHoldsUpNobody) {
  std::promise<void> others;
  const std::shared_future<void> waited = others.get_future().share();
  const HttpServer server(serving({{.path = "/slow",
                                    .handler =
                                        [waited](const HttpRequest&) {
                                          waited.wait();
                                          return HttpResponse{.body = "at last"};
                                        },
                                    .slow = true},
                                   page("/state", "ok")}));
  std::vector<std::future<HttpResponse>> slow;
  for (int i = 0; i < 6; ++i)
    slow.push_back(std::async(std::launch::async, [&] { return http_get(at(server, "/slow"), 20s); }));
  EXPECT_EQ(http_get(at(server, "/state"), 5s).body, "ok");
  others.set_value();
  for (auto& each : slow) EXPECT_EQ(each.get().body, "at last");
}

TEST(Http, AnAddressInUseIsNamed) {
  const HttpServer first(serving({}));
  const std::string listen = "127.0.0.1:" + std::to_string(first.port());
  EXPECT_EQ(reason_of([&] { HttpServer({.listen = listen, .routes = {}}); }),
            "cannot listen on " + listen + ": the address is in use or not this machine's");
}

TEST(Http, RefusesWhatIsNoAddress) {
  for (const char* listen :
       {"", "127.0.0.1", ":80", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "127.0.0.1:-1"})
    EXPECT_THAT(reason_of([&] { HttpServer({.listen = listen, .routes = {}}); }), HasSubstr("not HOST:PORT"))
        << listen;
  for (const char* url :
       {"", "127.0.0.1:80", "ftp://127.0.0.1/", "http://", "http://:80/", "http://h /", "http://[]/"})
    EXPECT_THAT([&] { http_get(url, 1s); },
                ThrowsMessage<HttpUrlError>(HasSubstr("not an http:// or https:// address")))
        << url;
  for (const std::string port : {"", "x", "0", "65536", "70000", "123456", "99999999999", "-1", "+1", "8 0"})
    for (const std::string host : {"h", "[::1]"})
      EXPECT_THAT([&] { http_get("http://" + host + ":" + port + "/", 1s); },
                  ThrowsMessage<HttpUrlError>(
                      AnyOf(HasSubstr("a port is a number from 1 to 65535, not '" + port + "'"),
                            HasSubstr("the given text"))))
          << port;
  for (const char* url : {"http://me:hunter2@127.0.0.1/", "http://me:hunter2@127.0.0.1:x/"})
    EXPECT_THAT([&] { http_get(url, 1s); }, ThrowsMessage<HttpUrlError>(Not(HasSubstr("hunter2")))) << url;
}

TEST(Http, ListensOnIpv6) {
  const HttpServer server({.listen = "[::1]:0", .routes = {page("/", "ok")}});
  EXPECT_EQ(http_get("http://[::1]:" + std::to_string(server.port()), 5s).body, "ok");
}

TEST(Http, AServersAddressMayEndWithSlashes) {
  for (const char* server : {"http://127.0.0.1:9464", "http://127.0.0.1:9464/", "http://127.0.0.1:9464//"})
    EXPECT_EQ(url_of(server, "/status"), "http://127.0.0.1:9464/status") << server;
  EXPECT_EQ(url_of("http://proxy/vigil/", "/status"), "http://proxy/vigil/status");
  EXPECT_EQ(url_of("/", "/status"), "/status");
}

TEST(Http, NobodyThereIsAnError) {
  int port = 0;
  { port = HttpServer(serving({})).port(); }
  const std::string url = "http://127.0.0.1:" + std::to_string(port) + "/";
  EXPECT_EQ(reason_of([&] { http_get(url, 2s); }), url + ": Connection refused");
}

TEST(Http, TheClientWaitsNoLongerThanItIsTold) {
  const testing::SilentServer server;
  const std::string url = "http://127.0.0.1:" + std::to_string(server.port()) + "/";
  EXPECT_EQ(reason_of([&] { http_get(url, 50ms); }), url + ": no answer within 50 ms");
}

// A client that connects and says nothing, or nonsense, must not keep others waiting nor the server from
// ending.
TEST(Http, OutlivesClientsThatDoNotKeepToTheProtocol) {
  const HttpServer server(serving({page("/", "ok")}));
  RawClient silent(server.port());
  RawClient gone(server.port());
  gone.close();
  for (const std::string& nonsense :
       {std::string("\x00\xff GET GET\r\n\r\n", 14), std::string("GET\r\n\r\n"),
        std::string("\x16\x03\x01\x02\x00\x01\r\n\r\n"), std::string("PRI * HTTP/2.0\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("GET / HTTP/1.1\r\nHo st: h\r\n\r\n"), std::string("GET / HTTP/1.1\r\n\r\n"),
        std::string("GET relative HTTP/1.1\r\nHost: h\r\n\r\n"),
        std::string("GET http:///x HTTP/1.1\r\nHost: h\r\n\r\n")}) {
    RawClient client(server.port());
    client.send(nonsense);
    EXPECT_THAT(client.rest(), AnyOf(StartsWith("HTTP/1.1 400 "), StartsWith("HTTP/1.0 400 "))) << nonsense;
  }
  EXPECT_EQ(http_get(at(server, "/"), 5s).body, "ok");
}

TEST(Http, KeepsToTheProtocolItself) {
  const HttpServer server(serving({page("/page", "0123456789")}));
  RawClient client(server.port());
  client.send("HEAD /page HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string head = client.until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 10\r\n"));
  EXPECT_THAT(head, HasSubstr("Accept-Ranges: none\r\n"));
  EXPECT_THAT(head, HasSubstr("Cache-Control: no-store\r\n"));
  client.send("DELETE /page HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::string refused = client.answer();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"))
      << "nothing of HEAD's page was left";
  EXPECT_THAT(refused, HasSubstr("Allow: GET, HEAD\r\n"));
  client.send("HEAD /none HTTP/1.1\r\nHost: h\r\n\r\nGET /page HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(client.until("\r\n\r\n"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(client.answer(), HasSubstr("\r\n\r\n0123456789")) << "pipelined";
  client.send("GET /page HTTP/1.0\r\n\r\n");
  const std::string old = client.rest();
  EXPECT_THAT(old, StartsWith("HTTP/1.0 200 OK\r\n"));
  EXPECT_TRUE(old.ends_with("\r\n\r\n0123456789")) << "and then it is closed";
}

TEST(Http, ManyPipelinedRequestsAreAnsweredInTurn) {
  const HttpServer server(serving({page("/a", "<a>"), page("/b", "<b>")}));
  RawClient client(server.port());
  std::string requests;
  for (int i = 0; i < 500; ++i)
    requests += std::string("GET /") + (i % 2 == 0 ? 'a' : 'b') + " HTTP/1.1\r\nHost: h\r\n\r\n";
  std::thread sender([&] { client.send(requests); });
  for (int i = 0; i < 500; ++i) EXPECT_THAT(client.answer(), HasSubstr(i % 2 == 0 ? "<a>" : "<b>")) << i;
  sender.join();
}

TEST(Http, HeadersAndBodiesAreBounded) {
  const HttpServer server(serving({page("/", "ok"),
                                   {.method = "POST",
                                    .path = "/small",
                                    .handler = [](const HttpRequest&) { return HttpResponse{}; },
                                    .max_body = 100}}));
  const auto status_after = [&](const std::string& head, const std::string& endless) {
    RawClient client(server.port());
    client.send(head);
    // Until the server does not take any more: a megabyte would be far beyond every bound.
    for (int i = 0; i < 1000 && client.send(endless); ++i) {
    }
    return client.rest().substr(0, 12);
  };
  const std::string kilobyte(1000, 'x');
  EXPECT_EQ(status_after("GET /", kilobyte), "HTTP/1.1 431");
  EXPECT_EQ(status_after("GET / HTTP/1.1\r\nX: ", kilobyte), "HTTP/1.1 431");
  EXPECT_EQ(status_after("GET / HTTP/1.1\r\n", "X: " + kilobyte + "\r\n"), "HTTP/1.1 431");
  EXPECT_EQ(status_after("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n", kilobyte),
            "HTTP/1.1 413");
  EXPECT_EQ(status_after("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n", kilobyte),
            "HTTP/1.1 405");
  EXPECT_EQ(status_after("GET / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n",
                         "3e8\r\n" + kilobyte + "\r\n"),
            "HTTP/1.1 413");
  EXPECT_EQ(status_after("POST /small HTTP/1.1\r\nHost: h\r\nContent-Length: 101\r\n\r\n", kilobyte),
            "HTTP/1.1 413");
  EXPECT_EQ(
      status_after("POST /small HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n", "5\r\n01234\r\n"),
      "HTTP/1.1 413");
  EXPECT_EQ(status_after(
                "POST /small HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n", ""),
            "HTTP/1.1 413");
}

// Thousands of ranges of one page once made 433 MB of answer.
TEST(Http, ARangeRequestGetsThePageAndNoMore) {
  const HttpServer server(serving({page("/metrics", std::string(100'000, 'm'))}));
  std::string ranges = "0-";
  for (int i = 0; i < 3500; ++i) ranges += ",0-";
  RawClient client(server.port());
  client.send("GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\nRange: bytes=" + ranges + "\r\n\r\n");
  const std::string answer = client.rest();
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 "));
  EXPECT_LT(answer.size(), 101'000U);
  RawClient small(server.port());
  small.send("GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\nRange: bytes=0-1,5-6\r\n\r\n");
  const std::string whole = small.rest();
  EXPECT_THAT(whole, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(whole, HasSubstr("Content-Length: 100000\r\n"));
}

// 8 half-sent requests once held a probe for 10 s, 48 for more than 20.
TEST(Http, HalfSentRequestsHoldUpNobody) {
  const HttpServer server(serving({probe(), page("/metrics", "m")}));
  std::vector<RawClient> slow;
  for (int i = 0; i < 300; ++i) {
    slow.emplace_back(server.port());
    slow.back().send(i % 3 == 0 ? "" : i % 3 == 1 ? "GET /healthz HT" : "GET / HTTP/1.1\r\nHost: h\r\nX");
    if (i != 7 && i != 47 && i != 299) continue;
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(http_get(at(server, "/healthz"), 5s).body, "ok\n") << i;
    EXPECT_EQ(http_get(at(server, "/metrics"), 5s).body, "m") << i;
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s) << i;
  }
}

TEST(Http, AnExpensivePageHoldsUpNoProbeAndIsMadeOnceForAll) {
  std::mutex mutex;
  std::condition_variable changed;
  int made = 0;
  bool free = false;
  HttpRoute expensive{.path = "/metrics", .handler = [&](const HttpRequest&) {
                        std::unique_lock lock(mutex);
                        ++made;
                        changed.notify_all();
                        changed.wait(lock, [&] { return free; });
                        return HttpResponse{.body = "m"};
                      }};
  expensive.shared_for = 1h;
  const HttpServer server(serving({probe(), std::move(expensive)}));
  std::vector<RawClient> scrapers;
  for (int i = 0; i < 100; ++i) {
    scrapers.emplace_back(server.port());
    scrapers.back().send("GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n");
  }
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return made == 1; });
  }
  EXPECT_EQ(http_get(at(server, "/healthz"), 5s).body, "ok\n") << "while the page is being made";
  {
    const std::lock_guard lock(mutex);
    free = true;
    changed.notify_all();
  }
  for (RawClient& scraper : scrapers) EXPECT_THAT(scraper.answer(), HasSubstr("\r\n\r\nm"));
  EXPECT_EQ(http_get(at(server, "/metrics"), 5s).body, "m");
  EXPECT_EQ(made, 1);
}

TEST(Http, EndsWhileRequestsAreUnderWay) {
  std::promise<void> begun;
  std::promise<void> free;
  std::optional<HttpServer> server;
  server.emplace(serving({{.path = "/slow",
                           .handler =
                               [&](const HttpRequest&) {
                                 begun.set_value();
                                 free.get_future().wait();
                                 return HttpResponse{};
                               }},
                          page("/next", "n")}));
  RawClient half(server->port());
  half.send("GET /");
  RawClient slow(server->port());
  slow.send("GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  begun.get_future().wait();
  RawClient behind(server->port());
  behind.send("GET /next HTTP/1.1\r\nHost: h\r\n\r\n");
  std::thread ender([&] { server.reset(); });
  free.set_value();
  ender.join();
  EXPECT_EQ(half.rest(), "");
}

TEST(Http, ASlowRequestAndAnIdleConnectionAreEnded) {
  const HttpServer server(serving({page("/", "ok")}, {.request = 50ms}));
  RawClient silent(server.port());
  EXPECT_EQ(silent.rest(), "");
  RawClient half(server.port());
  half.send("GET / HTTP/1.1\r\n");
  EXPECT_EQ(half.rest(), "");
  const HttpServer patient(serving({page("/", "ok")}, {.idle = 50ms}));
  RawClient idle(patient.port());
  idle.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(idle.rest().ends_with("ok")) << "answered, then closed";
}

TEST(Http, AnAnswerThatIsNotReadIsGivenUp) {
  const HttpServer server(serving({page("/big", std::string(32 << 20, 'b'))}, {.write = 50ms}));
  RawClient deaf(server.port());
  deaf.send("GET /big HTTP/1.1\r\nHost: h\r\n\r\n");
  // It begins to come: the server has the connection.
  ASSERT_THAT(deaf.until("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  // The server's own end is closed when it does not have the connection any more.
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!testing::accepted_sockets(server.port()).empty() && std::chrono::steady_clock::now() < end)
    std::this_thread::yield();
  EXPECT_THAT(testing::accepted_sockets(server.port()), IsEmpty());
}

TEST(Http, ManyReadersOfALargePageShareIt) {
  const HttpServer server(serving({[] {
    HttpRoute route = page("/big", std::string(8 << 20, 'b'));
    route.shared_for = 1h;
    return route;
  }()}));
  EXPECT_EQ(http_get(at(server, "/big"), 5s).body.size(), 8U << 20U);
  const std::uint64_t before = process_memory().most_resident_bytes;
  std::vector<RawClient> deaf;
  for (int i = 0; i < 200; ++i) {
    deaf.emplace_back(server.port());
    deaf.back().send("GET /big HTTP/1.1\r\nHost: h\r\nRange: bytes=0-,0-,0-\r\n\r\n");
    EXPECT_THAT(deaf.back().until("\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  }
  EXPECT_LT(process_memory().most_resident_bytes - before, 64U << 20U) << "of 1.6 GB";
}

TEST(Http, ConnectionsAreBounded) {
  const HttpServer server(serving({probe()}, {.connections = 10, .reserve = 2}));
  std::vector<RawClient> idle;
  for (int i = 0; i < 50; ++i) idle.emplace_back(server.port());
  EXPECT_EQ(http_get(at(server, "/healthz"), 5s).body, "ok\n");
  EXPECT_LE(testing::accepted_sockets(server.port()).size(), 10U);
  EXPECT_EQ(idle.front().rest(), "") << "the oldest had to go";
}

TEST(Http, AnswersAreSentWithoutDelay) {
  const HttpServer server(serving({page("/", "ok")}));
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.answer();
  const std::vector<int> sockets = testing::accepted_sockets(server.port());
  ASSERT_EQ(sockets.size(), 1U);
  int no_delay = 0;
  socklen_t size = sizeof no_delay;
  ASSERT_EQ(::getsockopt(sockets.front(), IPPROTO_TCP, TCP_NODELAY, &no_delay, &size), 0);
  EXPECT_NE(no_delay, 0);
}

/// Lowers the number of descriptors that this process may have to those that it has, and `more`.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    const int next = ::dup(0);
    ::close(next);
    few.rlim_cur = static_cast<rlim_t>(next + more);
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

TEST(Http, GoesOnWhenDescriptorsAreFreeAgain) {
  const HttpServer server(serving({probe()}));
  EXPECT_EQ(http_get(at(server, "/healthz"), 5s).body, "ok\n");
  while (!testing::accepted_sockets(server.port()).empty()) std::this_thread::yield();
  RawClient waits(testing::Unconnected{});
  {
    const FewDescriptors few(0);
    waits.connect(server.port());
    waits.send("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n");
    const double before = process_cpu_seconds();
    EXPECT_FALSE(waits.readable_within(300ms)) << "it was not accepted";
    EXPECT_LT(process_cpu_seconds() - before, 0.15) << "it does not spin";
  }
  EXPECT_THAT(waits.answer(), HasSubstr("ok\n"));
}

}  // namespace
}  // namespace vigil::cluster
