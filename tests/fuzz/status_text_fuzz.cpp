// Any bytes as the answer of something that may be no `vigil run`: a text without control characters, or
// nothing.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "actors/status/status_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = vigil::actors::status_text(std::string(reinterpret_cast<const char*>(data), size));
  if (!text) return 0;
  for (const char c : *text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < 0x20 && c != '\n') || byte == 0x7f) std::abort();
  }
  return 0;
}
