#include "services/ask_options.h"

#include <filesystem>
#include <stdexcept>
#include <system_error>

#include "config/schema/fields.h"
#include "config/values/source.h"
#include "services/command.h"
#include "services/device_option.h"
#include "services/video_option.h"

namespace vigil::services {

void set_video(AskOptions& options, const std::string& text) {
  if (const auto fault = config::source_fault(text)) throw CLI::ValidationError("VIDEO", *fault);
  options.clip.video = text;
}

void set_questions(AskOptions& options, const std::vector<std::string>& texts) {
  for (const std::string& text : texts)
    if (!config::is_prompt(text))
      throw CLI::ValidationError("QUESTION", "expected " + std::string(config::kPrompt.expected));
  options.questions = texts;
}

void add_clip_question(CLI::App& command, AskOptions& options) {
  command
      .add_option_function<std::string>(
          "VIDEO", [&options](const std::string& text) { set_video(options, text); }, kVideoHelp)
      ->required();
  command
      .add_option_function<std::vector<std::string>>(
          "QUESTION", [&options](const std::vector<std::string>& texts) { set_questions(options, texts); },
          kQuestionHelp)
      ->required();
}

void add_ask_options(CLI::App& command, AskOptions& options) {
  command.add_option("--model", options.model, "Model folder as Hugging Face publishes it")
      ->envname("VIGIL_MODEL")
      ->capture_default_str();
  command.add_option("--fps", options.clip.fps, "Frames a second that the model sees")
      ->check(above_zero())
      ->capture_default_str();
  add_moment(command, "--from", options.clip.from, "Start: 15, 0:15 or 1m30s; the beginning if left out");
  add_moment(command, "--to", options.clip.to,
             "End; if left out, that of the file, or 40 s later of what has none");
  command.add_option("--max-tokens", options.max_tokens, "Longest answer")
      ->check(above_zero())
      ->capture_default_str();
  command.add_option("--temperature", options.sampling.temperature, "0 takes the likeliest token")
      ->check(zero_or_more())
      ->capture_default_str();
  command.add_option("--top-k", options.sampling.top_k, "Sample among the k likeliest tokens; 0: all")
      ->check(zero_or_more())
      ->capture_default_str();
  command
      .add_option("--top-p", options.sampling.top_p,
                  "Sample among the likeliest tokens that hold this probability")
      ->check(from_to(0, 1))
      ->capture_default_str();
  command.add_option("--seed", options.sampling.seed, "Equal seeds give equal answers")
      ->check(zero_or_more())
      ->capture_default_str();
  command.add_option("--stop", options.sampling.stop, "End the answer before this text; may be repeated");
  add_compute(command, options.engine);
  command.add_option("--decode-threads", options.clip.threads, "Threads of the video decoder")
      ->check(from_to(1, 64))
      ->capture_default_str();
  command.add_option("--kv-tokens", options.engine.kv_tokens, "Tokens that the KV cache has room for")
      ->check(above_zero())
      ->capture_default_str();
}

engine::Engine make_engine(const AskOptions& options) {
  if (options.clip.to && *options.clip.to <= options.clip.from.value_or(0))
    throw UsageError("--to has to lie after --from");
  check_compute(options.engine);
  try {
    model::validate(options.sampling);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
  std::error_code unknown;
  if (options.model == kDemoModel && !std::filesystem::is_directory(options.model, unknown)) {
    throw std::runtime_error("no model is named, and " + options.model + " is not in this folder, " +
                             std::filesystem::current_path(unknown).string() +
                             ": name one with --model DIR or in VIGIL_MODEL");
  }
  engine::EngineOptions alone = options.engine;
  alone.passes = engine::PassSize::large;
  return engine::make_engine(options.model, alone);
}

stream::Question question_of(const AskOptions& options) {
  if (options.questions.size() > 1)
    throw UsageError("a clip is asked one question, and these are " +
                     std::to_string(options.questions.size()) +
                     ": put its words in quotes (every window of a file, --window, may be asked more)");
  return {.text = options.questions.front(),
          .max_tokens = options.max_tokens,
          .sampling = options.sampling,
          .on_text = {}};
}

const char* name_of(stream::FinishReason reason) {
  switch (reason) {
    case stream::FinishReason::end_of_turn:
      return "end_of_turn";
    case stream::FinishReason::length:
      return "length";
    case stream::FinishReason::stop:
      return "stop";
  }
  return "?";
}

}  // namespace vigil::services
