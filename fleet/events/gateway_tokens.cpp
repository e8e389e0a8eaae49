#include "fleet/events/gateway_tokens.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

namespace vigil::fleet {
namespace {

constexpr std::size_t kTokenDigits = 20;
constexpr std::size_t kTokenSize = kTokenDigits + 16;

/// Of what ends with a token that others may follow: where that begins, and its number.
struct TokenAtEnd {
  std::size_t begin = 0;
  std::uint64_t number = 0;
};

std::optional<TokenAtEnd> read_token(std::string_view text) {
  if (text.size() < kTokenSize) return std::nullopt;
  TokenAtEnd result{text.size() - kTokenSize, 0};
  const std::string_view digits = text.substr(result.begin, kTokenDigits);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), result.number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  if (result.number == std::numeric_limits<std::uint64_t>::max()) return std::nullopt;
  if (text.substr(result.begin + kTokenDigits).find_first_not_of("0123456789abcdef") != text.npos)
    return std::nullopt;
  return result;
}

}  // namespace

GatewayTokens::GatewayTokens(const base::Clock& clock, std::function<std::string()> name)
    : clock_(clock), name_(std::move(name)) {}

std::string GatewayTokens::next(const std::string& after) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.wall().time_since_epoch());
  number_ = std::max(number_ + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.count())));
  const std::string behind = std::max(after, last_);
  const auto before = read_token(behind);
  if (before) number_ = std::max(number_, before->number + 1);
  const std::string number = std::to_string(number_);
  const std::string token = std::string(kTokenDigits - number.size(), '0') + number + name_();
  // One that nobody here has made, as from a damaged disk, is the beginning of what comes behind it; and no
  // longer one each time.
  last_ = token > behind ? token : behind.substr(0, before ? before->begin : behind.size()) + token;
  return last_;
}

}  // namespace vigil::fleet
