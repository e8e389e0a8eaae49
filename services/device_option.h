// What a command computes on and in: --device, --decode-device, --dtype, --quantization, --threads.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/engine.h"
#include "engine/model/layers/quantization.h"
#include "engine/run/device.h"

namespace vigil::services {

/// Adds `--device` to a command; `device` holds the default and receives the choice.
void add_device(CLI::App& command, run::Device& device);

/// Adds `--quantization` to a command; `quantization` holds the default and receives the choice.
void add_quantization(CLI::App& command, model::Quantization& quantization);

/// Adds both and all else that commands with an engine of their own let one choose of it, but for the KV
/// cache: `--decode-device`, `--dtype` and `--threads`.
void add_compute(CLI::App& command, engine::EngineOptions& options);

/// Throws UsageError for a `--decode-device` that does not go with `--device`.
void check_compute(const engine::EngineOptions& options);

}  // namespace vigil::services
