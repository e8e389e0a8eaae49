// How long a configuration has what its cameras saw remembered.
#pragma once

#include "actors/messages/remembered.h"
#include "config/settings.h"

namespace vigil::actors {

/// Of all of its cameras, those that are off among them.
Keeps keeps_of(const config::Settings& settings);

}  // namespace vigil::actors
