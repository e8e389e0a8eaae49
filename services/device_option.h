// --device, --decode-device and --quantization, for commands that compute.
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

#include "engine/model/quantization.h"
#include "engine/window/device.h"

namespace vigil::services {

/// Adds `--device` to a command; `device` holds the default and receives the choice.
void add_device(CLI::App& command, window::Device& device);

/// Adds `--decode-device`; absent unless it is given.
void add_decode_device(CLI::App& command, std::optional<window::Device>& device);

/// Throws UsageError if `--decode-device` does not go with `--device`.
void check_decode_device(const window::Device& device, const std::optional<window::Device>& decode);

/// Adds `--quantization` to a command; `quantization` holds the default and receives the choice.
void add_quantization(CLI::App& command, model::Quantization& quantization);

}  // namespace vigil::services
