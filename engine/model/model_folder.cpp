#include "engine/model/model_folder.h"

#include "engine/model/error.h"
#include "kernels/device/stream.h"

namespace vigil::model {

std::string ModelFolder::name() const {
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path);
  return whole.filename().empty() ? whole.parent_path().filename().string() : whole.filename().string();
}

const Tokenizer& ModelFolder::text() const {
  if (!tokenizer) throw ModelError(path.string() + ": no tokenizer.json");
  return *tokenizer;
}

std::shared_ptr<const ModelFolder> ModelFolder::open(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) throw ModelError(path.string() + ": no such model folder");
  auto folder = std::make_shared<ModelFolder>();
  folder->path = path;
  folder->config = read_config(path);
  folder->weights = Weights::open(path);
  if (std::filesystem::exists(path / "tokenizer.json")) {
    folder->tokenizer = Tokenizer::open(path);
    folder->tokenizer->require_ids_below(folder->config.text.vocab_size);
  }
  folder->generation = read_generation_config(path);
  folder->chat_template = read_chat_template(path);
  return folder;
}

kernels::DType choose_compute(const ModelFolder& folder, std::optional<kernels::DType> wanted) {
  if (wanted) return *wanted;
  const bool stored_as_bf16 = folder.config.torch_dtype == "bfloat16";
  return stored_as_bf16 && kernels::cpu_has_bf16() ? kernels::DType::bf16 : kernels::DType::f32;
}

}  // namespace vigil::model
