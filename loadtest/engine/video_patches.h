// What the benches of the engine have in common: a stretch of a video as the vision tower's patches.
#pragma once

#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/run/tower_encoder.h"
#include "media/media.h"

/// The pictures of [from, to), in seconds, so many a second, two a patch and nothing pruned; times begin at
/// 0.
inline std::vector<vigil::model::VisualTokensPtr> patches_of(const std::string& video, double from, double to,
                                                             double fps, vigil::run::TowerEncoder& encoder) {
  using namespace vigil;
  std::optional<media::Size> size;
  const auto reader = media::VideoReader::open(
      video, {.fps = fps,
              .from = from,
              .to = to,
              .size =
                  [&](media::Size source) {
                    const auto fitted = encoder.frame_size({source.width, source.height});
                    size = media::Size{fitted.width, fitted.height};
                    return *size;
                  },
              .motion = false});
  std::vector<media::SampledFrame> frames;
  while (auto frame = reader->next()) frames.push_back(std::move(*frame));
  const auto view = [&](std::size_t i) {
    return model::PictureView{frames[i].image->rgb.data(), size->width, size->height};
  };
  std::vector<model::VisualTokensPtr> patches;
  for (std::size_t i = 0; i + 1 < frames.size(); i += 2) {
    const run::PatchFrames patch{{view(i), view(i + 1)}, static_cast<double>(i) / fps, 2 / fps};
    patches.push_back(encoder.encode(std::vector{patch}).front());
  }
  if (patches.empty()) throw std::runtime_error(video + " has no frames there");
  return patches;
}
