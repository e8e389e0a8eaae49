#include "bench/cache_size.h"

#include <algorithm>

#include "actors/messages/data.h"

namespace vigil::bench {

std::int64_t cache_for(const std::vector<config::CameraSettings>& cameras,
                       const model::Preprocessor& preprocessor,
                       const std::function<model::PictureSize(const config::CameraSettings&)>& frame_size,
                       int windows) {
  // What stands around frames and questions, and the pages that are begun and not filled.
  constexpr std::int64_t kAround = 512;
  constexpr std::int64_t kQuestion = 128;
  std::int64_t most = 0;
  for (const config::CameraSettings& camera : cameras) {
    const int patches = actors::patches_in(actors::watch_of(camera), camera.stream.window.length,
                                           preprocessor.frames_per_patch());
    std::int64_t tokens = kAround + patches * preprocessor.tokens(frame_size(camera));
    for (const config::RuleSettings& rule : camera.rules)
      tokens += kQuestion + (rule.explain ? rule.max_tokens : 1);
    most = std::max(most, tokens);
  }
  return windows * most;
}

std::int64_t tokens_within(const model::TextConfig& text, std::uint64_t bytes) {
  constexpr auto kBytes = std::int64_t{2} * static_cast<std::int64_t>(sizeof(float));
  const std::int64_t token = kBytes * text.num_hidden_layers * text.num_key_value_heads * text.head_dim;
  return static_cast<std::int64_t>(bytes) / token;
}

}  // namespace vigil::bench
