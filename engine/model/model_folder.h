// A model folder as Hugging Face publishes it, read and checked.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/model/chat.h"
#include "engine/model/config.h"
#include "engine/model/generation.h"
#include "engine/model/parameters.h"
#include "engine/model/tokenizer.h"
#include "engine/model/weights.h"

namespace vigil::model {

/// Everything that a folder says. Immutable, shared between threads; the weights stay mapped as long as it
/// lives.
struct ModelFolder {
  std::filesystem::path path;
  ModelConfig config;
  Weights weights;
  /// Absent if the folder has no `tokenizer.json`.
  std::optional<Tokenizer> tokenizer;
  GenerationConfig generation;
  ChatTemplate chat_template;

  /// The folder's last path component: what the model is called in messages and events.
  std::string name() const;

  /// The tokenizer. Throws ModelError if there is none.
  const Tokenizer& text() const;

  /// Throws ModelError, which names the file and what is wrong with it.
  static std::shared_ptr<const ModelFolder> open(const std::filesystem::path& path);
};

/// The type to compute in: the wanted one if given; else bf16 where the processor has products of bf16 and
/// the weights are bf16, else f32.
kernels::DType choose_compute(const ModelFolder& folder, std::optional<kernels::DType> wanted);

}  // namespace vigil::model
