#include "engine/model/layers/limits.h"

#include <cstdint>
#include <string>

#include "engine/model/files/error.h"
#include "kernels/attention/attention.h"
#include "kernels/collective/collective.h"
#include "kernels/linear/linear.h"
#include "kernels/patches/patches.h"

namespace vigil::model {
namespace {

constexpr const char* kAnywhere = "";
constexpr const char* kOnGpu = " on a GPU";
constexpr const char* kShared = " by devices that share a model";

[[noreturn]] void refuse(const std::string& what) {
  throw ModelError("config.json: " + what);
}

void at_most(std::int64_t value, std::int64_t most, const std::string& what, const char* where) {
  if (value > most)
    refuse(what + " " + std::to_string(value) + " is not supported" + where + ", at most " +
           std::to_string(most) + " is");
}

void at_least(std::int64_t value, std::int64_t least, const std::string& what, const char* where) {
  if (value < least)
    refuse(what + " " + std::to_string(value) + " is not supported" + where + ", at least " +
           std::to_string(least) + " is");
}

void multiple_of(std::int64_t value, std::int64_t divisor, const std::string& what, const std::string& of) {
  if (value % divisor != 0)
    refuse(what + " " + std::to_string(value) + " is not supported, multiples of " + of +
           std::to_string(divisor) + " are");
}

}  // namespace

void check_limits(const TextConfig& config, kernels::DeviceKind device, int ranks) {
  at_least(config.hidden_size, 1, "hidden_size", kAnywhere);
  at_least(config.intermediate_size, 1, "intermediate_size", kAnywhere);
  at_least(config.num_hidden_layers, 1, "num_hidden_layers", kAnywhere);
  at_least(config.vocab_size, 1, "vocab_size", kAnywhere);
  at_least(config.num_key_value_heads, 1, "num_key_value_heads", kAnywhere);
  at_least(config.num_attention_heads, 1, "num_attention_heads", kAnywhere);
  multiple_of(config.num_attention_heads, config.num_key_value_heads, "num_attention_heads",
              "num_key_value_heads ");
  const std::string width = "the head width (hidden_size / num_attention_heads)";
  at_least(config.head_dim, 2, width, kAnywhere);
  multiple_of(config.head_dim, 2, width, "");
  // As many rotary pairs are made as the sections have, and as many are read as half a head has.
  std::int64_t pairs = 0;
  for (const int of_axis : config.mrope_section) {
    at_least(of_axis, 0, "a number in mrope_section,", kAnywhere);
    pairs += of_axis;
  }
  if (2 * pairs != config.head_dim)
    refuse("mrope_section, which adds up to " + std::to_string(pairs) + ", is not supported, " +
           std::to_string(config.head_dim / 2) + " is, half of the head width");
  if (device == kernels::DeviceKind::cuda)
    at_most(config.head_dim, kernels::kMostHeadDimOnGpu, width, kOnGpu);
  if (ranks > 1) {
    at_most(config.hidden_size, kernels::kMostSumColumns, "hidden_size", kShared);
    // Each has logits to look for the largest in.
    at_least(config.vocab_size, (ranks - 1) * kernels::linear_multiple(device) + 1, "vocab_size", kShared);
  }
}

void check_limits(const VisionConfig& config, kernels::DeviceKind device) {
  const auto named = [](const char* key) { return "the vision tower's " + std::string(key); };
  at_least(config.hidden_size, 1, named("hidden_size"), kAnywhere);
  at_least(config.intermediate_size, 1, named("intermediate_size"), kAnywhere);
  at_least(config.out_hidden_size, 1, "out_hidden_size", kAnywhere);
  at_least(config.num_heads, 1, named("num_heads"), kAnywhere);
  multiple_of(config.hidden_size, config.num_heads, named("hidden_size"), "num_heads ");
  const std::string width = named("head width (hidden_size / num_heads)");
  // Half of the rotary pairs turn by a patch's row, half by its column.
  multiple_of(config.head_dim(), 4, width, "");
  at_least(config.in_channels, 3, "in_channels", kAnywhere);
  at_most(config.in_channels, 3, "in_channels", kAnywhere);
  at_least(config.patch_size, 1, "patch_size", kAnywhere);
  at_least(config.temporal_patch_size, 1, "temporal_patch_size", kAnywhere);
  at_least(config.spatial_merge_size, 1, "spatial_merge_size", kAnywhere);
  // A window has a merged square at least.
  at_least(config.window_size, std::int64_t{config.patch_size} * config.spatial_merge_size, "window_size",
           kAnywhere);
  if (device != kernels::DeviceKind::cuda) return;
  at_most(config.head_dim(), kernels::kMostHeadDimOnGpu, width, kOnGpu);
  at_most(config.num_heads, kernels::kMostSegmentHeadsOnGpu, named("num_heads"), kOnGpu);
  at_most(config.temporal_patch_size, kernels::kMostFramesOnGpu, "temporal_patch_size", kOnGpu);
}

}  // namespace vigil::model
