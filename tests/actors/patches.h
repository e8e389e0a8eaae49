// Patches that tests make.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "tests/actors/fakes.h"

namespace vigil::actors::testing {

inline std::shared_ptr<FramePatch> frame_patch(const WatchPtr& owner, double seconds, std::uint8_t value = 1,
                                               std::uint32_t generation = 0) {
  auto patch = std::make_shared<FramePatch>();
  patch->watch = owner->ref();
  patch->seconds = seconds;
  patch->duration = 1;
  patch->generation = generation;
  media::SampledFrame frame;
  frame.image = image(value);
  patch->frames = {frame, frame};
  return patch;
}

inline std::shared_ptr<VisualPatch> visual_patch(const WatchPtr& owner, double seconds, float value = 1,
                                                 double duration = 1, int width = 1) {
  auto tokens = std::make_shared<model::VisualTokens>();
  tokens->embeddings = numbers(value, width);
  tokens->width = 1;
  tokens->kept = base::GridMask::all(1, width);
  tokens->seconds = seconds;
  tokens->duration = duration;
  auto patch = std::make_shared<VisualPatch>();
  patch->watch = owner->ref();
  patch->tokens = tokens;
  patch->frames = 2;
  patch->captured = {base::Clock::TimePoint(std::chrono::seconds(100)) +
                         std::chrono::duration_cast<base::Duration>(std::chrono::duration<double>(seconds)),
                     base::Clock::WallTime(std::chrono::seconds(1785578400))};
  return patch;
}

/// Each as "camera@second".
inline std::vector<std::string> names(const std::vector<FramePatchPtr>& patches) {
  std::vector<std::string> result;
  for (const auto& patch : patches)
    result.push_back(patch->watch.camera + '@' + std::to_string(static_cast<int>(patch->seconds)));
  return result;
}

}  // namespace vigil::actors::testing
