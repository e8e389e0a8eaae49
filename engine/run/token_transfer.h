// Visual tokens on their way from the tower of one process to the language model of another.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "engine/model/vision/visual_tokens.h"
#include "kernels/device/buffer.h"
#include "kernels/device/stream.h"

namespace vigil::run {

/// Copies them between a device and the host. One caller at a time, whatever else computes on the device.
/// Throws DeviceLost as whatever computes there does (vision_encoder.h).
class TokenTransfer {
 public:
  /// The stream is its own.
  explicit TokenTransfer(kernels::Stream stream);

  /// The same tokens in the host's memory, complete when it returns. On the CPU, the very same.
  model::VisualTokensPtr to_host(const model::VisualTokensPtr& tokens) const;
  /// And back. Throws std::bad_alloc where the device has no room for them.
  model::VisualTokensPtr to_device(const model::VisualTokensPtr& tokens) const;

 private:
  kernels::Stream device_;
  kernels::Stream host_;
};

/// All but the embeddings of tokens, with others in their place.
std::shared_ptr<model::VisualTokens> tokens_with(const model::VisualTokens& like, kernels::Buffer embeddings);

/// Tokens in the host's memory: all but the embeddings are those of `like`, which has none, and these are a
/// copy of its `bytes()`.
model::VisualTokensPtr host_tokens(model::VisualTokens like, std::span<const std::byte> embeddings);

}  // namespace vigil::run
