#include "engine/model/files/json_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <system_error>

#include "engine/model/files/error.h"

namespace vigil::model {
namespace {

/// nlohmann's message without its own prefix, and never longer than a line should be.
std::string reason_of(const Json::exception& error) {
  std::string text = error.what();
  if (const auto end = text.find("] "); text.starts_with('[') && end != std::string::npos)
    text.erase(0, end + 2);
  std::string line = in_quotes(text);
  return line.substr(1, line.size() - 2);
}

/// How many brackets are open at most. Exact for JSON; for other text an answer that costs no more than
/// reading it.
int nesting(std::string_view text) {
  int open = 0;
  int most = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      most = std::max(most, ++open);
    } else if (c == ']' || c == '}') {
      --open;
    }
  }
  return most;
}

}  // namespace

std::string in_quotes(std::string_view name) {
  constexpr std::size_t kMost = 120;
  std::string text(name.substr(0, kMost));
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20U || byte == 0x7fU) c = '?';
  }
  // nlohmann's serialiser is the UTF-8 check: it replaces what is broken, a character that the cut has halved
  // too.
  text = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (name.size() > kMost) text.insert(text.size() - 1, "...");
  text.front() = '\'';
  text.back() = '\'';
  return text;
}

std::optional<std::int64_t> integer_within(const Json& value, std::int64_t least, std::int64_t most) {
  if (!value.is_number_integer()) return std::nullopt;
  // nlohmann compares by casting: what lies beyond int64 would count as negative.
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost) return std::nullopt;
  const auto number = value.get<std::int64_t>();
  return number < least || number > most ? std::nullopt : std::optional(number);
}

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (!std::filesystem::status_known(status)) throw ModelError(path.string() + ": " + error.message());
  return std::filesystem::exists(status);
}

std::string read_text_file(const std::filesystem::path& path, std::size_t max_bytes) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found)
    throw ModelError(path.string() + ": no such file");
  if (!std::filesystem::status_known(status)) throw ModelError(path.string() + ": " + error.message());
  if (!std::filesystem::is_regular_file(status)) throw ModelError(path.string() + ": not a regular file");
  const auto bytes = std::filesystem::file_size(path, error);
  if (error) throw ModelError(path.string() + ": " + error.message());
  if (bytes > max_bytes) {
    throw ModelError(path.string() + ": " + std::to_string(bytes) + " bytes, more than the " +
                     std::to_string(max_bytes) + " that such a file may have");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw ModelError(path.string() + ": " + std::generic_category().message(errno));
  std::string text(static_cast<std::size_t>(bytes), '\0');
  in.read(text.data(), static_cast<std::streamsize>(bytes));
  if (in.gcount() != static_cast<std::streamsize>(bytes)) throw ModelError(path.string() + ": read failed");
  return text;
}

Json parse_json(std::string_view text, const std::string& name, JsonLimits limits) {
  if (nesting(text) > limits.depth) {
    throw ModelError(name + ": nested deeper than " + std::to_string(limits.depth) + " levels");
  }
  std::vector<std::set<std::string>> keys;
  const Json::parser_callback_t refuse_repeated_keys = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.get_ref<const std::string&>()).second) {
      throw ModelError(name + ": the key " + in_quotes(parsed.get_ref<const std::string&>()) +
                       " occurs twice");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(),
                       limits.unique_keys ? refuse_repeated_keys : Json::parser_callback_t{});
  } catch (const Json::exception& error) {
    throw ModelError(name + ": not valid JSON: " + reason_of(error));
  }
}

Json read_json_file(const std::filesystem::path& path, JsonLimits limits) {
  return parse_json(read_text_file(path), path.string(), limits);
}

JsonObject::JsonObject(const Json& value, std::string file, std::string path)
    : value_(&value), file_(std::move(file)), path_(std::move(path)) {
  if (!value.is_object()) {
    throw ModelError(file_ + ": " + (path_.empty() ? "" : path_ + ": ") + "an object was expected, this is " +
                     value.type_name());
  }
}

const Json* JsonObject::find(std::string_view key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

const Json& JsonObject::at(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "missing");
  return *value;
}

std::int64_t JsonObject::integer(std::string_view key, std::int64_t least, std::int64_t most,
                                 std::optional<std::int64_t> otherwise) const {
  const Json* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) fail(key, "missing");
  if (!value->is_number_integer())
    fail(key, std::string("an integer was expected, this is ") + value->type_name());
  const auto number = integer_within(*value, least, most);
  if (!number)
    fail(key, value->dump() + " is not between " + std::to_string(least) + " and " + std::to_string(most));
  return *number;
}

double JsonObject::number(std::string_view key, double least, double most,
                          std::optional<double> otherwise) const {
  const Json* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) fail(key, "missing");
  if (!value->is_number()) fail(key, std::string("a number was expected, this is ") + value->type_name());
  const auto number = value->get<double>();
  if (!(number >= least && number <= most)) {
    fail(key, value->dump() + " is not between " + Json(least).dump() + " and " + Json(most).dump());
  }
  return number;
}

bool JsonObject::boolean(std::string_view key, std::optional<bool> otherwise) const {
  const Json* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) fail(key, "missing");
  if (!value->is_boolean())
    fail(key, std::string("true or false was expected, this is ") + value->type_name());
  return value->get<bool>();
}

std::string JsonObject::string(std::string_view key, std::optional<std::string> otherwise) const {
  const Json* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) fail(key, "missing");
  if (!value->is_string()) fail(key, std::string("a string was expected, this is ") + value->type_name());
  return value->get<std::string>();
}

std::vector<std::int64_t> JsonObject::integers(std::string_view key, std::int64_t least, std::int64_t most,
                                               std::optional<std::vector<std::int64_t>> otherwise) const {
  const Json* value = find(key);
  if (value == nullptr && otherwise) return *otherwise;
  if (value == nullptr) fail(key, "missing");
  if (!value->is_array()) fail(key, std::string("a list was expected, this is ") + value->type_name());
  std::vector<std::int64_t> numbers;
  for (const Json& item : *value) {
    const auto number = integer_within(item, least, most);
    if (!number) {
      fail(key, "the list may hold integers from " + std::to_string(least) + " to " + std::to_string(most) +
                    " only");
    }
    numbers.push_back(*number);
  }
  return numbers;
}

JsonObject JsonObject::object(std::string_view key) const {
  return {at(key), file_, path_.empty() ? std::string(key) : path_ + "." + std::string(key)};
}

std::optional<JsonObject> JsonObject::optional_object(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return object(key);
}

void JsonObject::fail(std::string_view key, const std::string& reason) const {
  throw ModelError(file_ + ": " + (path_.empty() ? "" : path_ + ".") + std::string(key) + ": " + reason);
}

}  // namespace vigil::model
