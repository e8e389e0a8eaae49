#include "engine/run/parallel_encoder.h"

#include <algorithm>
#include <utility>

#include "engine/run/token_transfer.h"

namespace vigil::run {
namespace {

/// Pixels of a patch that are encoded, which its work grows with.
std::int64_t size_of(const PatchFrames& patch) {
  if (patch.frames.empty()) return 0;
  const std::int64_t pixels = std::int64_t{patch.frames.front().width} * patch.frames.front().height;
  return patch.encoded && patch.encoded->cells() > 0
             ? pixels * patch.encoded->count() / patch.encoded->cells()
             : pixels;
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

std::size_t ParallelEncoder::tower_of(const std::string& camera) {
  const std::lock_guard lock(mutex_);
  if (const auto known = tower_of_.find(camera); known != tower_of_.end()) return known->second;
  std::vector<std::size_t> cameras(towers_.size(), 0);
  for (const auto& [name, tower] : tower_of_) ++cameras[tower];
  const auto fewest =
      static_cast<std::size_t>(std::min_element(cameras.begin(), cameras.end()) - cameras.begin());
  tower_of_.emplace(camera, fewest);
  return fewest;
}

void ParallelEncoder::forget(const std::string& camera) {
  for (const auto& tower : towers_) tower->forget(camera);
  const std::lock_guard lock(mutex_);
  tower_of_.erase(camera);
}

std::vector<std::vector<std::size_t>> ParallelEncoder::shares(std::span<const PatchFrames> patches) {
  std::vector<std::vector<std::size_t>> shares(towers_.size());
  std::vector<std::int64_t> sizes(towers_.size(), 0);
  const auto give = [&](std::size_t patch, std::size_t tower) {
    shares[tower].push_back(patch);
    sizes[tower] += size_of(patches[patch]);
  };
  const auto is_bound = [](const PatchFrames& patch) { return patch.kept && !patch.camera.empty(); };
  for (std::size_t i = 0; i < patches.size(); ++i)
    if (is_bound(patches[i])) give(i, tower_of(patches[i].camera));
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < patches.size(); ++i)
    if (!is_bound(patches[i])) others.push_back(i);
  // The largest first, each to whom has least.
  std::stable_sort(others.begin(), others.end(),
                   [&](std::size_t a, std::size_t b) { return size_of(patches[a]) > size_of(patches[b]); });
  for (const std::size_t i : others)
    give(i, static_cast<std::size_t>(std::min_element(sizes.begin(), sizes.end()) - sizes.begin()));
  for (std::vector<std::size_t>& share : shares) std::sort(share.begin(), share.end());
  return shares;
}

std::vector<model::VisualTokensPtr> ParallelEncoder::encode(std::span<const PatchFrames> patches) {
  const std::vector<std::vector<std::size_t>> mine = shares(patches);
  std::vector<std::vector<model::VisualTokensPtr>> parts(towers_.size());
  team_.run(
      [&](int rank) {
        const auto at = static_cast<std::size_t>(rank);
        std::vector<PatchFrames> share;
        for (const std::size_t i : mine[at]) share.push_back(patches[i]);
        if (!share.empty()) parts[at] = towers_[at]->encode(share);
      },
      [] {});
  // Rows of a pass are put together on the first GPU, which may not be able to read the others' memory.
  const bool on_cpu = streams_.front().kind() == kernels::DeviceKind::cpu;
  std::vector<model::VisualTokensPtr> encoded(patches.size());
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    for (std::size_t i = 0; i < parts[rank].size(); ++i)
      encoded[mine[rank][i]] =
          rank == 0 || on_cpu ? std::move(parts[rank][i]) : bring(*parts[rank][i], streams_[rank]);
  if (parts.size() > 1) streams_.front().synchronize();
  return encoded;
}

model::VisualTokensPtr ParallelEncoder::bring(const model::VisualTokens& tokens,
                                              const kernels::Stream& from) const {
  auto brought = tokens_with(tokens, kernels::Buffer(streams_.front(), tokens.embeddings.bytes()));
  kernels::copy_across(from, tokens.embeddings.data(), streams_.front(), brought->embeddings.data(),
                       tokens.embeddings.bytes());
  return brought;
}

}  // namespace vigil::run
