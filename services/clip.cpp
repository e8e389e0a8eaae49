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

  std::size_t frames_per_pass() const { return per_patch_ * kPatchesPerPass; }

  void add(media::SampledFrame frame) {
    ++clip_.frames;
    clip_.seconds = frame.seconds;
    frames_.push_back(std::move(frame));
    if (frames_.size() == frames_per_pass()) encode(frames_.size());
  }

  /// Encodes the frames that make whole patches.
  void encode_whole_patches() { encode(frames_.size() / per_patch_ * per_patch_); }

  /// A last patch that is short repeats its last frame, as transformers does.
  void finish() { encode(frames_.size()); }

 private:
  void encode(std::size_t frames) {
    if (frames == 0) return;
    const auto start = std::chrono::steady_clock::now();
    std::vector<window::PatchFrames> patches;
    for (std::size_t i = 0; i < frames; ++i) {
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
    frames_.erase(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(frames));
    clip_.encode_seconds += seconds_since(start);
    const std::int64_t most = engine_.answerer->max_visual_tokens();
    if (count_ > most)
      throw std::runtime_error(
          "the clip has more than the " + std::to_string(most) +
          " visual tokens that there is room for: choose a lower --fps, a shorter --from and --to, or more "
          "--kv-tokens");
  }

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
  ClipEncoder encoder(engine, options, clip);
  media::ReadAhead reader(std::move(file), encoder.frames_per_pass());
  clip.info = reader.info();
  const double end = std::min(options.to.value_or(clip.info.duration_seconds), clip.info.duration_seconds);
  const auto expected =
      static_cast<std::uint64_t>(std::max(0.0, std::ceil((end - options.from) * options.fps)));

  while (true) {
    // Whatever has been read is encoded while the next frames are read.
    if (!reader.ready()) encoder.encode_whole_patches();
    const auto start = std::chrono::steady_clock::now();
    std::optional<media::SampledFrame> frame = reader.next();
    clip.decode_seconds += seconds_since(start);
    if (!frame) break;
    encoder.add(std::move(*frame));
    if (progress) progress(clip.frames, expected);
  }
  encoder.finish();
  clip.stats = reader.stats();
  if (clip.frames == 0)
    throw std::runtime_error(clip.info.name + ": no frame between " + in_seconds(options.from) + " s and " +
                             (options.to ? in_seconds(*options.to) + " s" : "the end"));
  return clip;
}

}  // namespace vigil::services
