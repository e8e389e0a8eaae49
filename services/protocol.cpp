#include "services/protocol.h"

namespace vigil::services {

const cluster::ProtocolRange kProtocol{1, 1};

}  // namespace vigil::services
