// What a model folder holds, what it needs, and whether it can be used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/files/calibration.h"
#include "engine/model/files/config.h"
#include "engine/model/vision/picture.h"

namespace vigil::model {

/// A file of weights.
struct WeightsFile {
  std::string name;
  std::uint64_t bytes = 0;
};

/// What a window of video costs at one size of the camera's picture.
struct WindowCost {
  PictureSize source;
  /// After the published resizing.
  PictureSize frame;
  /// Visual tokens of one temporal patch, and of the whole window.
  std::int64_t tokens_per_patch = 0;
  std::int64_t tokens = 0;
};

struct FolderReport {
  std::string folder;
  /// Absent if `config.json` cannot be used; then nothing below is known but the problems.
  std::optional<ModelConfig> config;
  std::uint64_t vision_parameters = 0;
  std::uint64_t text_parameters = 0;

  /// Empty, or absent, where the weights cannot be read.
  std::vector<WeightsFile> files;
  std::uint64_t tensors = 0;
  std::uint64_t weights_bytes = 0;
  /// Tensors by element type.
  std::map<std::string, std::uint64_t> tensor_types;

  /// Ids of the tokenizer: one more than the largest. 0 without one.
  std::int32_t tokenizer_ids = 0;
  std::vector<std::int32_t> end_token_ids;
  /// Absent if the folder has none, or one that cannot be read.
  std::optional<Calibration> calibration;

  /// Keys and values of one token over all layers, at two bytes an element (bf16).
  std::uint64_t kv_bytes_per_token = 0;
  double window_seconds = 40;
  double frames_per_second = 2;
  std::vector<WindowCost> windows;

  /// One line each. With problems the model does not load, or cannot be asked.
  std::vector<std::string> problems;
  /// One line each, about what is unusual.
  std::vector<std::string> warnings;

  bool loads() const { return problems.empty(); }
};

/// Looks at every part of the folder, also after one was found broken. Reads headers and settings, not the
/// weights themselves.
FolderReport check_folder(const std::filesystem::path& folder);

}  // namespace vigil::model
