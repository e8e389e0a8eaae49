// A language model and the cache of its keys and values.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/kv/book.h"
#include "engine/kv/page_store.h"
#include "engine/model/families/prompt.h"
#include "engine/model/language/decoder.h"
#include "engine/model/model_folder.h"

namespace vigil::run {

struct CachedModelOptions {
  /// Where the weights and the pages lie; with several, each has a part of the model.
  std::vector<kernels::Stream> memory = {kernels::Stream::cpu()};
  kernels::DType compute = kernels::DType::f32;
  model::Quantization quantization = model::Quantization::none;
  /// Tokens that the cache has room for, over all windows and questions that are in it at once.
  std::int64_t kv_tokens = 16384;
  int page_tokens = 64;
};

/// The part of a model that one device has, the whole if there is but one: some heads of all layers, and
/// their keys and values.
struct ModelPart {
  /// `rank`: which of `options.memory`. Throws as CachedModel does.
  ModelPart(const model::ModelFolder& folder, const CachedModelOptions& options, int rank);

  /// Where the weights and the pages lie.
  kernels::Stream memory;
  model::Decoder decoder;
  /// As many pages on each device.
  kv::PageStore pages;
};

/// All but the book is immutable, and the book counts safely: its users may be on several threads.
struct CachedModel {
  /// Loads all parts at once. Throws ModelError for weights that do not fit and for a model that cannot be
  /// shared by so many devices, std::bad_alloc (of a GPU: kernels::OutOfDeviceMemory) where there is no room
  /// for weights and cache, and std::invalid_argument, before anything is loaded, for a cache without a token
  /// or with more than attention can address (kv::check_pages).
  CachedModel(std::shared_ptr<const model::ModelFolder> model_folder, const CachedModelOptions& options);

  int ranks() const { return static_cast<int>(parts.size()); }
  /// Of a page on all devices together.
  std::int64_t page_bytes() const { return ranks() * parts.front()->pages.layout().page_bytes(); }

  std::shared_ptr<const model::ModelFolder> folder;
  std::vector<std::unique_ptr<ModelPart>> parts;
  /// Which pages are taken, of all parts alike.
  kv::Book book;
  model::PromptBuilder prompts;
  /// Held while a pass is submitted to several GPUs: two passes in different order on two of them could each
  /// wait for the other. It is this model's: another one has GPUs of its own (see check_decode_device).
  std::mutex submission;
};

}  // namespace vigil::run
