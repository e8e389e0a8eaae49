#include "engine/model/model_folder.h"

#include <stdexcept>

#include "engine/model/families/family.h"
#include "engine/model/files/error.h"
#include "engine/model/files/json_file.h"
#include "kernels/device/stream.h"

namespace vigil::model {

std::string ModelFolder::name() const {
  if (!label.empty()) return label;
  const std::filesystem::path whole = std::filesystem::weakly_canonical(path);
  return whole.filename().empty() ? whole.parent_path().filename().string() : whole.filename().string();
}

const Tokenizer& ModelFolder::text() const {
  if (!tokenizer) throw ModelError(path.string() + ": no tokenizer.json");
  return *tokenizer;
}

PromptBuilder ModelFolder::prompts() const {
  return {text(), config};
}

Parameters ModelFolder::parameters(const kernels::Stream& stream, kernels::DType compute,
                                   Quantization quantization) const {
  return weights ? Parameters(*weights, stream, compute, quantization)
                 : Parameters(seed, stream, compute, quantization);
}

std::shared_ptr<const ModelFolder> ModelFolder::made_up(const std::filesystem::path& shape,
                                                        const std::filesystem::path& text,
                                                        std::uint64_t seed) {
  const std::shared_ptr<const ModelFolder> words = open(text);
  auto folder = std::make_shared<ModelFolder>();
  folder->path = text;
  folder->label = shape.stem().string();
  folder->seed = seed;
  folder->config = read_config_file(shape);
  // The ids of the placeholders belong to the tokenizer.
  folder->config.image_token_id = words->config.image_token_id;
  folder->config.video_token_id = words->config.video_token_id;
  folder->config.vision_start_token_id = words->config.vision_start_token_id;
  folder->config.vision_end_token_id = words->config.vision_end_token_id;
  folder->tokenizer = Tokenizer::open(text);
  folder->tokenizer->require_ids_below(folder->config.text.vocab_size);
  folder->chat_template = words->chat_template;
  return folder;
}

std::shared_ptr<const ModelFolder> ModelFolder::open(const std::filesystem::path& path) {
  if (!is_there(path) || !std::filesystem::is_directory(path))
    throw ModelError(path.string() +
                     (is_there(path) ? ": a file, and no model folder" : ": no such model folder"));
  auto folder = std::make_shared<ModelFolder>();
  folder->path = path;
  folder->config = read_config(path);
  const Family& family = family_of(folder->config);
  folder->weights = Weights::open(path, family.prefixes);
  if (is_there(path / "tokenizer.json")) {
    folder->tokenizer = Tokenizer::open(path);
    folder->tokenizer->require_ids_below(folder->config.text.vocab_size);
  }
  folder->generation = read_generation_config(path);
  folder->calibration = read_calibration(path);
  folder->chat_template = read_chat_template(path, family.chat);
  return folder;
}

kernels::DType choose_compute(const ModelFolder& folder, std::optional<kernels::DType> wanted,
                              kernels::DeviceKind device) {
  const bool products = device == kernels::DeviceKind::cuda || kernels::cpu_has_bf16();
  if (wanted == kernels::DType::bf16 && !products)
    throw std::invalid_argument("this processor has no products of bf16; f32 is what it computes in");
  if (wanted) return *wanted;
  const bool stored_as_bf16 = folder.config.torch_dtype == "bfloat16";
  return stored_as_bf16 && products ? kernels::DType::bf16 : kernels::DType::f32;
}

}  // namespace vigil::model
