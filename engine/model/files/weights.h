// Weights as Hugging Face publishes them: one `model.safetensors`, or several with
// `model.safetensors.index.json`.
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

#include "engine/model/files/safetensors.h"

namespace vigil::model {

/// How names of tensors begin, as transformers 5 has them and as transformers 4 had them.
struct NamePrefix {
  std::string_view now, before;
};

/// All weights of a model folder. Immutable, thread-safe. Movable; views stay valid as long as this object or
/// a copy lives.
class Weights {
 public:
  /// Maps `model.safetensors`, or else the shards that the index names. Throws ModelError for a missing
  /// shard, a tensor that the index names and its shard lacks, and a folder without weights. `prefixes`: the
  /// first that fits a name counts; they have to live as long as the program.
  static Weights open(const std::filesystem::path& folder, std::span<const NamePrefix> prefixes = {});

  /// Whether there is such a tensor, in either layout of names (see `get`).
  bool has(std::string_view name) const;

  /// The tensor of this name and shape. Throws ModelError that names the file and the tensor if it is missing
  /// (then the folder), if its shape differs (both shapes in the line), or if its elements are not
  /// floating-point numbers. Names are accepted in both layouts of the prefixes; ask with those of
  /// transformers 5.
  const TensorView& get(std::string_view name, std::span<const std::int64_t> shape) const;

  /// Bytes of all tensors that the engine can read.
  std::uint64_t bytes() const;
  /// Elements of all tensors that the engine can read.
  std::uint64_t parameters() const;
  /// Tensors, those of other types included.
  std::size_t count() const;
  /// The names of all tensors in the layout of transformers 5, ascending.
  std::vector<std::string> names() const;
  const std::vector<std::shared_ptr<const SafetensorsFile>>& files() const { return files_; }

 private:
  const SafetensorsFile* file_of(std::string_view name) const;
  std::string old_name(std::string_view name) const;
  std::string new_name(std::string_view name) const;

  std::filesystem::path folder_;
  std::span<const NamePrefix> prefixes_;
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  /// By the file's own name of the tensor.
  std::map<std::string, const SafetensorsFile*, std::less<>> owner_;
};

}  // namespace vigil::model
