// How long a node waits for others.
#pragma once

#include <chrono>

namespace vigil::fleet {

/// For an answer of a node to which there is a way.
inline constexpr std::chrono::seconds kGreetingPatience{5};

}  // namespace vigil::fleet
