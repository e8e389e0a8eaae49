// The engine as actors and commands take it: made from a model folder, asked at its desk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/model/model_folder.h"
#include "engine/run/cached_model.h"
#include "engine/run/device.h"
#include "engine/run/passes.h"
#include "engine/run/token_mover.h"
#include "engine/run/token_transfer.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/stream_desk.h"
#include "kernels/device/dtype.h"

namespace vigil::engine {

/// small: for those who wait for several things at once, as cameras and their texts do; large: for one who
/// waits for all that he asked.
enum class PassSize : std::uint8_t { small, large };

/// Which half of a model is wanted: the other one is not loaded, and takes no memory.
enum class Halves : std::uint8_t { both, tower, language };

struct EngineOptions {
  run::Device device;
  Halves halves = Halves::both;
  /// Of answers after their first token; absent: the same. Another has a copy of the model and takes the
  /// pages of windows over, so that prefill and generation do not slow each other down. As many GPUs as
  /// `device` has, and none of these.
  std::optional<run::Device> decode_device = std::nullopt;
  /// f32 or bf16; absent: what the folder and the processor suggest (see `choose_compute`).
  std::optional<kernels::DType> compute;
  /// In which the visual tokens of streams are kept, f32 or bf16; absent: that of the computation.
  std::optional<kernels::DType> embeddings = std::nullopt;
  /// Of large products.
  model::Quantization quantization = model::Quantization::none;
  /// Threads of each part on the CPU; 0: all processors.
  int threads = 0;
  /// Tokens that the KV cache has room for, over all windows that are answered at once.
  std::int64_t kv_tokens = 16384;
  /// Bytes of the host's memory that what lies before windows may take together
  /// (`StreamDesk::Options::memory_bytes`).
  std::int64_t window_memory = std::numeric_limits<std::int64_t>::max();
  /// Which engine of its process this is, so that no window of another one is taken for one of this one's.
  std::uint32_t epoch = 0;
  PassSize passes = PassSize::small;
};

/// A language model with its cache, and the desk of whoever asks it. One owner (an actor) at a time.
struct Language {
  /// First, since the desk's pages lie in it.
  std::shared_ptr<run::CachedModel> model;
  std::unique_ptr<run::Passes> passes;
  /// Beside the passes, for whoever runs these.
  std::unique_ptr<run::TokenMover> mover;
  std::unique_ptr<stream::QuestionCompiler> questions;
  std::unique_ptr<stream::StreamDesk> desk;
};

/// The parts have working memory and queues of their own, and `encoder`, `language` and `decoder` one caller
/// each at a time. A GPU's `encoder` and `language` had better share theirs (`run::Executor`).
struct Engine {
  /// Null without its tower.
  std::unique_ptr<run::VisionEncoder> encoder;
  /// Empty without its language model.
  Language language;
  /// On the decode device, where that is another: texts that `language`'s desk lends go on at this one's.
  std::optional<Language> decoder;
  /// For visual tokens that go to another engine, or come from one.
  std::unique_ptr<run::TokenTransfer> transfer;
  /// Frames of a temporal patch.
  int frames_per_patch = 2;
  /// What the model is called in messages and events: the folder's name.
  std::string model_id;
  kernels::DType compute = kernels::DType::f32;
  model::Quantization quantization = model::Quantization::none;
  run::Device device, decode_device;
  /// Whether `encoder` and `language` get more done at the same time than one after the other: on processors,
  /// where the threads of each wait for the slowest of them now and then, and the other's can go on.
  bool parts_overlap = false;
  /// Lines for the user about what is unusual in the folder; mostly empty.
  std::vector<std::string> warnings;
};

/// Throws model::ModelError for a folder that cannot be used, or not by these devices; kernels::DeviceError
/// for a GPU that is not there or cannot be used, or has no products in FP8 where they are wanted;
/// kernels::OutOfDeviceMemory (a std::bad_alloc) for one that has no room for the model and its cache;
/// std::invalid_argument for a decode device that does not go with the device (check_decode_device) and for a
/// cache without a token or with more than attention can address (kv::check_pages). A tower alone asks for no
/// cache and no decode device.
Engine make_engine(const std::filesystem::path& model_folder, const EngineOptions& options = {});

/// The same from a folder that was opened, or of a shape that was made up.
Engine make_engine(const std::shared_ptr<const model::ModelFolder>& folder,
                   const EngineOptions& options = {});

}  // namespace vigil::engine
