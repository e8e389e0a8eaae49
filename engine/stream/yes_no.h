// How likely a model says "Yes".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/model/files/calibration.h"
#include "engine/model/model_folder.h"

namespace vigil::stream {

/// The ids of "Yes" and "No" in the spellings that the vocabulary has as one token, and the calibration of
/// the model's folder. Immutable.
class YesNo {
 public:
  /// Throws ModelError for a tokenizer that has no token for one of the two.
  explicit YesNo(const model::ModelFolder& folder);

  /// P("Yes") / (P("Yes") + P("No")), calibrated, by the logits [vocabulary] of an answer's first token.
  float probability(std::span<const float> logits) const;

 private:
  std::vector<std::int32_t> yes_, no_;
  model::Calibration calibration_;
};

}  // namespace vigil::stream
