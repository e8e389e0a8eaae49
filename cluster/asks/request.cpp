#include "cluster/asks/request.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_line.h"
#include "base/one_line.h"
#include "config/schema/fields.h"

namespace vigil::cluster {
namespace {

using nlohmann::json;

// What a request that names no version is of.
constexpr int kRequestVersion = 1;
// In the year 2255; clocks of nanoseconds end in 2262.
constexpr std::int64_t kLastAskedTime = 9'000'000'000'000;
constexpr std::int64_t kMostAnswerTokens = 4096;
constexpr std::int64_t kLongestTimeout = 600'000;
// Of an unknown key, as much as a line shows.
constexpr std::size_t kShownOfKey = 40;

/// A key of an object: whether it has to be there, what is expected of it, and what takes its value, false
/// if it is none.
struct KeyReader {
  std::string_view name;
  bool required;
  std::string_view expected;
  std::function<bool(const json&)> take;
};

/// The whole number, if it is one within these limits.
std::optional<std::int64_t> whole_number(const json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  return number >= least && number <= most ? std::optional(number) : std::nullopt;
}

template <class Text>
std::function<bool(const json&)> name_into(Text& into) {
  return [&into](const json& value) {
    if (!value.is_string() || !config::is_name(value.get_ref<const std::string&>())) return false;
    into = value.get<std::string>();
    return true;
  };
}

template <class Time>
std::function<bool(const json&)> time_into(Time& into) {
  return [&into](const json& value) {
    const auto time = whole_number(value, 0, kLastAskedTime);
    if (time) into = *time;
    return time.has_value();
  };
}

constexpr std::string_view kNameExpected = "expected a name of letters, digits, '.', '_' and '-'";
constexpr std::string_view kQuestionExpected =
    "expected a question of at most 4096 bytes, without control characters and a model's special tokens, "
    "<|...|>";
constexpr std::string_view kTimeExpected = "expected milliseconds since 1970";

/// In JSON they are six bytes each, and no question has them.
bool is_foreign_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f;
}

template <class Text>
std::function<bool(const json&)> question_into(Text& into) {
  return [&into](const json& value) {
    if (!value.is_string()) return false;
    const auto& text = value.get_ref<const std::string&>();
    if (text.size() > kAskQuestionBytes || !config::is_prompt(text) ||
        std::any_of(text.begin(), text.end(), is_foreign_control))
      return false;
    into = text;
    return true;
  };
}

/// Reads an object by its keys, and no others; what is wrong with it.
std::optional<BadRequest> read_keys(const std::string& of, const json& object,
                                    std::initializer_list<KeyReader> keys) {
  if (!object.is_object()) return BadRequest{of + ": expected an object"};
  for (const auto& [name, value] : object.items()) {
    const auto known = std::find_if(keys.begin(), keys.end(),
                                    [&, &key = name](const KeyReader& each) { return each.name == key; });
    if (known == keys.end()) {
      std::string legal;
      for (const KeyReader& each : keys) legal.append(legal.empty() ? "" : ", ").append(each.name);
      std::string reason = of;
      reason.append(".").append(base::one_line(name.substr(0, kShownOfKey)));
      reason.append(": unknown key; legal keys: ").append(legal);
      return BadRequest{std::move(reason)};
    }
    if (!known->take(value)) {
      std::string reason = of;
      reason.append(".").append(name).append(": ").append(known->expected);
      return BadRequest{std::move(reason)};
    }
  }
  for (const KeyReader& each : keys) {
    if (each.required && !object.contains(each.name))
      return BadRequest{of + "." + std::string(each.name) + ": is missing"};
  }
  return std::nullopt;
}

using Parsed = std::variant<AskRequest, AskCancel, BadRequest>;

std::optional<BadRequest> out_of_order(const std::string& of, std::optional<std::int64_t> from,
                                       std::optional<std::int64_t> to) {
  if (!from || !to || *from <= *to) return std::nullopt;
  return BadRequest{of + ".from_ms: is after " + of + ".to_ms"};
}

constexpr const char* kTimeoutExpected = "expected a whole number from 1 to 600000";

auto timeout_into(std::optional<std::chrono::milliseconds>& timeout) {
  return [&timeout](const json& value) {
    const auto number = whole_number(value, 1, kLongestTimeout);
    if (number) timeout = std::chrono::milliseconds(*number);
    return number.has_value();
  };
}

/// "expected windows, compose, ... or rekv".
std::string method_expected() {
  std::string text = "expected";
  for (const AskMethod each : kAskMethods)
    text.append(each == kAskMethods.front()  ? " "
                : each == kAskMethods.back() ? " or "
                                             : ", ")
        .append(name_of(each));
  return text;
}

Parsed read_question(const json& object) {
  AskQuestion asked;
  const std::string of_methods = method_expected();
  const auto method = [&asked](const json& value) {
    for (const AskMethod each : kAskMethods)
      if (value == name_of(each)) asked.method = each;
    return asked.method.has_value();
  };
  const auto max_tokens = [&asked](const json& value) {
    const auto number = whole_number(value, 1, kMostAnswerTokens);
    if (number) asked.max_tokens = static_cast<int>(*number);
    return number.has_value();
  };
  auto wrong = read_keys("ask", object,
                         {{"camera", true, kNameExpected, name_into(asked.camera)},
                          {"tenant", false, kNameExpected, name_into(asked.tenant)},
                          {"question", true, kQuestionExpected, question_into(asked.question)},
                          {"about", false, kQuestionExpected, question_into(asked.about)},
                          {"from_ms", true, kTimeExpected, time_into(asked.from_ms)},
                          {"to_ms", true, kTimeExpected, time_into(asked.to_ms)},
                          {"method", false, of_methods, method},
                          {"max_tokens", false, "expected a whole number from 1 to 4096", max_tokens},
                          {"timeout_ms", false, kTimeoutExpected, timeout_into(asked.timeout)}});
  if (!wrong) wrong = out_of_order("ask", asked.from_ms, asked.to_ms);
  return wrong ? Parsed(std::move(*wrong)) : Parsed(AskRequest(std::move(asked)));
}

/// A request that may name a camera or a tenant, and says no more.
template <class Request>
Parsed read_of_camera(const std::string& of, const json& object) {
  Request asked;
  auto wrong = read_keys(of, object,
                         {{"camera", false, kNameExpected, name_into(asked.camera)},
                          {"tenant", false, kNameExpected, name_into(asked.tenant)},
                          {"timeout_ms", false, kTimeoutExpected, timeout_into(asked.timeout)}});
  return wrong ? Parsed(std::move(*wrong)) : Parsed(AskRequest(std::move(asked)));
}

Parsed read_erase(const json& object) {
  MemoryErase asked;
  auto wrong = read_keys("erase", object,
                         {{"camera", true, kNameExpected, name_into(asked.camera)},
                          {"tenant", false, kNameExpected, name_into(asked.tenant)},
                          {"from_ms", false, kTimeExpected, time_into(asked.from_ms)},
                          {"to_ms", false, kTimeExpected, time_into(asked.to_ms)},
                          {"timeout_ms", false, kTimeoutExpected, timeout_into(asked.timeout)}});
  if (!wrong) wrong = out_of_order("erase", asked.from_ms, asked.to_ms);
  return wrong ? Parsed(std::move(*wrong)) : Parsed(AskRequest(std::move(asked)));
}

Parsed read_cancel(const json& value) {
  const auto* tag = value.get_ptr<const std::string*>();
  if (tag == nullptr || tag->empty() || tag->size() > kAskTagBytes)
    return BadRequest{"cancel: expected the tag of a request, 1 to 64 bytes of text"};
  return AskCancel{*tag};
}

constexpr std::string_view kOneOf = "expected one of ask, list, verify, erase and cancel";

Parsed read_request(const std::string& kind, const json& value) {
  if (kind == "ask") return read_question(value);
  if (kind == "list") return read_of_camera<MemoryList>(kind, value);
  if (kind == "verify") return read_of_camera<MemoryVerify>(kind, value);
  if (kind == "erase") return read_erase(value);
  if (kind == "cancel") return read_cancel(value);
  return BadRequest{base::one_line(kind.substr(0, kShownOfKey)) +
                    ": unknown key; legal keys: version, ask, list, verify, erase, cancel"};
}

void put_times(json& object, std::optional<std::int64_t> from, std::optional<std::int64_t> to) {
  if (from) object["from_ms"] = *from;
  if (to) object["to_ms"] = *to;
}

json json_of(const AskQuestion& asked) {
  json object = {{"camera", asked.camera}, {"question", asked.question}};
  put_times(object, asked.from_ms, asked.to_ms);
  if (asked.tenant) object["tenant"] = *asked.tenant;
  if (asked.about) object["about"] = *asked.about;
  if (asked.method) object["method"] = name_of(*asked.method);
  if (asked.max_tokens) object["max_tokens"] = *asked.max_tokens;
  if (asked.timeout) object["timeout_ms"] = asked.timeout->count();
  return {{"ask", object}};
}

template <class Request>
json json_of_camera(const char* kind, const Request& asked) {
  json object = json::object();
  if (asked.camera) object["camera"] = *asked.camera;
  if (asked.tenant) object["tenant"] = *asked.tenant;
  if (asked.timeout) object["timeout_ms"] = asked.timeout->count();
  return {{kind, object}};
}

json json_of(const MemoryList& asked) {
  return json_of_camera("list", asked);
}

json json_of(const MemoryVerify& asked) {
  return json_of_camera("verify", asked);
}

json json_of(const MemoryErase& asked) {
  json object = {{"camera", asked.camera}};
  if (asked.tenant) object["tenant"] = *asked.tenant;
  put_times(object, asked.from_ms, asked.to_ms);
  if (asked.timeout) object["timeout_ms"] = asked.timeout->count();
  return {{"erase", object}};
}

std::string versioned(json request) {
  request["version"] = kRequestVersion;
  return base::json_line(request);
}

}  // namespace

std::string_view name_of(AskMethod method) {
  switch (method) {
    case AskMethod::windows:
      return "windows";
    case AskMethod::compose:
      return "compose";
    case AskMethod::exhaustive:
      return "exhaustive";
    case AskMethod::clusters:
      return "clusters";
    case AskMethod::rekv:
      return "rekv";
  }
  return "";
}

std::optional<std::string_view> camera_of(const AskRequest& request) {
  return std::visit(
      [](const auto& asked) -> std::optional<std::string_view> {
        if constexpr (std::is_same_v<decltype(asked.camera), std::string>) {
          return asked.camera;
        } else {
          return asked.camera ? std::optional<std::string_view>(*asked.camera) : std::nullopt;
        }
      },
      request);
}

std::optional<std::chrono::milliseconds> timeout_of(const AskRequest& request) {
  return std::visit([](const auto& asked) { return asked.timeout; }, request);
}

std::optional<std::string_view> tenant_of(const AskRequest& request) {
  return std::visit([](const auto& asked) -> std::optional<std::string_view> { return asked.tenant; },
                    request);
}

std::string to_text(const AskRequest& request) {
  return versioned(std::visit([](const auto& asked) { return json_of(asked); }, request));
}

std::string to_text(const AskCancel& cancel) {
  return versioned({{"cancel", cancel.tag}});
}

Parsed parse_request(std::string_view text) {
  if (text.size() > kAskRequestBytes) return BadRequest{"expected 32 KiB at most"};
  const json request = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!request.is_object())
    return BadRequest{"expected a JSON object, such as {\"list\": {}}; " + std::string(kOneOf)};
  if (const auto version = request.find("version"); version != request.end() && *version != kRequestVersion)
    return BadRequest{"version: expected 1"};
  std::optional<Parsed> parsed;
  for (const auto& [kind, value] : request.items()) {
    if (kind == "version") continue;
    Parsed next = read_request(kind, value);
    if (std::holds_alternative<BadRequest>(next)) return next;
    if (parsed) return BadRequest{kind + ": stands beside another request; " + std::string(kOneOf)};
    parsed = std::move(next);
  }
  if (!parsed) return BadRequest{std::string(kOneOf)};
  return *std::move(parsed);
}

}  // namespace vigil::cluster
