// The program of the next version, as far as a fleet can tell: it speaks one more form of messages. With
// VIGIL_TEST_OLDEST=2 it is of the one after that, and does not speak the first form any more.
#include <cstdlib>

#include "services/protocol.h"

namespace vigil::services {
namespace {

cluster::ProtocolRange spoken() {
  const char* const oldest = std::getenv("VIGIL_TEST_OLDEST");  // NOLINT(concurrency-mt-unsafe)
  return {oldest == nullptr ? 1U : static_cast<std::uint32_t>(std::strtoul(oldest, nullptr, 10)), 2};
}

}  // namespace

const cluster::ProtocolRange kProtocol = spoken();

}  // namespace vigil::services
