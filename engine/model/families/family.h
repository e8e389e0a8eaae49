// What differs between families of models, in one place for each: data that generic code is given.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "engine/model/files/config.h"
#include "engine/model/files/json_file.h"
#include "engine/model/files/traits.h"
#include "engine/model/files/weights.h"
#include "engine/model/text/chat.h"

namespace vigil::model {

/// A family has a file of its own here (qwen2_5_vl.cpp), which nobody else names; it is found by the
/// `model_type` of config.json. The layout of positions is in its configuration: how long a second of video
/// is (VisionConfig::tokens_per_second), and which axes turn which rotary pairs (TextConfig::mrope_section);
/// language/positions.h reads both. Which axes go on with time is a trait (TextTraits::time_axes). Immutable.
struct Family {
  /// What config.json calls it.
  std::string_view model_type;
  /// The sizes that a config.json tells. Throws ModelError, naming the file and the key, for one that is
  /// missing or ill-typed, for sizes that do not fit each other, and for what the engine does not compute.
  /// `model_type` and traits are not its to set.
  ModelConfig (*read)(const JsonObject& config);
  /// How its tensors were named before.
  std::span<const NamePrefix> prefixes;
  /// Of the tower and of the decoder: names of tensors, biases, activations.
  VisionTraits vision;
  TextTraits text;
  /// What stands before and after the frames.
  ChatFormat chat;
};

/// The family of a configuration. Throws ModelError for a `model_type` that none has.
const Family& family_of(const ModelConfig& config);

/// Reads `folder/config.json`. Throws ModelError, naming the file and the key, for a family that is not
/// known, and as `Family::read` does.
ModelConfig read_config(const std::filesystem::path& folder);

/// The same of a file of any name.
ModelConfig read_config_file(const std::filesystem::path& file);

/// The same from text; `name` stands in messages. Keys that transformers fills with defaults may be absent;
/// the decoder's sizes may not.
ModelConfig parse_config(std::string_view json, const std::string& name);

}  // namespace vigil::model
