// --device and --quantization, for every command that computes.
#pragma once

#include <optional>

#include <CLI/CLI.hpp>

#include "engine/model/quantization.h"
#include "engine/window/device.h"

namespace vigil::services {

/// Adds `--decode-device`.
void add_decode_device(CLI::App& command, std::optional<window::Device>& device);

/// Adds `--device` to a command; `device` holds the default and receives the choice.
void add_device(CLI::App& command, window::Device& device);

/// Adds `--quantization` to a command; `quantization` holds the default and receives the choice.
void add_quantization(CLI::App& command, model::Quantization& quantization);

}  // namespace vigil::services
