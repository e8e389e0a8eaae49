// The safetensors format: an 8-byte header length, a JSON header, then the bytes of the tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/dtype.h"

namespace vigil::model {

/// A tensor that lies in a mapped file. Valid as long as its `SafetensorsFile` lives; `data` is aligned to
/// the element's size.
struct TensorView {
  const std::byte* data = nullptr;
  kernels::DType dtype = kernels::DType::f32;
  /// Outermost first; empty for a scalar.
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * kernels::size_of(dtype); }
};

/// One mapped `.safetensors` file. The header is untrusted: lengths past the end, overlapping ranges, huge
/// counts, shapes that do not match their byte ranges, repeated names and misaligned tensors are rejected
/// before any tensor can be read. Holes between tensors are allowed. Immutable, thread-safe. A file that is
/// cut while it is mapped ends the process (SIGBUS), as with any map.
class SafetensorsFile {
 public:
  /// Maps the file. Throws ModelError naming the file and, where there is one, the tensor.
  static std::shared_ptr<const SafetensorsFile> open(const std::filesystem::path& path);

  /// Reads from bytes in memory that the caller keeps alive (tests, fuzzing); `name` stands in messages.
  static std::shared_ptr<const SafetensorsFile> parse(std::span<const std::byte> bytes, std::string name);

  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  const std::string& name() const;
  /// The tensor, or null if the file lacks it. Throws ModelError for one whose element type the engine does
  /// not read.
  const TensorView* find(std::string_view tensor) const;
  const std::map<std::string, TensorView, std::less<>>& tensors() const;
  /// Tensors of the file whose element type the engine does not read (F8_E4M3, I64, ...), with the type's
  /// name.
  const std::map<std::string, std::string, std::less<>>& other_types() const;
  /// The free-form `__metadata__` of the header.
  const std::map<std::string, std::string, std::less<>>& metadata() const;

 private:
  SafetensorsFile();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace vigil::model
