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

inline constexpr const char* kVideoHelp = "A file, a URL such as rtsp:// or https://, or /dev/videoN";
inline constexpr const char* kQuestionHelp = "What to ask, in words";

struct AskOptions {
  ClipOptions clip;
  /// At least one.
  std::vector<std::string> questions;
  std::string model = kDemoModel;
  engine::EngineOptions engine;
  int max_tokens = 64;
  model::Sampling sampling;
};

/// VIDEO and QUESTION, both required.
void add_clip_question(CLI::App& command, AskOptions& options);
/// What is said of them otherwise. Throw CLI::ValidationError for what is none.
void set_video(AskOptions& options, const std::string& text);
void set_questions(AskOptions& options, const std::vector<std::string>& texts);
/// All but these two.
void add_ask_options(CLI::App& command, AskOptions& options);

engine::Engine make_engine(const AskOptions& options);
/// The one that is asked. Throws UsageError for more.
stream::Question question_of(const AskOptions& options);
const char* name_of(stream::FinishReason reason);

}  // namespace vigil::services
