// The arguments that `ask` and `bench ask` share.
#pragma once

#include <string>

#include <CLI/CLI.hpp>

#include "engine/window/engine.h"
#include "services/clip.h"

namespace vigil::services {

/// What is asked if no model is named: that of a checkout.
inline constexpr const char* kDemoModel = "models/demo";

struct AskOptions {
  ClipOptions clip;
  std::string question;
  std::string model = kDemoModel;
  window::EngineOptions engine;
  int max_tokens = 64;
  model::Sampling sampling;
};

void add_ask_options(CLI::App& command, AskOptions& options);

window::Engine make_engine(const AskOptions& options);
window::Question question_of(const AskOptions& options);
const char* name_of(window::FinishReason reason);

}  // namespace vigil::services
