// The program of the next version, as far as a fleet can tell: it speaks one more form of messages.
#include "services/protocol.h"

namespace vigil::services {

const cluster::ProtocolRange kProtocol{1, 2};

}  // namespace vigil::services
