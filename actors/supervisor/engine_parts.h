// The engine of one device, as the pipeline uses it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "engine/engine.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/answerer.h"

namespace vigil::actors {

/// Each part has one actor as its user. What they share lives as long as one of them.
struct EngineParts {
  std::shared_ptr<run::VisionEncoder> encoder;
  std::shared_ptr<stream::WindowPrefiller> prefiller;
  std::shared_ptr<stream::AnswerGenerator> generator;
};

inline EngineParts parts_of(engine::Engine engine) {
  const auto whole = std::make_shared<engine::Engine>(std::move(engine));
  return {{whole, whole->encoder.get()}, {whole, whole->prefiller.get()}, {whole, whole->generator.get()}};
}

struct DeviceSlot {
  /// What it is called in logs and metrics: "cuda:0".
  std::string name;
  EngineParts engine;
  /// Makes an engine like it, when that one is gone. May take long, and throw what it likes. Empty: a device
  /// that fails is lost.
  std::function<EngineParts()> again;
};

}  // namespace vigil::actors
