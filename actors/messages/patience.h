// How much may be under way between a device and whoever hears its answers, and for how long that is
// remembered.
#pragma once

#include <cstdint>

#include "actors/messages/data.h"

namespace vigil::actors {

/// Windows of a device that may be answered and not passed on yet: what alerts, or a dock, grants it.
constexpr std::uint32_t kWindowsUnderWay = 64;

/// What was asked of a device that has failed is not answered, not even late: after this it is forgotten.
constexpr base::Duration kExplanationForgotten = 2 * kExplanationPatience;

}  // namespace vigil::actors
