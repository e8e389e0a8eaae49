#include "engine/run/token_transfer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/run/vision_encoder.h"
#include "kernels/device/buffer.h"
#include "kernels/device/error.h"

namespace vigil::run {
namespace {

template <typename Copy>
void guarded(const Copy& copy) {
  try {
    copy();
  } catch (const kernels::DeviceError& error) {
    if (error.lost()) throw DeviceLost(error.what());
    throw;
  }
}

}  // namespace

std::shared_ptr<model::VisualTokens> tokens_with(const model::VisualTokens& like,
                                                 kernels::Buffer embeddings) {
  auto made = std::make_shared<model::VisualTokens>();
  made->embeddings = std::move(embeddings);
  made->dtype = like.dtype;
  made->width = like.width;
  made->kept = like.kept;
  made->standing_out = like.standing_out;
  made->seconds = like.seconds;
  made->duration = like.duration;
  made->intra = like.intra;
  made->encoded = like.encoded;
  return made;
}

TokenTransfer::TokenTransfer(kernels::Stream stream)
    : device_(std::move(stream)), host_(kernels::Stream::cpu(1)) {}

model::VisualTokensPtr TokenTransfer::to_host(const model::VisualTokensPtr& tokens) const {
  if (!tokens || tokens->bytes() == 0 || device_.kind() == kernels::DeviceKind::cpu) return tokens;
  const auto made = tokens_with(*tokens, kernels::Buffer(host_, tokens->bytes()));
  guarded([&] {
    kernels::download(device_, made->embeddings.data(), tokens->embeddings.data(), tokens->bytes());
  });
  return made;
}

model::VisualTokensPtr TokenTransfer::to_device(const model::VisualTokensPtr& tokens) const {
  if (!tokens || tokens->bytes() == 0 || device_.kind() == kernels::DeviceKind::cpu) return tokens;
  const auto made = tokens_with(*tokens, kernels::Buffer(device_, tokens->bytes()));
  guarded([&] {
    kernels::upload(device_, made->embeddings.data(), tokens->embeddings.data(), tokens->bytes());
    // Memory comes in the order of this stream, and is read on others.
    device_.synchronize();
  });
  return made;
}

model::VisualTokensPtr host_tokens(model::VisualTokens like, std::span<const std::byte> embeddings) {
  auto made = std::make_shared<model::VisualTokens>(std::move(like));
  made->embeddings = kernels::Buffer(kernels::Stream::cpu(1), embeddings.size());
  std::copy(embeddings.begin(), embeddings.end(), made->embeddings.data());
  return made;
}

}  // namespace vigil::run
