// Any bytes as a safetensors file: either one line of error, or tensors that can be read to their last byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "engine/model/files/error.h"
#include "engine/model/files/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vigil::model;
  // A copy of its own size and alignment: a read past the end is seen.
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  try {
    const auto file = SafetensorsFile::parse(bytes, "fuzz");
    unsigned sum = 0;
    for (const auto& [name, tensor] : file->tensors()) {
      if (tensor.bytes() > size) std::abort();
      for (std::size_t i = 0; i < tensor.bytes(); ++i) sum += static_cast<unsigned>(tensor.data[i]);
      if (file->find(name) != &tensor) std::abort();
    }
    volatile unsigned keep = sum;
    (void)keep;
  } catch (const ModelError& error) {
    if (std::strchr(error.what(), '\n') != nullptr || std::strlen(error.what()) > 2000) std::abort();
  }
  return 0;
}
