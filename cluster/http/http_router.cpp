#include "cluster/http/http_router.h"

#include <algorithm>
#include <cctype>

namespace vigil::cluster {
namespace {

bool same_letters(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::tolower(x) == std::tolower(y); });
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (same_letters(key, name)) return value;
  return {};
}

std::optional<HttpTarget> parse_target(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!same_letters(target.substr(0, scheme.size()), scheme)) continue;
    const std::size_t path = target.find_first_of("/?", scheme.size());
    if (path == scheme.size()) return std::nullopt;  // no host
    target = path == std::string_view::npos ? "/" : target.substr(path);
    if (target.front() == '?') return HttpTarget{"/", std::string(target.substr(1))};
    break;
  }
  if (!target.starts_with('/')) return std::nullopt;
  const std::size_t query = target.find('?');
  if (query == std::string_view::npos) return HttpTarget{std::string(target), ""};
  return HttpTarget{std::string(target.substr(0, query)), std::string(target.substr(query + 1))};
}

HttpRouter::Match HttpRouter::find(std::string_view method, std::string_view path) const {
  Match match;
  const std::string_view wanted = method == "HEAD" ? "GET" : method;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    const bool has_more = routes_[i].path.size() > 1 && routes_[i].path.ends_with('/');
    if (has_more ? !path.starts_with(routes_[i].path) : routes_[i].path != path) continue;
    if (routes_[i].method == wanted) return {i, 200, ""};
    match.status = 405;
    match.allow += (match.allow.empty() ? "" : ", ") + routes_[i].method;
    if (routes_[i].method == "GET") match.allow += ", HEAD";
  }
  return match;
}

}  // namespace vigil::cluster
