// Which engine a bench measures: the arguments that `bench engine` and `bench cameras` share.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

#include "engine/engine.h"
#include "engine/model/model_folder.h"

namespace vigil::services {

struct EngineArguments {
  /// A published config.json if the weights are made up, else a model folder.
  std::string shape;
  /// Of made-up weights: the folder of tokenizer and preprocessing.
  std::string text = "models/demo";
  bool random_weights = false;
  std::uint64_t seed = 1;
  engine::EngineOptions options;
};

/// Adds them all; returns `--shape`, which is not required yet.
CLI::Option* add_engine_options(CLI::App& command, EngineArguments& arguments);

/// Throws model::ModelError, and UsageError for arguments that do not go together.
std::shared_ptr<const model::ModelFolder> open_folder(const EngineArguments& arguments);

}  // namespace vigil::services
