#include "engine/model/language/generation.h"

#include <algorithm>
#include <limits>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

constexpr std::int64_t kMostId = std::numeric_limits<std::int32_t>::max();

/// One id or a list of them.
std::vector<std::int32_t> token_ids(const JsonObject& from, std::string_view key) {
  const Json* value = from.find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {static_cast<std::int32_t>(from.integer(key, 0, kMostId))};
  std::vector<std::int32_t> ids;
  for (const std::int64_t id : from.integers(key, 0, kMostId)) ids.push_back(static_cast<std::int32_t>(id));
  return ids;
}

std::vector<std::int32_t> end_ids_of_config(const std::filesystem::path& folder) {
  const auto path = folder / "config.json";
  if (!is_there(path)) return {};
  const Json root = read_json_file(path);
  const JsonObject top(root, path.string());
  std::vector<std::int32_t> ids = token_ids(top, "eos_token_id");
  if (const auto text = top.optional_object("text_config"); ids.empty() && text) {
    ids = token_ids(*text, "eos_token_id");
  }
  return ids;
}

}  // namespace

bool GenerationConfig::ends(std::int32_t id) const {
  return std::find(end_token_ids.begin(), end_token_ids.end(), id) != end_token_ids.end();
}

Sampling GenerationConfig::sampling() const {
  Sampling sampling;
  sampling.repetition_penalty = repetition_penalty;
  if (!do_sample) return sampling;
  sampling.temperature = temperature;
  sampling.top_k = top_k;
  sampling.top_p = top_p;
  return sampling;
}

GenerationConfig read_generation_config(const std::filesystem::path& folder) {
  GenerationConfig config;
  const auto path = folder / "generation_config.json";
  if (is_there(path)) {
    const Json root = read_json_file(path);
    const JsonObject from(root, path.string());
    config.end_token_ids = token_ids(from, "eos_token_id");
    config.pad_token_id = static_cast<std::int32_t>(from.integer("pad_token_id", -1, kMostId, -1));
    config.do_sample = from.boolean("do_sample", false);
    config.temperature = static_cast<float>(from.number("temperature", 0, 1e6, 1));
    config.top_k = static_cast<int>(from.integer("top_k", 0, kMostId, 50));
    config.top_p = static_cast<float>(from.number("top_p", 0, 1, 1));
    config.repetition_penalty = static_cast<float>(from.number("repetition_penalty", 1e-6, 1e6, 1));
  }
  if (config.end_token_ids.empty()) config.end_token_ids = end_ids_of_config(folder);
  return config;
}

}  // namespace vigil::model
