// --device, for every command that computes.
#pragma once

#include <CLI/CLI.hpp>

#include "engine/window/device.h"

namespace vigil::services {

/// Adds `--device` to a command; `device` holds the default and receives the choice.
void add_device(CLI::App& command, window::Device& device);

}  // namespace vigil::services
