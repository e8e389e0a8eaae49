// A stretch of video, read and encoded: what `ask` and its bench have in common.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "media/media.h"

namespace vigil::services {

struct ClipOptions {
  std::string video;
  double fps = 2.0;
  /// Seconds; from the beginning if it is absent.
  std::optional<double> from;
  /// Absent: the end, or of a source that is live, kLiveSeconds later.
  std::optional<double> to;
  /// Decoder threads.
  int threads = 1;
};

/// So much of a live source is looked at unless one says otherwise: as much as a window of a camera.
inline constexpr double kLiveSeconds = 40;

/// What models of this kind are asked about at a time, at most; of more, answers get worse.
inline constexpr double kMostSeconds = 120;

struct Clip {
  std::vector<model::VisualTokensPtr> patches;
  std::uint64_t frames = 0;
  /// Of the last frame.
  double seconds = 0;
  /// Waited for frames, which are read while the ones before them are encoded.
  double decode_seconds = 0;
  double encode_seconds = 0;
  media::SourceInfo info;
  media::ReadStats stats;
};

struct ClipProgress {
  /// `done` of `expected` frames are encoded; `expected` is 0 where the length is not known.
  std::function<void(std::uint64_t done, std::uint64_t expected)> frames;
  /// A line for the user about what is done, before it takes its time.
  std::function<void(const std::string& line)> notice;
};

/// Samples and encodes a stretch of a video at the size of its first frame. Throws media::Error, or
/// std::runtime_error if no frame lies in the stretch or it does not fit the engine: then it says what does.
Clip read_clip(engine::Engine& engine, const ClipOptions& options, const ClipProgress& progress = {});

}  // namespace vigil::services
