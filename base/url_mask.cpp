#include "base/url_mask.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <iterator>
#include <optional>
#include <regex>

namespace vigil::base {
namespace {

/// Whether this begins with an IP address and maybe a port, where a host ends: no user is called so.
bool begins_with_address(std::string_view text) {
  static const std::regex address(R"((\d{1,3}(\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?([/?#]|$))");
  return std::regex_search(text.begin(), text.end(), address, std::regex_constants::match_continuous);
}

struct Authority {
  /// Behind "://"; 0 if there is none.
  std::size_t begin = 0;
  /// Where the '@' is, if there is one.
  std::optional<std::size_t> user_end;
};

/// What a standard calls the authority ends at the first of "/?#", but passwords are pasted with these in
/// them: the last '@' counts, wherever it is, unless an address tells where the host is. A host's name in
/// front of an '@' in a path or query is taken for a user.
Authority authority_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::string_view text = url.substr(begin);
  // A path, as of a file.
  if (text.starts_with('/') || begins_with_address(text)) return {begin, std::nullopt};
  const std::size_t last = text.rfind('@');
  if (last == std::string_view::npos) return {begin, std::nullopt};
  for (std::size_t at = last; at != std::string_view::npos;
       at = at == 0 ? text.npos : text.rfind('@', at - 1)) {
    if (begins_with_address(text.substr(at + 1))) return {begin, begin + at};
  }
  return {begin, begin + last};
}

/// Whether this can be a host and a port, with an '@' before them: what has other characters is rather a part
/// of a password or a query with an '@' in it.
bool is_host(std::string_view text) {
  // By hand: std::regex calls itself for each character, and a server may name one of a megabyte.
  const auto skip = [&text](const auto& is) {
    text.remove_prefix(static_cast<std::size_t>(
        std::find_if_not(text.begin(), text.end(), [&](unsigned char c) { return is(c); }) - text.begin()));
  };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (text.starts_with('@')) text.remove_prefix(1);
  if (text.starts_with('[')) {
    text.remove_prefix(1);
    skip([](unsigned char c) { return std::isxdigit(c) != 0 || c == ':' || c == '.' || c == '%'; });
    if (!text.starts_with(']')) return false;
    text.remove_prefix(1);
  } else {
    skip([](unsigned char c) { return std::isalnum(c) != 0 || c == '.' || c == '_' || c == '-'; });
  }
  if (text.starts_with(':')) {
    text.remove_prefix(1);
    skip(is_digit);
  }
  return text.empty();
}

/// Whether a parameter of a query says which of a camera's streams is meant, and nothing else.
bool tells_the_stream(std::string_view parameter) {
  static const std::regex harmless(
      "(cam|camera|channel|codec|fps|profile|resolution|stream|streamtype|subtype|unicast|videocodec)"
      "=[A-Za-z0-9._-]{0,16}",
      std::regex::icase);
  return std::regex_match(parameter.begin(), parameter.end(), harmless);
}

/// A query with "***" for all that may be a secret. Names are masked like values: what follows an '&' may
/// still be the password.
std::string mask_query(std::string_view query) {
  std::string shown;
  bool masked = false;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    const bool harmless = tells_the_stream(parameter);
    if (harmless || !masked) {
      if (!shown.empty()) shown += '&';
      shown += harmless ? parameter : "***";
    }
    masked = !harmless;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return shown;
}

/// Words in which a part of a path is written, and how many characters they have: "AVStream12" has two in 8.
/// Random text has few characters a word.
struct Words {
  std::size_t count = 0;
  std::size_t characters = 0;
};

Words words_of(std::string_view text) {
  // A number at the end counts streams, and is no word.
  while (!text.empty() && std::isdigit(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  static const std::regex word("[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+");
  Words words{0, text.size()};
  words.count = static_cast<std::size_t>(std::distance(std::regex_iterator(text.begin(), text.end(), word),
                                                       std::regex_iterator<std::string_view::iterator>()));
  return words;
}

/// Whether letters and digits look like a token rather than like words. Short ones always look like words.
bool looks_random(const std::string& text) {
  constexpr std::size_t kShortest = 8;
  constexpr std::size_t kLongestWord = 18;
  if (text.size() < kShortest) return false;
  const auto count = [&text](int (*is)(int)) {
    return static_cast<std::size_t>(
        std::count_if(text.begin(), text.end(), [is](unsigned char c) { return is(c) != 0; }));
  };
  const std::size_t digits = count(std::isdigit);
  // A date has eight.
  if (digits == text.size()) return digits > kShortest;
  if (digits > 0 && count(std::isxdigit) == text.size()) return true;
  static const std::regex codec("h26[45]|mpeg4|mp4|m3u8|m4s|[0-9]{3,4}p", std::regex::icase);
  const std::string named = std::regex_replace(text, codec, "");
  const Words words = words_of(named);
  // What is long is hardly of short words alone.
  const double characters_of_a_word = named.size() < 14 ? 3.5 : 4.5;
  if (words.count == 1) return words.characters > kLongestWord;
  return static_cast<double>(words.characters) < characters_of_a_word * static_cast<double>(words.count);
}

/// Whether a part of a path may be a secret by itself. One with a name does not say which it is.
bool may_be_secret(const std::string& part) {
  constexpr std::size_t kLongest = 40;
  static const std::regex harmless("(trackid|track)=[0-9]{1,4}", std::regex::icase);
  // What is masked already.
  if (part == "***") return false;
  if (part.find_first_of("=;:%") != part.npos) {
    return !std::regex_match(part, harmless) && !tells_the_stream(part);
  }
  if (part.size() > kLongest) return true;
  std::string joined;
  std::string piece;
  for (const char c : part + '.') {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      piece += c;
      continue;
    }
    if (looks_random(piece)) return true;
    joined += piece;
    piece.clear();
  }
  return looks_random(joined);
}

/// Whether the next part of a path is a secret, by its name.
bool announces_secret(const std::string& part) {
  static const std::regex names(
      "(access|api|auth|stream)?[-_]?(token|key|pass|passwd|password|pwd|pw|secret|auth|sig|signature)",
      std::regex::icase);
  return std::regex_match(part, names);
}

/// What follows the host, up to the query, with "***" for what may be a token.
std::string mask_path(std::string_view path) {
  std::string shown;
  std::string before;
  while (!path.empty()) {
    const std::size_t delimiter = std::min(path.find_first_of("/#"), path.size());
    const std::string part(path.substr(0, delimiter));
    shown += !part.empty() && (announces_secret(before) || may_be_secret(part)) ? "***" : part;
    before = part;
    if (delimiter < path.size()) shown += path[delimiter];
    path.remove_prefix(std::min(delimiter + 1, path.size()));
  }
  return shown;
}

/// A file or a device: a path says nothing that is secret there.
bool is_local(std::string_view url) {
  return !has_scheme(url) || url.starts_with("file://") || url.starts_with("v4l2://") ||
         url.starts_with("video4linux2://");
}

}  // namespace

bool has_scheme(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  });
}

std::string mask_credentials(std::string_view url) {
  const Authority authority = authority_of(url);
  std::string shown(url.substr(0, authority.begin));
  if (authority.user_end) shown += "***";
  const std::string_view rest = url.substr(authority.user_end.value_or(authority.begin));
  const std::size_t query = std::min(rest.find('?'), rest.size());
  const std::size_t path = std::min(rest.find_first_of("/?#"), query);
  const std::string_view host = rest.substr(0, path);
  if (authority.begin == 0 || is_host(host)) {
    shown += host;
  } else {
    shown += authority.user_end ? "@***" : "***";
  }
  const std::string_view tail = rest.substr(path, query - path);
  shown += is_local(url) ? std::string(tail) : mask_path(tail);
  if (query < rest.size()) shown += '?' + mask_query(rest.substr(query + 1));
  return shown;
}

std::string mask_source(std::string_view source) {
  return has_scheme(source) ? mask_credentials(source) : std::string(source);
}

std::string_view behind_credentials(std::string_view url) {
  const Authority authority = authority_of(url);
  return url.substr(authority.user_end ? *authority.user_end + 1 : authority.begin);
}

bool has_credentials(std::string_view url) {
  return authority_of(url).user_end.has_value();
}

std::size_t authority_begin(std::string_view url) {
  return authority_of(url).begin;
}

std::string mask_urls(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  const auto is_of_scheme = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  };
  std::string shown;
  std::size_t done = 0;
  for (std::size_t scheme = text.find(kScheme); scheme != text.npos; scheme = text.find(kScheme, done)) {
    const std::size_t authority = scheme + kScheme.size();
    std::size_t begin = scheme;
    while (begin > done && is_of_scheme(text[begin - 1])) --begin;
    const auto end_from = [&](std::size_t from) {
      return std::min(text.find_first_of(" \t\r\n\"'|", from), text.size());
    };
    std::size_t end = end_from(authority);
    // What follows the delimiter may still be of a password that holds it.
    const std::size_t at = text.rfind('@', text.find(kScheme, authority));
    if (at != text.npos && at > end && text.find(':', authority) < end) end = end_from(at);
    // What closes a sentence is none of the URL's.
    std::size_t last = end;
    while (last > authority && std::string_view(",.:;)").find(text[last - 1]) != std::string_view::npos)
      --last;
    shown += text.substr(done, begin - done);
    shown += mask_credentials(text.substr(begin, last - begin));
    shown += text.substr(last, end - last);
    done = end;
  }
  shown += text.substr(done);
  return shown;
}

std::string mask_parts(std::string text, std::string_view url, std::string_view shown) {
  constexpr std::string_view kDelimiters = "/?#&=@:;, ";
  // Shorter ones stand in too many words.
  constexpr std::size_t kShortest = 4;
  while (!url.empty()) {
    const std::size_t end = std::min(url.find_first_of(kDelimiters), url.size());
    const std::string_view part = url.substr(0, end);
    if (part.size() >= kShortest && shown.find(part) == shown.npos)
      for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 3))
        text.replace(at, part.size(), "***");
    url.remove_prefix(std::min(end + 1, url.size()));
  }
  return text;
}

}  // namespace vigil::base
