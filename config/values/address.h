// Where servers listen, as people write it: endpoints of ZeroMQ and HOST:PORT.
#pragma once

#include <string>
#include <string_view>

namespace vigil::config {

/// Whether a text is a port, 1 to 65535, and nothing else.
bool is_port(std::string_view text);

/// Where a server that publishes on `bind` replays unless it is told otherwise: the next port, or the path
/// with ".replay" behind it. Empty if there is no next port.
std::string endpoint_next_to(const std::string& bind);

/// Whether HOST:PORT is reached from this machine alone.
bool is_loopback_address(std::string_view listen);

/// Whether HOST:PORT is every address of this machine: one to listen on, and none to be told others.
bool is_every_address(std::string_view listen);

}  // namespace vigil::config
