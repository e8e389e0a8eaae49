// Golden files: what Hugging Face transformers computed with a model folder. `tools/golden.py` makes them and
// says what they hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "engine/model/files/safetensors.h"
#include "engine/model/vision/picture.h"

namespace vigil::model {

/// Row-major f32 values.
struct GoldenMatrix {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::vector<float> values;

  std::span<const float> row(std::int64_t i) const {
    return std::span(values).subspan(static_cast<std::size_t>(i * cols), static_cast<std::size_t>(cols));
  }
};

/// One prompt, and the oracle's float32 results. What belongs to pictures is empty in a case of text.
struct GoldenCase {
  enum class Kind : std::uint8_t { text, image, video };

  std::string name;
  Kind kind = Kind::text;
  /// The prompt with one placeholder a picture; empty if the folder had no tokenizer.
  std::string prompt;
  /// Of a video: frames a second, and seconds that a temporal patch covers. Else 0.
  double fps = 0;
  double seconds_per_grid = 0;

  /// With one placeholder for each visual token.
  std::vector<std::int32_t> input_ids;
  /// Temporal, height and width position of each id.
  std::array<std::vector<std::int32_t>, 3> position_ids;

  /// Frames before preprocessing, [frames, height, width, 3], tightly packed.
  std::vector<std::uint8_t> pixels;
  std::int64_t frames = 0;
  PictureSize size;
  /// After preprocessing, [patches, channels * temporal * patch * patch].
  GoldenMatrix pixel_values;
  /// Patches in time, height and width.
  std::array<std::int32_t, 3> grid = {0, 0, 0};
  /// The merger's output at the tokens `vision_rows` (ascending).
  std::vector<std::int32_t> vision_rows;
  GoldenMatrix vision_embeddings;

  /// Positions in the prompt, ascending, the last one among them; the hidden states there after the final
  /// norm, and their logits.
  std::vector<std::int32_t> rows;
  GoldenMatrix hidden;
  GoldenMatrix logits;

  /// Argmax of each step, end tokens ignored; first minus second logit of each step.
  std::vector<std::int32_t> greedy_tokens;
  std::vector<float> greedy_gap;

  /// How far transformers' own bfloat16 is from its float32: |difference| / |float32|.
  float vision_bf16_error = 0;
  float logits_bf16_error = 0;

  /// A view on one frame; valid as long as this case.
  PictureView frame(std::int64_t index) const;
};

struct GoldenFile {
  /// The folder's name, the versions that computed, and the code that preprocessed.
  std::string model;
  std::string transformers;
  std::string torch;
  std::string processor;
  std::vector<GoldenCase> cases;
};

/// Reads and checks a golden file; everything is copied, so the file may go away. Throws ModelError that
/// names the file and the tensor or the key: another format, a missing tensor, a wrong type, shapes and
/// indexes that do not fit each other.
GoldenFile read_golden(const std::filesystem::path& path);

/// The same from an open file.
GoldenFile read_golden(const SafetensorsFile& file);

}  // namespace vigil::model
