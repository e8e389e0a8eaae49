// The arguments that `ask` and `bench ask` share.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "engine/engine.h"
#include "services/clip.h"

namespace vigil::services {

/// What is asked if no model is named: that of a checkout.
inline constexpr const char* kDemoModel = "models/demo";

struct AskOptions {
  ClipOptions clip;
  /// At least one.
  std::vector<std::string> questions;
  std::string model = kDemoModel;
  engine::EngineOptions engine;
  int max_tokens = 64;
  model::Sampling sampling;
};

void add_ask_options(CLI::App& command, AskOptions& options);

engine::Engine make_engine(const AskOptions& options);
/// The one that is asked. Throws UsageError for more.
stream::Question question_of(const AskOptions& options);
const char* name_of(stream::FinishReason reason);

}  // namespace vigil::services
