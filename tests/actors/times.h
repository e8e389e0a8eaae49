// The wall-clock time at which the streams of these tests begin.

#pragma once

#include <chrono>

#include "base/clock.h"

namespace vigil::actors {

inline constexpr base::Clock::WallTime kStart{std::chrono::seconds(1785578400)};

}  // namespace vigil::actors
