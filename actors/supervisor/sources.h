// What the inputs of a camera need to be opened and read.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/supervisor/dialer.h"

namespace vigil::actors {

/// With its credentials, and as it is shown.
config::MaskedText address_of(const config::CameraSettings& camera, config::Role role);

/// `can_ask`: there is somebody who asks servers.
Dialer::Way way_of(const std::string& url, bool can_ask);

/// File descriptors that reading an input takes, as a rule.
std::size_t descriptors_of(const config::CameraSettings& camera, config::Role role);

/// How many of these cameras can be watched at once with so many descriptors for all of their inputs.
std::size_t cameras_within(std::size_t descriptors, const std::vector<CameraPtr>& cameras, bool recorded);

}  // namespace vigil::actors
