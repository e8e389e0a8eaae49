// JSON of foreign origin: files of a model folder. Every fault is one ModelError that names the file and the
// key.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace vigil::model {

using Json = nlohmann::json;

/// What `parse_json` accepts beyond the grammar.
struct JsonLimits {
  /// Arrays and objects within each other.
  int depth = 64;
  /// Refuse a key that occurs twice in one object; otherwise the last one counts, as in Python.
  bool unique_keys = false;
};

/// A name of foreign origin as it may stand in a message: in quotes, without control characters or broken
/// UTF-8, cut at 120 bytes.
std::string in_quotes(std::string_view name);

/// The value as an integer if it is one between `least` and `most`.
std::optional<std::int64_t> integer_within(const Json& value, std::int64_t least, std::int64_t most);

/// Whether there is anything of that name. Throws ModelError where that cannot be told, as in a folder that
/// must not be searched.
bool is_there(const std::filesystem::path& path);

/// The whole file. Throws ModelError if it cannot be read or has more than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path,
                           std::size_t max_bytes = std::size_t{256} << 20U);

/// Parses UTF-8 JSON; `name` is the file in messages. Throws ModelError.
Json parse_json(std::string_view text, const std::string& name, JsonLimits limits = {});

/// `read_text_file`, then `parse_json`.
Json read_json_file(const std::filesystem::path& path, JsonLimits limits = {});

/// A JSON object with the way to it, so that a message can name both: "config.json: vision_config.depth:
/// ...". Borrows the object. A key whose value is null counts as absent, as in transformers.
class JsonObject {
 public:
  /// Throws ModelError if `value` is no object.
  JsonObject(const Json& value, std::string file, std::string path = {});

  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The value, or null if it is absent or null.
  const Json* find(std::string_view key) const;
  /// The value; throws ModelError if it is absent.
  const Json& at(std::string_view key) const;

  /// Each throws ModelError for an absent key (where no `otherwise` is given), another type, or a value out
  /// of range.
  std::int64_t integer(std::string_view key, std::int64_t least, std::int64_t most,
                       std::optional<std::int64_t> otherwise = {}) const;
  double number(std::string_view key, double least, double most, std::optional<double> otherwise = {}) const;
  bool boolean(std::string_view key, std::optional<bool> otherwise = {}) const;
  std::string string(std::string_view key, std::optional<std::string> otherwise = {}) const;
  std::vector<std::int64_t> integers(std::string_view key, std::int64_t least, std::int64_t most,
                                     std::optional<std::vector<std::int64_t>> otherwise = {}) const;
  JsonObject object(std::string_view key) const;
  std::optional<JsonObject> optional_object(std::string_view key) const;

  const Json& json() const { return *value_; }
  const std::string& file() const { return file_; }
  /// Throws ModelError "FILE: PATH.KEY: REASON".
  [[noreturn]] void fail(std::string_view key, const std::string& reason) const;

 private:
  const Json* value_;
  std::string file_;
  std::string path_;
};

}  // namespace vigil::model
