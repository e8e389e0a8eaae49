#include "engine/model/limits.h"

#include <cstdint>
#include <string>

#include "engine/model/error.h"
#include "kernels/attention/attention.h"
#include "kernels/collective/collective.h"
#include "kernels/patches/patches.h"

namespace vigil::model {
namespace {

void require(std::int64_t value, std::int64_t most, const std::string& what, const std::string& where) {
  if (value > most)
    throw ModelError("config.json: " + what + " " + std::to_string(value) + " is not supported " + where +
                     ", at most " + std::to_string(most) + " is");
}

constexpr const char* kOnGpu = "on a GPU";

}  // namespace

void check_limits(const TextConfig& config, kernels::DeviceKind device, int ranks) {
  if (device == kernels::DeviceKind::cuda)
    require(config.head_dim, kernels::kMostHeadDimOnGpu, "the head width", kOnGpu);
  if (ranks > 1)
    require(config.hidden_size, kernels::kMostSumColumns, "hidden_size", "by devices that share a model");
}

void check_limits(const VisionConfig& config, kernels::DeviceKind device) {
  if (device != kernels::DeviceKind::cuda) return;
  require(config.head_dim(), kernels::kMostHeadDimOnGpu, "the vision tower's head width", kOnGpu);
  require(config.num_heads, kernels::kMostSegmentHeadsOnGpu, "the vision tower's num_heads", kOnGpu);
  require(config.temporal_patch_size, kernels::kMostFramesOnGpu, "temporal_patch_size", kOnGpu);
}

}  // namespace vigil::model
