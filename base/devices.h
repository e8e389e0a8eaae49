// Devices as a configuration names them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace vigil::base {

/// The GPUs of one device, in their order; none: the CPU.
using Gpus = std::vector<int>;

/// The devices of "cpu", "cuda" (the first GPU), "cuda:2", "cuda:0+1" (GPUs that share one model, at most 8),
/// or of several of these with commas. Nothing for other words, and where a GPU or the CPU is named twice.
std::optional<std::vector<Gpus>> parse_devices(std::string_view text);

/// A GPU of `decode` that `device` names, too, where it must not: who generates apart from who prefills has
/// GPUs of its own. Passes of two models on GPUs that both have may wait for each other for ever, and one GPU
/// has nothing to gain from a second copy. A device that is the same in both is one model. Nothing if there
/// is no such GPU.
std::optional<int> gpu_of_both(const std::vector<Gpus>& device, const std::vector<Gpus>& decode);

}  // namespace vigil::base
