#include "engine/run/passes.h"

#include <stdexcept>

namespace vigil::run {

std::unique_ptr<SequencePast> Passes::make_past(const past::PastOptions& /*options*/) {
  throw std::logic_error("these passes see no past");
}

}  // namespace vigil::run
