// A checkpoint against a golden file: how a user comes to trust a model folder, part by part.
#pragma once

#include <string>
#include <vector>

#include "engine/model/model_folder.h"
#include "engine/model/verify/golden.h"
#include "kernels/device/dtype.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// One comparison with transformers' float32.
struct VerifiedPart {
  std::string case_name;
  /// "preprocessing", "vision", "positions", "logits" or "greedy".
  std::string part;
  /// preprocessing: largest |difference|; vision, logits: |difference| / |golden| over all values; positions:
  /// differing ones; greedy: the largest shortfall of the golden token's logit behind our best one, relative
  /// to the logits' root mean square.
  double error = 0;
  double limit = 0;
  /// Where transformers' own bfloat16 lies for the same part; negative if the golden file does not tell.
  double transformers_bf16 = -1;
  /// Of 64, for greedy.
  int equal_tokens = -1;

  /// False for NaN too.
  bool passed() const { return error <= limit; }
};

struct VerifyOptions {
  /// f32 or bf16.
  kernels::DType compute = kernels::DType::f32;
  Quantization quantization = Quantization::none;
  /// Rows of one forward pass of a prompt; small values exercise chunked prefill.
  std::int64_t chunk = 512;
  /// Tokens of a KV page.
  int page_tokens = 64;
};

/// Runs every case of the golden file. The prompt's tokens and pictures come from the file; what follows is
/// computed here: preprocessing from the raw frames, the vision tower from the file's own pixel values,
/// positions, logits at the file's rows, and 64 greedy steps along the file's tokens. Throws ModelError for a
/// golden file that does not belong to the folder.
std::vector<VerifiedPart> verify(const ModelFolder& folder, const GoldenFile& golden, kernels::Stream& stream,
                                 const VerifyOptions& options);

}  // namespace vigil::model
