// Frames on ZeroMQ's sockets, without copying them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <zmq.hpp>

#include "cluster/bulk/wire.h"

namespace vigil::cluster {

/// Sends them as one message of that many parts; false, and nothing is sent, if the socket cannot take it
/// now. The socket keeps the bytes' owners until they are sent, or never will be.
bool send_frames(zmq::socket_t& socket, Frames frames);

/// Received and waiting, for all sockets of a port. ZeroMQ ends the process when a connection breaks that it
/// has stopped to read, and a heartbeat is due (src/stream_engine_base.cpp, out_event): it never stops, since
/// whoever sends more than was granted is hung up on, and heartbeats are ours. A mark of messages would bound
/// no bytes.
inline constexpr int kNoMark = 0;

enum class Taken : std::uint8_t { nothing, whole, too_many };
/// The next message that has come. Of one of more than `most` parts the first are kept; the others are let go
/// one by one.
Taken take_message(zmq::socket_t& socket, std::vector<zmq::message_t>& parts, std::size_t most);

/// What was received; the bytes stay where they are.
Frames frames_of(std::vector<zmq::message_t> parts);

}  // namespace vigil::cluster
