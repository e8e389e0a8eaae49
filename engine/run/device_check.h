// Whether a device is there, without taking anything of it.
#pragma once

#include <string>

#include "engine/run/device.h"

namespace vigil::run {

/// Why nothing can be computed on it, in one line; empty if it is there. What it has room for is not looked
/// at.
std::string fault_of(const Device& device);

}  // namespace vigil::run
