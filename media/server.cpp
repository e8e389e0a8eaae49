#include "media/server.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "media/schemes.h"

namespace vigil::media {
namespace {

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && rest == text.data() + text.size() && port >= 1 && port <= 65535;
}

bool has_proxy() {
  // Nobody sets the environment while threads run.
  const char* proxy = std::getenv("http_proxy");  // NOLINT(concurrency-mt-unsafe)
  return proxy != nullptr && *proxy != '\0';
}

/// HOST, HOST:PORT or [ADDRESS]:PORT, as FFmpeg's av_url_split reads it.
bool split(std::string_view authority, const std::string& default_port, Server& server) {
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return false;
    server.host = authority.substr(1, end - 1);
    if (authority.substr(end + 1).starts_with(':')) port = authority.substr(end + 2);
  } else {
    const std::size_t colon = authority.find(':');
    server.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon + 1);
  }
  server.port = port.empty() ? default_port : std::string(port);
  return !server.host.empty() && is_port(server.port);
}

}  // namespace

std::optional<Server> server_of(const std::string& url) {
  const std::string_view whole = url;
  const Scheme* const scheme = scheme_of(whole);
  if (scheme == nullptr || !scheme->asked || (scheme->proxied() && has_proxy())) return std::nullopt;
  if (std::any_of(whole.begin(), whole.end(), [](char c) { return static_cast<unsigned char>(c) <= 0x20; }))
    return std::nullopt;
  const std::string_view rest = whole.substr(scheme->name.size() + 3);
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  std::string_view authority = rest.substr(0, end);
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos)
    authority.remove_prefix(at + 1);
  const std::string_view path = rest.substr(end);
  const std::size_t question = path.find('?');
  const std::string_view query =
      question == std::string_view::npos ? std::string_view() : path.substr(question);
  // FFmpeg is the server then.
  if (query.find("listen") != std::string_view::npos) return std::nullopt;
  Server server;
  if (!split(authority, scheme->port == 0 ? "" : std::to_string(scheme->port), server)) return std::nullopt;
  // RTSP may be told to travel within HTTP.
  if (scheme->kind == Scheme::Kind::rtsp && scheme->tls == Scheme::Tls::none &&
      query.find("http") == std::string_view::npos) {
    const bool is_address = server.host.find(':') != std::string::npos;
    server.greeting = "OPTIONS rtsp://" + (is_address ? '[' + server.host + ']' : server.host) + ':' +
                      server.port + std::string(path) + " RTSP/1.0\r\nCSeq: 1\r\n\r\n";
  }
  return server;
}

}  // namespace vigil::media
