#include "bench/engine_bench.h"

#include <algorithm>
#include <chrono>
#include <span>
#include <utility>

#include "engine/model/vision/preprocess.h"

namespace vigil::bench {
namespace {

/// Levels of a picture that no model has seen.
std::vector<std::uint8_t> noise(std::size_t bytes, std::uint64_t seed) {
  std::vector<std::uint8_t> levels(bytes);
  for (std::uint8_t& level : levels) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    level = static_cast<std::uint8_t>(seed >> 56U);
  }
  return levels;
}

}  // namespace

class EngineBench::Stopwatch {
 public:
  explicit Stopwatch(const base::Clock& clock) : clock_(clock), begin_(clock.now()) {}
  double seconds() const { return std::chrono::duration<double>(clock_.now() - begin_).count(); }

 private:
  const base::Clock& clock_;
  const base::Clock::TimePoint begin_;
};

EngineBench::EngineBench(const OpenModel& open, const engine::EngineOptions& engine,
                         const EngineBenchOptions& options, const base::Clock& clock)
    : options_(options), clock_(clock) {
  const Stopwatch watch(clock_);
  const std::shared_ptr<const model::ModelFolder> folder = open();
  const model::Preprocessor preprocessor(model::read_preprocess_config(folder->path).video,
                                         folder->config.vision);
  const auto visual_tokens = [&](int frames) {
    const int each = preprocessor.frames_per_patch();
    return (frames + each - 1) / each * preprocessor.tokens({options_.width, options_.height});
  };
  const std::int64_t most =
      std::max(visual_tokens(options_.frames), options_.sequences * visual_tokens(options_.sequence_frames));
  constexpr std::int64_t kText = 512;
  engine::EngineOptions with_room = engine;
  with_room.passes = engine::PassSize::large;
  with_room.kv_tokens = most + (options_.sequences + 1) * (kText + options_.tokens);
  engine_ = engine::make_engine(folder, with_room);
  clips_.emplace(*engine_.language.desk, *engine_.language.questions, clock_,
                 engine_.decoder ? engine_.decoder->desk.get() : nullptr);
  figures_.add("load", "s", watch.seconds());
  // Windows of both lengths begin with the same pictures.
  const int pictures = std::max(options_.frames, options_.sequence_frames);
  pictures_ = noise(static_cast<std::size_t>(pictures) * picture_bytes(), options_.seed);
}

void EngineBench::run() {
  for (int i = 0; i < options_.warmups + options_.runs; ++i) {
    counted_ = i >= options_.warmups;
    window_once();
    if (options_.sequences > 1) sequences_once();
  }
}

std::size_t EngineBench::picture_bytes() const {
  return std::size_t{3} * static_cast<std::size_t>(options_.width) *
         static_cast<std::size_t>(options_.height);
}

std::vector<run::PatchFrames> EngineBench::patches(int frames) const {
  const int each = engine_.encoder->frames_per_patch();
  std::vector<run::PatchFrames> patches;
  for (int i = 0; i < frames; ++i) {
    if (i % each == 0) {
      patches.emplace_back();
      patches.back().seconds = i / 2.0;
      patches.back().duration = each / 2.0;
    }
    patches.back().frames.push_back(
        {pictures_.data() + static_cast<std::size_t>(i) * picture_bytes(), options_.width, options_.height});
  }
  return patches;
}

stream::Question EngineBench::question() const {
  return {.text = "Is there a person in the room?",
          .max_tokens = options_.tokens,
          .sampling = options_.sampling,
          .on_text = {}};
}

/// One window, from frames to its first token, then its whole answer.
void EngineBench::window_once() {
  const std::vector<run::PatchFrames> frames = patches(options_.frames);
  const Stopwatch from_frames(clock_);
  const stream::ClipRequest request{engine_.encoder->encode(frames), {question()}};
  const double vision = from_frames.seconds();
  const Stopwatch from_tokens(clock_);
  auto asked = clips_->ask(std::span(&request, 1));
  add("prefill", from_tokens.seconds());
  add("first_token", from_frames.seconds());
  add("vision", vision);
  prompt_tokens_ = asked.front().answers.front().prompt_tokens;
  const Stopwatch watch(clock_);
  const auto answers = clips_->complete(std::move(asked));
  add_steps("decode_token", watch.seconds(), answers.front().front());
}

/// Answers of many windows, decoded together.
void EngineBench::sequences_once() {
  const auto tokens = engine_.encoder->encode(patches(options_.sequence_frames));
  const std::vector<stream::ClipRequest> requests(static_cast<std::size_t>(options_.sequences),
                                                  {tokens, {question()}});
  const Stopwatch from_tokens(clock_);
  auto asked = clips_->ask(requests);
  add("prefill_sequences", from_tokens.seconds());
  sequence_tokens_ = asked.front().answers.front().prompt_tokens;
  const Stopwatch watch(clock_);
  const auto answers = clips_->complete(std::move(asked));
  add_steps("decode_step_sequences", watch.seconds(), answers.front().front());
}

/// The first token came with the prefill.
void EngineBench::add_steps(const char* name, double seconds, const stream::Answer& answer) {
  if (answer.tokens.size() > 1) add(name, seconds / static_cast<double>(answer.tokens.size() - 1));
}

void EngineBench::add(const char* name, double seconds) {
  if (counted_) figures_.add(name, "s", seconds);
}

}  // namespace vigil::bench
