// Weights as Hugging Face publishes them: one `model.safetensors`, or several with `model.safetensors.index.json`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/device/dtype.h"

namespace vigil::model {

/// A tensor that lies in a mapped file. Valid as long as its `SafetensorsFile` lives; 4-byte alignment is not promised
/// by the format, so read through `data` with the element's own alignment only (the reader rejects misaligned tensors).
struct TensorView {
  const std::byte* data = nullptr;
  kernels::DType dtype = kernels::DType::f32;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
};

/// One mapped `.safetensors` file. The header is untrusted: lengths past the end, overlapping ranges, huge counts, unknown types,
/// shapes that do not match their byte ranges are rejected before any tensor can be read. Immutable, thread-safe.
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
  /// The tensor, or null.
  const TensorView* find(std::string_view tensor) const;
  const std::unordered_map<std::string, TensorView>& tensors() const;
  /// The free-form `__metadata__` of the header.
  const std::unordered_map<std::string, std::string>& metadata() const;

 private:
  SafetensorsFile();
  struct State;
  std::unique_ptr<State> state_;
};

/// All weights of a model folder. Immutable, thread-safe.
class Weights {
 public:
  /// Maps the shards that the index names, or the single file. Throws ModelError for a missing shard, a tensor that the index
  /// names and its shard lacks, and a folder without weights.
  static Weights open(const std::filesystem::path& folder);

  bool has(std::string_view name) const;

  /// The tensor of this name and shape. Throws ModelError that names the file and the tensor if it is missing (then the folder) or
  /// if its shape differs (both shapes in the line). Names are accepted in the layouts of transformers 4 and 5: `visual.` /
  /// `model.visual.` and `model.` / `model.language_model.`; ask with the names of transformers 5.
  const TensorView& get(std::string_view name, std::span<const std::int64_t> shape) const;

  /// Bytes of all tensors.
  std::uint64_t bytes() const;
  std::size_t count() const;

 private:
  std::filesystem::path folder_;
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::unordered_map<std::string, const TensorView*> tensors_;
};

}  // namespace vigil::model
