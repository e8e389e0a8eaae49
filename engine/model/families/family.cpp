#include "engine/model/families/family.h"

#include <algorithm>
#include <array>

#include "engine/model/families/qwen2_5_vl.h"
#include "engine/model/files/error.h"

namespace vigil::model {
namespace {

constexpr std::array<const Family*, 1> kFamilies = {&kQwen25Vl};

/// Null if there is none.
const Family* find(std::string_view model_type) {
  const auto* const found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family* family) {
    return family->model_type == model_type;
  });
  return found == kFamilies.end() ? nullptr : *found;
}

std::string unknown(std::string_view model_type) {
  std::string known;
  for (const Family* family : kFamilies)
    known += (known.empty() ? "" : ", ") + std::string(family->model_type);
  return in_quotes(model_type) + " is an unknown architecture; " + known +
         (kFamilies.size() == 1 ? " is supported" : " are supported");
}

}  // namespace

const Family& family_of(const ModelConfig& config) {
  const Family* family = find(config.model_type);
  if (family == nullptr) throw ModelError("config.json: model_type: " + unknown(config.model_type));
  return *family;
}

ModelConfig parse_config(std::string_view json, const std::string& name) {
  const Json root = parse_json(json, name);
  const JsonObject top(root, name);
  const std::string type = top.string("model_type");
  const Family* family = find(type);
  if (family == nullptr) top.fail("model_type", unknown(type));
  ModelConfig config = family->read(top);
  config.model_type = type;
  config.vision.traits = family->vision;
  config.text.traits = family->text;
  return config;
}

ModelConfig read_config(const std::filesystem::path& folder) {
  return read_config_file(folder / "config.json");
}

ModelConfig read_config_file(const std::filesystem::path& file) {
  return parse_config(read_text_file(file, std::size_t{16} << 20U), file.string());
}

}  // namespace vigil::model
