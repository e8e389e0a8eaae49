// Any bytes as what a client of the HTTP server sends, over a real connection: whatever they are, the answers
// are such, and bounded, and the server answers the next client.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cluster/http/http.h"

namespace {

vigil::cluster::HttpServer& server() {
  using namespace vigil::cluster;
  static HttpServer server(
      {.listen = "127.0.0.1:0",
       .routes = {{.path = "/healthz",
                   .handler = [](const HttpRequest&) { return HttpResponse{.body = "ok"}; },
                   .quick = true},
                  {.path = "/metrics",
                   .handler = [](const HttpRequest&) { return HttpResponse{.body = std::string(1000, 'm')}; },
                   .shared_for = std::chrono::hours(1)},
                  {.method = "POST",
                   .path = "/echo",
                   .handler = [](const HttpRequest& request) { return HttpResponse{.body = request.body}; },
                   .max_body = 64}}});
  return server;
}

/// A socket connected to the server; libFuzzer's own timer may interrupt a connect, which says nothing of it.
int connected() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(server().port()));
  for (;;) {
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return socket;
    const int reason = errno;
    ::close(socket);
    if (reason == EINTR) continue;
    std::fprintf(stderr, "http: no connection to the server: %s\n", std::strerror(reason));
    std::abort();
  }
}

/// Closes without waiting: thousands of connections a second would use up the machine's ports, as each would
/// be kept for a minute after an orderly end.
void close_at_once(int socket) {
  const linger at_once{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::close(socket);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const int socket = connected();
  for (std::size_t sent = 0; sent < size;) {
    const ssize_t more = ::send(socket, data + sent, size - sent, MSG_NOSIGNAL);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) break;
    sent += static_cast<std::size_t>(more);
  }
  ::shutdown(socket, SHUT_WR);
  std::string answer;
  char bytes[4096];
  for (ssize_t more = 1; more > 0 || (more < 0 && errno == EINTR);) {
    more = ::recv(socket, bytes, sizeof bytes, 0);
    if (more > 0) answer.append(bytes, static_cast<std::size_t>(more));
  }
  close_at_once(socket);
  if (!answer.empty() && !answer.starts_with("HTTP/1.")) std::abort();
  // The shortest request that is answered with the longest page has about 30 bytes.
  if (answer.size() > 2000 + size / 20 * 1300) std::abort();
  return 0;
}
