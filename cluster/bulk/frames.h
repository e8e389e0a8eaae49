// Frames on ZeroMQ's sockets, without copying them.
#pragma once

#include <vector>

#include <zmq.hpp>

#include "cluster/bulk/wire.h"

namespace vigil::cluster {

/// Sends them as one message of that many parts; false, and nothing is sent, if the socket cannot take it
/// now. The socket keeps the bytes' owners until they are sent, or never will be.
bool send_frames(zmq::socket_t& socket, Frames frames);

/// What was received; the bytes stay where they are.
Frames frames_of(std::vector<zmq::message_t> parts);

}  // namespace vigil::cluster
