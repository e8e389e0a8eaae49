#include "engine/model/files/weights.h"

#include <algorithm>

#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"

namespace vigil::model {
namespace {

std::string with_prefix(std::string_view name, std::string_view old, std::string_view replacement) {
  return std::string(replacement) + std::string(name.substr(old.size()));
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t size : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(size);
  }
  return text + "]";
}

/// `weight_map` of the index: tensor to shard. A shard is a plain file name: an index must not lead out of
/// its folder.
std::map<std::string, std::string> read_index(const std::filesystem::path& path) {
  const Json root = read_json_file(path);
  const JsonObject map = JsonObject(root, path.string()).object("weight_map");
  std::map<std::string, std::string> shards;
  for (const auto& [tensor, shard] : map.json().items()) {
    if (!shard.is_string())
      throw ModelError(path.string() + ": weight_map: " + in_quotes(tensor) + " names no file");
    const std::filesystem::path file = shard.get<std::string>();
    if (file.empty() || file.filename() != file || file == ".." || file == ".") {
      throw ModelError(path.string() + ": weight_map: " + in_quotes(file.string()) +
                       " is not a plain file name");
    }
    shards.emplace(tensor, file.string());
  }
  if (shards.empty()) throw ModelError(path.string() + ": weight_map names no tensor");
  return shards;
}

}  // namespace

/// The name in the layout of transformers 4 (as `save_pretrained` of transformers 5 still writes it).
std::string Weights::old_name(std::string_view name) const {
  for (const auto& [now, before] : prefixes_)
    if (name.starts_with(now)) return with_prefix(name, now, before);
  return std::string(name);
}

std::string Weights::new_name(std::string_view name) const {
  for (const auto& [now, before] : prefixes_)
    if (name.starts_with(now)) return std::string(name);
  for (const auto& [now, before] : prefixes_)
    if (name.starts_with(before)) return with_prefix(name, before, now);
  return std::string(name);
}

Weights Weights::open(const std::filesystem::path& folder, std::span<const NamePrefix> prefixes) {
  Weights weights;
  weights.folder_ = folder;
  weights.prefixes_ = prefixes;
  const auto single = folder / "model.safetensors";
  const auto index = folder / "model.safetensors.index.json";
  const auto add = [&weights](const std::string& tensor, const SafetensorsFile& file) {
    weights.owner_.emplace(tensor, &file);
  };
  if (is_there(single)) {
    const auto file = weights.files_.emplace_back(SafetensorsFile::open(single));
    for (const auto& [tensor, view] : file->tensors()) add(tensor, *file);
    for (const auto& [tensor, type] : file->other_types()) add(tensor, *file);
    return weights;
  }
  if (!is_there(index)) {
    throw ModelError(folder.string() +
                     ": neither model.safetensors nor model.safetensors.index.json is here");
  }
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [tensor, shard] : read_index(index)) {
    const SafetensorsFile*& file = opened[shard];
    if (file == nullptr) file = weights.files_.emplace_back(SafetensorsFile::open(folder / shard)).get();
    if (!file->tensors().contains(tensor) && !file->other_types().contains(tensor)) {
      throw ModelError(file->name() + ": tensor " + in_quotes(tensor) +
                       " is missing, which the index places here");
    }
    add(tensor, *file);
  }
  return weights;
}

const SafetensorsFile* Weights::file_of(std::string_view name) const {
  auto found = owner_.find(name);
  if (found == owner_.end()) found = owner_.find(old_name(name));
  return found == owner_.end() ? nullptr : found->second;
}

bool Weights::has(std::string_view name) const {
  return file_of(name) != nullptr;
}

const TensorView& Weights::get(std::string_view name, std::span<const std::int64_t> shape) const {
  const SafetensorsFile* file = file_of(name);
  if (file == nullptr) throw ModelError(folder_.string() + ": tensor " + in_quotes(name) + " is missing");
  const TensorView* view = file->find(owner_.contains(name) ? std::string(name) : old_name(name));
  const std::string what = file->name() + ": tensor " + in_quotes(name) + ": ";
  if (!std::ranges::equal(view->shape, shape)) {
    throw ModelError(what + "its shape is " + shape_text(view->shape) + ", the configuration needs " +
                     shape_text(shape));
  }
  if (view->dtype == kernels::DType::i32 || view->dtype == kernels::DType::u8) {
    throw ModelError(what + "its elements are " + kernels::name_of(view->dtype) +
                     ", weights are bf16, f16 or f32");
  }
  return *view;
}

std::uint64_t Weights::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [tensor, file] : owner_) {
    if (const auto found = file->tensors().find(tensor); found != file->tensors().end()) {
      sum += found->second.bytes();
    }
  }
  return sum;
}

std::uint64_t Weights::parameters() const {
  std::uint64_t sum = 0;
  for (const auto& [tensor, file] : owner_) {
    if (const auto found = file->tensors().find(tensor); found != file->tensors().end()) {
      sum += static_cast<std::uint64_t>(found->second.elements());
    }
  }
  return sum;
}

std::size_t Weights::count() const {
  return owner_.size();
}

std::vector<std::string> Weights::names() const {
  std::vector<std::string> names;
  names.reserve(owner_.size());
  for (const auto& [tensor, file] : owner_) names.push_back(new_name(tensor));
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace vigil::model
