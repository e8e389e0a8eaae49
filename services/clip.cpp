#include "services/clip.h"

#include <chrono>
#include <cmath>
#include <cstdio>
#include <stdexcept>
#include <utility>

#include "config/settings.h"
#include "engine/run/vision_encoder.h"
#include "engine/stream/what_fits.h"
#include "media/read_ahead.h"
#include "services/video_option.h"

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
  /// `seconds`, `frames`: of the whole clip; 0 where that is not known.
  ClipEncoder(engine::Engine& engine, const ClipOptions& options, double seconds, double frames, Clip& clip)
      : engine_(engine),
        fps_(options.fps),
        from_(options.from.value_or(0)),
        seconds_(seconds),
        expected_(frames),
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
    std::vector<run::PatchFrames> patches;
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
    const auto per_patch = static_cast<double>(count_) / static_cast<double>(clip_.patches.size());
    const double patches_expected = std::ceil(expected_ / static_cast<double>(per_patch_));
    const auto whole = std::max<std::int64_t>(count_, std::llround(patches_expected * per_patch));
    const std::int64_t most = engine_.language.desk->max_visual_tokens();
    if (whole <= most) return;
    const auto fits =
        stream::what_fits({.from = from_,
                           .seconds = std::max(seconds_, clip_.seconds - from_),
                           .fps = fps_,
                           .frames = static_cast<double>(most) / per_patch * static_cast<double>(per_patch_),
                           .least = static_cast<double>(per_patch_)});
    // Beside what is seen there has to be room for the question and its answer.
    const auto needed = [&](std::int64_t tokens) {
      return std::to_string(engine_.language.desk->tokens() - most + tokens);
    };
    throw std::runtime_error("the clip has " + std::to_string(whole) + " visual tokens, more than the " +
                             std::to_string(std::max<std::int64_t>(0, most)) + " that there is room for: " +
                             (fits ? *fits + ", or more --kv-tokens (" + needed(whole) + ')'
                                   : "no part of it fits; the shortest one needs --kv-tokens " +
                                         needed(std::llround(per_patch)) + ", all of it " + needed(whole)));
  }

  engine::Engine& engine_;
  double fps_;
  double from_;
  double seconds_;
  double expected_;
  Clip& clip_;
  std::size_t per_patch_;
  std::vector<media::SampledFrame> frames_;
  std::int64_t count_ = 0;
};

}  // namespace

Clip read_clip(engine::Engine& engine, const ClipOptions& options, const ClipProgress& progress) {
  Clip clip;
  std::optional<media::Size> size;
  const double from = options.from.value_or(0);
  std::optional<double> to = options.to;
  const bool is_file = config::is_file(options.video);
  const auto open = [&] {
    media::ReadOptions read{
        .fps = options.fps,
        .from = from,
        .to = to,
        .size =
            [&](media::Size source) {
              if (!size) {
                const auto fitted = engine.encoder->frame_size({source.width, source.height});
                size = media::Size{fitted.width, fitted.height};
              }
              return *size;
            },
        .threads = options.threads,
        .motion = false,
        .shown_name = shown_video(options.video)};
    if (!is_file) {
      read.open_timeout = kOpenTimeout;
      read.read_timeout = kReadTimeout;
      read.frame_timeout = kFrameTimeout;
    }
    return media::VideoReader::open(options.video, read);
  };
  auto file = open();
  if (!to && !is_file && file->info().live) {
    to = from + kLiveSeconds;
    if (progress.notice)
      progress.notice(file->info().name + ": is live: looking at it for " + in_seconds(*to) +
                      " s from now on (--to says otherwise)");
    file.reset();
    file = open();
  }
  clip.info = file->info();
  const double duration = clip.info.duration_seconds;
  // Where the container does not tell, the end is what was asked for.
  const double end = duration > 0 ? std::min(to.value_or(duration), duration) : to.value_or(from);
  const double length = std::max(0.0, end - from);
  const double rate = clip.info.average_fps > 0 ? std::min(options.fps, clip.info.average_fps) : options.fps;
  const double frames = std::ceil(length * rate);
  const auto expected = static_cast<std::uint64_t>(frames);
  ClipEncoder encoder(engine, options, length, frames, clip);
  media::ReadAhead reader(std::move(file), encoder.frames_per_pass());

  while (true) {
    // Whatever has been read is encoded while the next frames are read.
    if (!reader.ready()) encoder.encode_whole_patches();
    const auto start = std::chrono::steady_clock::now();
    std::optional<media::SampledFrame> frame = reader.next();
    clip.decode_seconds += seconds_since(start);
    if (!frame) break;
    encoder.add(std::move(*frame));
    if (progress.frames) progress.frames(clip.frames, expected);
  }
  encoder.finish();
  clip.stats = reader.stats();
  if (clip.frames == 0)
    throw std::runtime_error(clip.info.name + ": no frame between " + in_seconds(from) + " s and " +
                             (to ? in_seconds(*to) + " s" : "the end"));
  if (progress.notice && clip.seconds - from > kMostSeconds)
    progress.notice(
        "the " + in_seconds(std::round(clip.seconds - from)) + " s that are asked about are more than the " +
        in_seconds(kMostSeconds) +
        " s that such models are made for at a time; the answer may be worth nothing (--from and --to "
        "choose a part)");
  return clip;
}

}  // namespace vigil::services
