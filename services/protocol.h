// The forms of messages that this build speaks with others of its fleet.
#pragma once

#include "cluster/membership/node_record.h"

namespace vigil::services {

/// Not compiled into the command: tests link the program with those of the next version, too
/// (tests/fleet/next_protocol.cpp), and upgrade a fleet to it.
extern const cluster::ProtocolRange kProtocol;

}  // namespace vigil::services
