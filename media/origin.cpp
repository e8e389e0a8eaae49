#include "media/origin.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>
#include <utility>

#include "media/ffmpeg.h"
#include "media/schemes.h"

namespace vigil::media {
namespace {

constexpr std::string_view kSchemeEnd = "://";

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

int usual_port(std::string_view name) {
  const Scheme* const scheme = find_scheme(name);
  return scheme == nullptr || scheme->port == 0 ? -1 : scheme->port;
}

/// "SCHEME:" in front of anything: a URL of its own, however it goes on.
bool names_a_scheme(std::string_view text) {
  const std::size_t end = text.find_first_of(":/?#");
  return end != std::string_view::npos && end > 0 && text[end] == ':' &&
         std::isalpha(static_cast<unsigned char>(text[0])) != 0;
}

/// Begin and end of what is between "://" and the path.
std::pair<std::size_t, std::size_t> authority_of(std::string_view url) {
  const std::size_t begin = url.find(kSchemeEnd) + kSchemeEnd.size();
  return {begin, std::min(url.find_first_of("/?#", begin), url.size())};
}

std::string user_of(const std::string& url) {
  const auto [begin, end] = authority_of(url);
  const std::size_t at = url.rfind('@', end);
  return at == std::string::npos || at < begin || at >= end ? "" : url.substr(begin, at + 1 - begin);
}

std::string absolute(const std::string& url, const std::string& location) {
  if (names_a_scheme(location)) return location;
  const auto [begin, end] = authority_of(url);
  if (location.starts_with("//")) return url.substr(0, begin - 2) + location;
  if (location.starts_with('/')) return url.substr(0, end) + location;
  const std::size_t path_end = std::min(url.find_first_of("?#", end), url.size());
  if (location.starts_with('?')) return url.substr(0, path_end) + location;
  const std::size_t slash = url.rfind('/', path_end);
  const bool has_path = slash != std::string::npos && slash >= end;
  return url.substr(0, has_path ? slash : end) + '/' + location;
}

}  // namespace

std::optional<Origin> origin_of(const std::string& url) {
  for (const char* wrapper : {"crypto+", "crypto:"}) {
    if (url.starts_with(wrapper)) return origin_of(url.substr(7));
  }
  const std::size_t colon = url.find(kSchemeEnd);
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  std::array<char, 64> scheme{};
  std::array<char, 1024> host{};
  int port = -1;
  av_url_split(scheme.data(), scheme.size(), nullptr, 0, host.data(), host.size(), &port, nullptr, 0,
               url.c_str());
  Origin origin{lower(scheme.data()), lower(host.data()), port};
  if (origin.scheme != lower(url.substr(0, colon)) || origin.host.empty()) return std::nullopt;
  if (origin.port < 0) origin.port = usual_port(origin.scheme);
  return origin;
}

bool same_origin(const std::string& a, const std::string& b) {
  const auto origin = origin_of(a);
  return origin && origin == origin_of(b);
}

std::optional<std::string> redirected(const std::string& url, const std::string& location) {
  const auto from = origin_of(url);
  if (!from || location.empty()) return std::nullopt;
  std::string target = absolute(url, location);
  const auto to = origin_of(target);
  if (!to) return std::nullopt;
  const bool to_https = *from == Origin{"http", to->host, 80} && *to == Origin{"https", from->host, 443};
  if (*to != *from && !to_https) return std::nullopt;
  if (user_of(target).empty()) target.insert(authority_of(target).first, user_of(url));
  return target;
}

std::string with_server(const std::string& url, const std::string& scheme, const std::string& server) {
  return scheme + std::string(kSchemeEnd) + user_of(url) + server + url.substr(authority_of(url).second);
}

}  // namespace vigil::media
