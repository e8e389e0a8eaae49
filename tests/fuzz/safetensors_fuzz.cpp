// Any bytes either are a safetensors file, all of whose tensors can be read, or a ModelError.
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/model/error.h"
#include "engine/model/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vigil::model;
  try {
    const auto file = SafetensorsFile::parse(std::as_bytes(std::span(data, size)), "input");
    for (const auto& [name, tensor] : file->tensors()) {
      volatile std::byte read{};
      for (std::size_t i = 0; i < tensor.bytes(); ++i) read = tensor.data[i];
    }
  } catch (const ModelError&) {
  }
  return 0;
}
