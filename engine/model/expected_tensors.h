// The tensors that a configuration calls for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/model/files/config.h"
#include "engine/model/files/weights.h"

namespace vigil::model {

struct ExpectedTensor {
  /// As transformers 5 names it (see `Weights::get`).
  std::string name;
  std::vector<std::int64_t> shape;

  std::uint64_t elements() const;
};

/// Every tensor that the vision tower needs.
std::vector<ExpectedTensor> expected_vision_tensors(const VisionConfig& vision);
/// Every tensor that the decoder needs, its head included unless it is tied to the embeddings.
std::vector<ExpectedTensor> expected_text_tensors(const TextConfig& text);

/// How weights differ from what their configuration calls for.
struct TensorFindings {
  /// One line for each tensor that is missing or has a wrong shape or type; such a model does not load.
  std::vector<std::string> problems;
  /// Tensors that nothing uses.
  std::vector<std::string> unused;
};

TensorFindings check_tensors(const Weights& weights, const ModelConfig& config);

}  // namespace vigil::model
