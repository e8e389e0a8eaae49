// A model folder as Hugging Face publishes it, read and checked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/model/families/prompt.h"
#include "engine/model/files/calibration.h"
#include "engine/model/files/config.h"
#include "engine/model/files/weights.h"
#include "engine/model/language/generation.h"
#include "engine/model/layers/parameters.h"
#include "engine/model/text/chat.h"
#include "engine/model/text/tokenizer.h"
#include "kernels/device/dtype.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// Everything that a folder says. Immutable, shared between threads; the weights stay mapped as long as it
/// lives.
struct ModelFolder {
  /// Of a made-up model, the folder of its text.
  std::filesystem::path path;
  /// If set, what `name` says.
  std::string label;
  ModelConfig config;
  /// Absent for a shape whose parameters are made up.
  std::optional<Weights> weights;
  /// What they are made up from.
  std::uint64_t seed = 0;
  /// Absent if the folder has no `tokenizer.json`.
  std::optional<Tokenizer> tokenizer;
  GenerationConfig generation;
  /// Absent if the folder has no `calibration.json`: probabilities are the model's own.
  std::optional<Calibration> calibration;
  ChatTemplate chat_template;

  /// The folder's last path component: what the model is called in messages and events.
  std::string name() const;

  /// The tokenizer. Throws ModelError if there is none.
  const Tokenizer& text() const;

  /// How its prompts are laid out; the folder has to outlive it. Throws ModelError if there is no tokenizer,
  /// or one that lacks a token of the chat format.
  PromptBuilder prompts() const;

  /// The parameters on a stream's device.
  Parameters parameters(const kernels::Stream& stream, kernels::DType compute,
                        Quantization quantization = Quantization::none) const;

  /// Throws ModelError, which names the file and what is wrong with it.
  static std::shared_ptr<const ModelFolder> open(const std::filesystem::path& path);

  /// A model of the shape that the file `shape` (a published `config.json`) tells, with made-up parameters,
  /// and tokenizer, chat format and preprocessing of the folder `text`: what is measured where the checkpoint
  /// cannot be had. Its answers mean nothing and never end by themselves. Throws ModelError.
  static std::shared_ptr<const ModelFolder> made_up(const std::filesystem::path& shape,
                                                    const std::filesystem::path& text, std::uint64_t seed);
};

/// The type to compute in: the wanted one if given; else bf16 where the device has products of bf16 (every
/// GPU that is supported does) and the weights are bf16, else f32. Throws std::invalid_argument for a wanted
/// type that the device has no products of.
kernels::DType choose_compute(const ModelFolder& folder, std::optional<kernels::DType> wanted,
                              kernels::DeviceKind device);

}  // namespace vigil::model
