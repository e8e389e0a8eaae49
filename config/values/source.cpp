#include "config/values/source.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "config/values/masked_text.h"
#include "config/values/meant_name.h"

namespace vigil::config {
namespace {

/// A host stands behind these. `media/` opens these and no others, of which a test sees to it.
constexpr std::array<std::string_view, 11> kNetwork = {"rtsp", "rtsps", "http", "https", "rtmp", "rtmps",
                                                       "srt",  "udp",   "rtp",  "tcp",   "tls"};
constexpr std::array<std::string_view, 3> kLocal = {"file", "v4l2", "video4linux2"};

template <class Names>
bool is_one_of(std::string_view text, const Names& names) {
  return std::find(names.begin(), names.end(), text) != names.end();
}

/// Whether a host and maybe a port stand at the beginning. A password that is pasted with an '@' missing is
/// taken for a port.
std::optional<std::string> host_fault(std::string_view text) {
  const std::string_view host = text.substr(0, text.find_first_of("/?#"));
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.find(':', bracket == host.npos ? 0 : bracket);
  if (colon == 0 || host.empty()) return "expected a host behind `://`";
  if (colon == host.npos || colon + 1 == host.size()) return std::nullopt;
  const std::string_view port = host.substr(colon + 1);
  // As it is shown: a variable stands there.
  if (port == "***") return std::nullopt;
  unsigned number = 0;
  const auto [rest, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || rest != port.data() + port.size() || number < 1 || number > 65535) {
    return "expected a port from 1 to 65535 behind the host";
  }
  return std::nullopt;
}

/// Whether a password ends the host too early for who reads the URL by the standard: of
/// "rtsp://viewer:a/b@host" the host is "viewer", and the port "a".
bool has_raw_delimiter(std::string_view source) {
  if (!has_credentials(source)) return false;
  std::string_view authority = source.substr(source.find("://") + 3);
  const std::size_t end = authority.find_first_of("/?#");
  // Nothing ends the host before the last '@'.
  if (end == authority.npos || authority.find('@', end) == authority.npos) return false;
  authority = authority.substr(0, end);
  const std::size_t user = authority.rfind('@');
  return host_fault(user == authority.npos ? authority : authority.substr(user + 1)).has_value();
}

/// Whether a host and a port, or an address, stand at the beginning, as in a URL without its scheme, or a
/// scheme without all of its "://".
bool looks_like_url(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of("/?#"), text.size());
  const std::string_view first = text.substr(0, end);
  const std::size_t colon = first.rfind(':');
  if (colon != first.npos && colon + 1 == first.size())
    return is_one_of(first.substr(0, colon), kNetwork) || is_one_of(first.substr(0, colon), kLocal);
  const std::string_view host = first.substr(0, colon);
  const bool dotted = host.find('.') != host.npos;
  const bool address = dotted && std::count(host.begin(), host.end(), '.') == 3 &&
                       host.find_first_not_of("0123456789.") == host.npos;
  if (colon == first.npos) return address;
  const std::string_view port = first.substr(colon + 1);
  const bool digits = port.size() <= 5 && port.find_first_not_of("0123456789") == port.npos;
  // "12:30.mp4" and "gate:1" are files.
  return digits && !host.empty() &&
         (dotted || host == "localhost" || host.back() == ']' || end < text.size());
}

/// Whether a path, whatever its characters: /NAME, ./NAME or ../NAME.
bool is_certainly_a_path(std::string_view text) {
  if (text.starts_with("//")) return false;
  if (text.starts_with("./") || text.starts_with("../")) return true;
  if (!text.starts_with('/')) return false;
  // A user and a password hardly begin with it, but for who lost the rest of "rtsp://".
  const std::string_view first = text.substr(1, text.find('/', 1) - 1);
  return first.find('@') == first.npos || first.find(':') == first.npos;
}

}  // namespace

std::span<const std::string_view> network_schemes() {
  return kNetwork;
}

std::span<const std::string_view> local_schemes() {
  return kLocal;
}

std::optional<std::string> source_fault(std::string_view source) {
  if (source.find_first_not_of(" \t\r\n") == source.npos) return "expected a file or a URL";
  if (source.find('\0') != source.npos) return "expected a file or a URL, without a NUL in it";
  if (!has_scheme(source)) {
    if (is_certainly_a_path(source)) return std::nullopt;
    if (looks_like_url(source)) {
      return "expected a URL with its scheme, such as rtsp://, since a host or a scheme stands at the "
             "beginning; a file of such a name is written ./NAME";
    }
    if (source.find('@') == source.npos && source.find("://") == source.npos) return std::nullopt;
    return "expected a URL with its scheme, such as rtsp://, since there is an `@` or `://`; a file of "
           "such a name is written ./NAME";
  }
  const std::string_view scheme = source.substr(0, source.find("://"));
  if (is_one_of(scheme, kLocal)) return std::nullopt;
  if (!is_one_of(scheme, kNetwork)) {
    std::string lower(scheme);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto meant = meant_name(lower, kNetwork);
    std::string known;
    for (const std::string_view name : kNetwork) known.append(known.empty() ? "" : ", ").append(name);
    return "expected a scheme that is known" + (meant ? "; did you mean `" + *meant + "`?" : ": " + known);
  }
  // "udp://:5000" and "udp://@:5000" listen, on any address.
  if (scheme == "udp" || scheme == "rtp" || scheme == "srt" || scheme == "tcp") return std::nullopt;
  if (has_raw_delimiter(source)) {
    return "expected a URL whose user and password have no raw `/`, `?`, `#` or `@` in them; in a "
           "configuration they stand as they are in `username:` and `password:`, in a URL percent-encoded "
           "(`/` is `%2F`, `?` `%3F`, `#` `%23`, `@` `%40`)";
  }
  return host_fault(behind_credentials(source));
}

}  // namespace vigil::config
