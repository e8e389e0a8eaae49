// A stretch of video, read and encoded: what `ask` and its bench have in common.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/window/engine.h"
#include "media/media.h"

namespace vigil::services {

struct ClipOptions {
  std::string video;
  double fps = 2.0;
  double from = 0;
  std::optional<double> to;
  /// Decoder threads.
  int threads = 1;
};

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

/// `done` of `expected` frames are encoded; `expected` is 0 where the length is not known.
using Progress = std::function<void(std::uint64_t done, std::uint64_t expected)>;

/// Samples and encodes a stretch of a video at the size of its first frame. Throws media::Error, or
/// std::runtime_error if no frame lies in the stretch or it does not fit the engine.
Clip read_clip(window::Engine& engine, const ClipOptions& options, const Progress& progress = {});

}  // namespace vigil::services
