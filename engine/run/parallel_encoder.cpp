#include "engine/run/parallel_encoder.h"

#include <utility>

namespace vigil::run {
namespace {

/// Pixels of a patch that are encoded, which its work grows with.
std::int64_t size_of(const PatchFrames& patch) {
  if (patch.frames.empty()) return 0;
  const std::int64_t pixels = std::int64_t{patch.frames.front().width} * patch.frames.front().height;
  return patch.groups && patch.groups->cells() > 0 ? pixels * patch.groups->count() / patch.groups->cells()
                                                   : pixels;
}

/// Neighbouring patches for each of `count` towers, of about the same size together: the i-th takes
/// [bounds[i], bounds[i + 1]).
std::vector<std::size_t> shares(std::span<const PatchFrames> patches, std::size_t count) {
  std::int64_t all = 0;
  for (const PatchFrames& patch : patches) all += size_of(patch);
  std::vector<std::size_t> bounds{0};
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    // A patch belongs to the tower in whose share its middle lies.
    const std::int64_t middle = 2 * sum + size_of(patches[i]);
    while (bounds.size() < count &&
           middle * static_cast<std::int64_t>(count) >= 2 * all * static_cast<std::int64_t>(bounds.size()))
      bounds.push_back(i);
    sum += size_of(patches[i]);
  }
  bounds.resize(count + 1, patches.size());
  return bounds;
}

}  // namespace

ParallelEncoder::ParallelEncoder(const std::shared_ptr<const model::ModelFolder>& folder,
                                 kernels::DType compute, const std::vector<kernels::Stream>& streams,
                                 model::Quantization quantization, kernels::DType embeddings)
    : streams_(streams), towers_(streams.size()), team_(static_cast<int>(streams.size())) {
  team_.run(
      [&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        towers_[at] = std::make_unique<TowerEncoder>(folder, compute, streams[at], quantization, embeddings);
      },
      [] {});
}

std::vector<model::VisualTokensPtr> ParallelEncoder::encode(std::span<const PatchFrames> patches) {
  const std::vector<std::size_t> bounds = shares(patches, towers_.size());
  std::vector<std::vector<model::VisualTokensPtr>> parts(towers_.size());
  team_.run(
      [&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        const auto share = patches.subspan(bounds[at], bounds[at + 1] - bounds[at]);
        if (!share.empty()) parts[at] = towers_[at]->encode(share);
      },
      [] {});
  // Rows of a pass are put together on the first GPU, which may not be able to read the others' memory.
  const bool on_cpu = streams_.front().kind() == kernels::DeviceKind::cpu;
  std::vector<model::VisualTokensPtr> encoded;
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    for (model::VisualTokensPtr& tokens : parts[rank])
      encoded.push_back(rank == 0 || on_cpu ? std::move(tokens) : bring(*tokens, streams_[rank]));
  if (parts.size() > 1) streams_.front().synchronize();
  return encoded;
}

model::VisualTokensPtr ParallelEncoder::bring(const model::VisualTokens& tokens,
                                              const kernels::Stream& from) const {
  auto brought = std::make_shared<model::VisualTokens>();
  brought->embeddings = kernels::Buffer(streams_.front(), tokens.embeddings.bytes());
  kernels::copy_across(from, tokens.embeddings.data(), streams_.front(), brought->embeddings.data(),
                       tokens.embeddings.bytes());
  brought->dtype = tokens.dtype;
  brought->width = tokens.width;
  brought->groups = tokens.groups;
  brought->seconds = tokens.seconds;
  brought->duration = tokens.duration;
  brought->intra = tokens.intra;
  return brought;
}

}  // namespace vigil::run
