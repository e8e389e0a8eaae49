#include "services/ask_options.h"

#include <stdexcept>

#include "services/command.h"
#include "services/device_option.h"

namespace vigil::services {

void add_ask_options(CLI::App& command, AskOptions& options) {
  command.add_option("VIDEO", options.clip.video, "A file or URL that FFmpeg reads")->required();
  command.add_option("QUESTION", options.question, "What to ask, in words")->required();
  command.add_option("--model", options.model, "Model folder as Hugging Face publishes it")
      ->envname("VIGIL_MODEL")
      ->capture_default_str();
  command.add_option("--fps", options.clip.fps, "Frames a second that the model sees")
      ->check(above_zero())
      ->capture_default_str();
  command.add_option("--from", options.clip.from, "Start, in seconds")
      ->check(zero_or_more())
      ->capture_default_str();
  command.add_option("--to", options.clip.to, "End, in seconds; the end of the file if left out")
      ->check(zero_or_more());
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
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--seed", options.sampling.seed, "Equal seeds give equal answers")
      ->capture_default_str();
  command.add_option("--stop", options.sampling.stop, "End the answer before this text; may be repeated");
  add_compute(command, options.engine);
  command.add_option("--decode-threads", options.clip.threads, "Threads of the video decoder")
      ->check(above_zero())
      ->capture_default_str();
  command.add_option("--kv-tokens", options.engine.kv_tokens, "Tokens that the KV cache has room for")
      ->check(above_zero())
      ->capture_default_str();
}

window::Engine make_engine(const AskOptions& options) {
  if (options.clip.to && *options.clip.to <= options.clip.from)
    throw UsageError("--to has to lie after --from");
  check_compute(options.engine);
  try {
    model::validate(options.sampling);
  } catch (const std::invalid_argument& error) {
    throw UsageError(error.what());
  }
  return window::make_engine(options.model, options.engine);
}

window::Question question_of(const AskOptions& options) {
  return {.text = options.question,
          .max_tokens = options.max_tokens,
          .sampling = options.sampling,
          .on_text = {}};
}

const char* name_of(window::FinishReason reason) {
  switch (reason) {
    case window::FinishReason::end_of_turn:
      return "end_of_turn";
    case window::FinishReason::length:
      return "length";
    case window::FinishReason::stop:
      return "stop";
  }
  return "?";
}

}  // namespace vigil::services
