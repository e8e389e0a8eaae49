// The engine alone, timed: from frames to tokens of one window, and of many that are decoded together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "bench/figures.h"
#include "engine/engine.h"
#include "engine/model/model_folder.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/clips.h"

namespace vigil::bench {

struct EngineBenchOptions {
  /// Of the one window, and the size of each, in pixels.
  int frames = 80;
  int width = 448;
  int height = 448;
  /// Of each answer at most.
  int tokens = 65;
  /// Answers that are decoded together, and the frames of each of their windows; 1: none are.
  int sequences = 64;
  int sequence_frames = 16;
  /// Runs that count, and runs before them that do not.
  int runs = 10;
  int warmups = 2;
  /// Of what is seen: pictures that no model has been shown.
  std::uint64_t seed = 1;
  model::Sampling sampling = {};
};

/// Not thread-safe.
class EngineBench {
 public:
  using OpenModel = std::function<std::shared_ptr<const model::ModelFolder>()>;

  /// Loads the model that `open` opens, with room for what is measured in its KV cache, and times both. The
  /// clock has to outlive it. Throws what loading a model throws.
  EngineBench(const OpenModel& open, const engine::EngineOptions& engine, const EngineBenchOptions& options,
              const base::Clock& clock);

  /// All runs, one after the other.
  void run();

  /// Seconds: "load"; of each run that counts "vision", "prefill" and "first_token" of the window,
  /// "decode_token" of its answer, "prefill_sequences" of the many and "decode_step_sequences".
  const Figures& figures() const { return figures_; }
  const engine::Engine& engine() const { return engine_; }
  /// Of the window's prompt and of the prompts of the many; 0 before they were run.
  std::int64_t prompt_tokens() const { return prompt_tokens_; }
  std::int64_t sequence_tokens() const { return sequence_tokens_; }

 private:
  class Stopwatch;

  std::size_t picture_bytes() const;
  std::vector<run::PatchFrames> patches(int frames) const;
  stream::Question question() const;
  void window_once();
  void sequences_once();
  void add(const char* name, double seconds);
  void add_steps(const char* name, double seconds, const stream::Answer& answer);

  const EngineBenchOptions options_;
  const base::Clock& clock_;
  engine::Engine engine_;
  std::optional<stream::Clips> clips_;
  std::vector<std::uint8_t> pictures_;
  Figures figures_;
  bool counted_ = false;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t sequence_tokens_ = 0;
};

}  // namespace vigil::bench
