// Any text is either a config.json that the engine understands, or a ModelError.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "engine/model/config.h"
#include "engine/model/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    vigil::model::parse_config({reinterpret_cast<const char*>(data), size}, "input");
  } catch (const vigil::model::ModelError&) {
  }
  return 0;
}
