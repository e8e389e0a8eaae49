// vigil bench engine: the engine alone, at the shape of any published model.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cluster/clock.h"
#include "cluster/process.h"
#include "engine/engine.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/clips.h"
#include "services/build_info.h"
#include "services/command.h"
#include "services/engine_options.h"
#include "services/figures.h"
#include "services/frame_shape.h"

namespace vigil::services {
namespace {

struct EngineBenchArguments {
  EngineArguments engine;
  int frames = 80;
  int width = 448;
  int height = 448;
  int tokens = 65;
  int sequences = 64;
  int sequence_frames = 16;
  int runs = 10;
  int warmups = 2;
  model::Sampling sampling;
};

/// Levels of a picture that no model has seen.
std::vector<std::uint8_t> noise(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::uint8_t> levels(bytes);
  for (std::uint8_t& level : levels) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    level = static_cast<std::uint8_t>(seed >> 56U);
  }
  return levels;
}

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

class EngineBench {
 public:
  explicit EngineBench(const EngineBenchArguments& arguments) : arguments_(arguments) {
    const Stopwatch watch;
    engine::EngineOptions options = arguments.engine.options;
    const auto folder = open_folder(arguments.engine);
    const auto preprocessor = preprocessor_of(*folder);
    const auto visual_tokens = [&](int frames) {
      const int each = preprocessor->frames_per_patch();
      return (frames + each - 1) / each * preprocessor->tokens({arguments.width, arguments.height});
    };
    const std::int64_t most = std::max(visual_tokens(arguments.frames),
                                       arguments.sequences * visual_tokens(arguments.sequence_frames));
    constexpr std::int64_t kText = 512;
    options.kv_tokens = most + (arguments.sequences + 1) * (kText + arguments.tokens);
    engine_ = engine::make_engine(folder, options);
    clips_.emplace(*engine_.language.desk, *engine_.language.questions, clock_,
                   engine_.decoder ? engine_.decoder->desk.get() : nullptr);
    figures_.add("load", "s", watch.seconds());
    // Windows of both lengths begin with the same pictures.
    const int pictures = std::max(arguments.frames, arguments.sequence_frames);
    pictures_ = noise(static_cast<std::size_t>(pictures) * picture_bytes(), arguments.engine.seed);
  }

  void run() {
    for (int i = 0; i < arguments_.warmups + arguments_.runs; ++i) {
      counted_ = i >= arguments_.warmups;
      window_once();
      if (arguments_.sequences > 1) sequences_once();
    }
  }

  void print() const {
    figures_.print({{"bench", "engine"},
                    {"model", engine_.model_id},
                    {"device", run::name_of(engine_.device)},
                    {"decode_device", run::name_of(engine_.decode_device)},
                    {"dtype", kernels::name_of(engine_.compute)},
                    {"quantization", model::name_of(engine_.quantization)},
                    {"frames", arguments_.frames},
                    {"width", arguments_.width},
                    {"height", arguments_.height},
                    {"prompt_tokens", prompt_tokens_},
                    {"sequences", arguments_.sequences},
                    {"sequence_tokens", sequence_tokens_},
                    {"temperature", arguments_.sampling.temperature},
                    {"top_k", arguments_.sampling.top_k},
                    {"machine", cluster::processor_name()},
                    {"commit", kCommit}});
  }

 private:
  std::size_t picture_bytes() const {
    return std::size_t{3} * static_cast<std::size_t>(arguments_.width) *
           static_cast<std::size_t>(arguments_.height);
  }

  std::vector<run::PatchFrames> patches(int frames) const {
    const int each = engine_.encoder->frames_per_patch();
    std::vector<run::PatchFrames> patches;
    for (int i = 0; i < frames; ++i) {
      if (i % each == 0) patches.push_back({{}, i / 2.0, each / 2.0});
      patches.back().frames.push_back({pictures_.data() + static_cast<std::size_t>(i) * picture_bytes(),
                                       arguments_.width, arguments_.height});
    }
    return patches;
  }

  stream::Question question() const {
    return {.text = "Is there a person in the room?",
            .max_tokens = arguments_.tokens,
            .sampling = arguments_.sampling,
            .on_text = {}};
  }

  /// One window, from frames to its first token, then its whole answer.
  void window_once() {
    const std::vector<run::PatchFrames> frames = patches(arguments_.frames);
    const Stopwatch from_frames;
    const stream::ClipRequest request{engine_.encoder->encode(frames), {question()}};
    const double vision = from_frames.seconds();
    const Stopwatch from_tokens;
    auto asked = clips_->ask(std::span(&request, 1));
    add("prefill", from_tokens.seconds());
    add("first_token", from_frames.seconds());
    add("vision", vision);
    prompt_tokens_ = asked.front().answers.front().prompt_tokens;
    const Stopwatch watch;
    const auto answers = clips_->complete(std::move(asked));
    add_steps("decode_token", watch.seconds(), answers.front().front());
  }

  /// Answers of many windows, decoded together.
  void sequences_once() {
    const auto tokens = engine_.encoder->encode(patches(arguments_.sequence_frames));
    const std::vector<stream::ClipRequest> requests(static_cast<std::size_t>(arguments_.sequences),
                                                    {tokens, {question()}});
    const Stopwatch from_tokens;
    auto asked = clips_->ask(requests);
    add("prefill_sequences", from_tokens.seconds());
    sequence_tokens_ = asked.front().answers.front().prompt_tokens;
    const Stopwatch watch;
    const auto answers = clips_->complete(std::move(asked));
    add_steps("decode_step_sequences", watch.seconds(), answers.front().front());
  }

  /// The first token came with the prefill.
  void add_steps(const char* name, double seconds, const stream::Answer& answer) {
    if (answer.tokens.size() > 1) add(name, seconds / static_cast<double>(answer.tokens.size() - 1));
  }

  void add(const char* name, double seconds) {
    if (counted_) figures_.add(name, "s", seconds);
  }

  const EngineBenchArguments& arguments_;
  cluster::SystemClock clock_;
  engine::Engine engine_;
  std::optional<stream::Clips> clips_;
  std::vector<std::uint8_t> pictures_;
  Figures figures_;
  bool counted_ = false;
  std::int64_t prompt_tokens_ = 0;
  std::int64_t sequence_tokens_ = 0;
};

}  // namespace

void add_bench_engine(CLI::App& bench, Invocation& chosen) {
  CLI::App* command =
      bench.add_subcommand("engine", "Measure vision, prefill and decoding of a model's shape");
  command->footer(
      "Prints a JSON line a figure, in seconds: vision tower and prefill of a window, its first token, a "
      "decoded token, and a "
      "step of many answers that are decoded together.\n"
      "Example: vigil bench engine --shape loadtest/shapes/qwen2.5-vl-7b.json --random-weights --device "
      "cuda");
  auto arguments = std::make_shared<EngineBenchArguments>();
  add_engine_options(*command, arguments->engine)->required();
  command->add_option("--frames", arguments->frames, "Frames of the window")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--width", arguments->width, "Of its frames")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--height", arguments->height, "Of its frames")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "Of each answer")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--sequences", arguments->sequences, "Answers that are decoded together; 1: none")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--sequence-frames", arguments->sequence_frames, "Frames of each of their windows")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--runs", arguments->runs, "Runs that count")
      ->check(above_zero())
      ->capture_default_str();
  command->add_option("--warmups", arguments->warmups, "Runs before them that do not")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--temperature", arguments->sampling.temperature, "0 takes the likeliest token")
      ->check(zero_or_more())
      ->capture_default_str();
  command->add_option("--top-k", arguments->sampling.top_k, "Sample among the k likeliest tokens; 0: all")
      ->check(zero_or_more())
      ->capture_default_str();
  command->callback([&chosen, arguments] {
    chosen = [arguments] {
      EngineBench engine(*arguments);
      engine.run();
      engine.print();
      return kDone;
    };
  });
}

}  // namespace vigil::services
