#include "services/clip.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "media/read_ahead.h"

namespace vigil::services {
namespace {

// Patches of one pass through the vision tower: enough rows for its products, little memory for long clips.
constexpr std::size_t kPatchesPerPass = 8;

/// Frames of one pass.
std::size_t per_pass(const window::Engine& engine) {
  return static_cast<std::size_t>(engine.encoder->frames_per_patch()) * kPatchesPerPass;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string in_seconds(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

class ClipEncoder {
 public:
  ClipEncoder(window::Engine& engine, const ClipOptions& options, Clip& clip)
      : engine_(engine),
        fps_(options.fps),
        clip_(clip),
        per_patch_(static_cast<std::size_t>(engine.encoder->frames_per_patch())) {}

  void add(media::SampledFrame frame) {
    ++clip_.frames;
    clip_.seconds = frame.seconds;
    frames_.push_back(std::move(frame));
    if (frames_.size() == per_pass(engine_)) encode();
  }

  /// A last patch that is short repeats its last frame, as transformers does.
  void encode() {
    if (frames_.empty()) return;
    const auto start = std::chrono::steady_clock::now();
    std::vector<window::PatchFrames> patches;
    for (std::size_t i = 0; i < frames_.size(); ++i) {
      if (i % per_patch_ == 0)
        patches.push_back({.frames = {},
                           .seconds = frames_[i].seconds,
                           .duration = static_cast<double>(per_patch_) / fps_});
      const media::Image& image = *frames_[i].image;
      patches.back().frames.push_back({image.rgb.data(), image.size.width, image.size.height});
    }
    for (auto& tokens : engine_.encoder->encode(patches)) {
      count_ += tokens->count();
      clip_.patches.push_back(std::move(tokens));
    }
    frames_.clear();
    clip_.encode_seconds += seconds_since(start);
    const std::int64_t most = engine_.answerer->max_visual_tokens();
    if (count_ > most)
      throw std::runtime_error(
          "the clip has more than the " + std::to_string(most) +
          " visual tokens that there is room for: choose a lower --fps, a shorter --from and --to, or more "
          "--kv-tokens");
  }

 private:
  window::Engine& engine_;
  double fps_;
  Clip& clip_;
  std::size_t per_patch_;
  std::vector<media::SampledFrame> frames_;
  std::int64_t count_ = 0;
};

}  // namespace

Clip read_clip(window::Engine& engine, const ClipOptions& options, const Progress& progress) {
  Clip clip;
  std::optional<media::Size> size;
  auto file = media::VideoReader::open(
      options.video, {.fps = options.fps,
                      .from = options.from,
                      .to = options.to,
                      .size =
                          [&](media::Size source) {
                            if (!size) {
                              const auto fitted = engine.encoder->frame_size({source.width, source.height});
                              size = media::Size{fitted.width, fitted.height};
                            }
                            return *size;
                          },
                      .threads = options.threads,
                      .motion = false});
  const auto reader = media::read_ahead(std::move(file), per_pass(engine));
  clip.info = reader->info();
  const double end = std::min(options.to.value_or(clip.info.duration_seconds), clip.info.duration_seconds);
  const auto expected =
      static_cast<std::uint64_t>(std::max(0.0, std::ceil((end - options.from) * options.fps)));

  ClipEncoder encoder(engine, options, clip);
  while (true) {
    const auto start = std::chrono::steady_clock::now();
    std::optional<media::SampledFrame> frame = reader->next();
    clip.decode_seconds += seconds_since(start);
    if (!frame) break;
    encoder.add(std::move(*frame));
    if (progress) progress(clip.frames, expected);
  }
  encoder.encode();
  clip.stats = reader->stats();
  if (clip.frames == 0)
    throw std::runtime_error(options.video + ": no frame between " + in_seconds(options.from) + " s and " +
                             (options.to ? in_seconds(*options.to) + " s" : "the end"));
  return clip;
}

}  // namespace vigil::services
