// Devices as a configuration names them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace vigil::config {

/// The GPUs of one device, in their order; none: the CPU.
using Gpus = std::vector<int>;

/// The devices of "cpu", "cuda" (the first GPU), "cuda:2", "cuda:0+1" (GPUs that share one model, at most 8),
/// or of several of these with commas. Nothing for other words, and where a GPU or the CPU is named twice.
std::optional<std::vector<Gpus>> parse_devices(std::string_view text);

}  // namespace vigil::config
