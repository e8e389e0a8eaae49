// The engine of one device, as the pipeline uses it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "actors/messages/cache.h"
#include "actors/messages/messages.h"
#include "engine/engine.h"
#include "engine/model/model_folder.h"
#include "engine/run/token_mover.h"
#include "engine/run/token_transfer.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/compiled_question.h"
#include "engine/stream/stream_desk.h"

namespace vigil::actors {

/// All but `decoder`, and `encoder` where it has a thread of its own, has the device's executor as its one
/// user. What they share lives as long as one of them. Without `encoder`, visual tokens come from another
/// device; without `desk` and `questions`, they go to one.
struct EngineParts {
  std::shared_ptr<run::VisionEncoder> encoder;
  std::shared_ptr<stream::StreamDesk> desk;
  std::shared_ptr<stream::QuestionCompiler> questions;
  /// Where answers go on after their first token, at the device's target; null: at `desk`.
  std::shared_ptr<stream::StreamDesk> decoder = nullptr;
  /// As `engine::Engine::parts_overlap`: the encoder has a thread of its own.
  bool overlap = false;
  /// Between the device's memory and the host's, of visual tokens that come or go; null: these are one.
  std::shared_ptr<run::TokenTransfer> transfer = nullptr;
  /// Frames of a temporal patch.
  int frames_per_patch = 2;
  /// What brings tokens of `desk` to the host's memory and back, and the model's shape; null without `desk`.
  std::shared_ptr<run::TokenMover> mover = nullptr;
  std::shared_ptr<const model::ModelFolder> folder = nullptr;
};

inline EngineParts parts_of(const std::shared_ptr<engine::Engine>& whole) {
  EngineParts parts;
  if (whole->encoder) parts.encoder = {whole, whole->encoder.get()};
  if (whole->language.desk) {
    parts.desk = {whole, whole->language.desk.get()};
    parts.questions = {whole, whole->language.questions.get()};
    parts.mover = {whole, whole->language.mover.get()};
    parts.folder = whole->language.model->folder;
  }
  if (whole->decoder) parts.decoder = {whole, whole->decoder->desk.get()};
  parts.overlap = whole->parts_overlap;
  if (whole->transfer) parts.transfer = {whole, whole->transfer.get()};
  parts.frames_per_patch = whole->frames_per_patch;
  return parts;
}

inline EngineParts parts_of(engine::Engine engine) {
  return parts_of(std::make_shared<engine::Engine>(std::move(engine)));
}

/// How a device reaches the cache.
struct CacheAccess {
  /// Null: nothing is remembered.
  cache_actor cache = {};
  /// Bytes of pages of this device in the host's memory, at most.
  std::uint64_t most = 0;
};

struct DeviceSlot {
  /// What it is called in logs and metrics: "cuda:0".
  std::string name;
  EngineParts engine;
  /// Makes an engine like it, of another epoch, when that one is gone. May take long, and throw what it
  /// likes. Empty: a device that fails is lost.
  std::function<EngineParts()> again;
};

}  // namespace vigil::actors
