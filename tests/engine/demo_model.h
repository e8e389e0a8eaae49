// The demo model and pictures to show it, for tests of whole windows.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/model/model_folder.h"
#include "engine/run/tower_encoder.h"
#include "engine/run/vision_encoder.h"

namespace vigil::stream::testing {

inline std::shared_ptr<const model::ModelFolder> demo_model() {
  static const auto folder = model::ModelFolder::open(std::string(VIGIL_SOURCE_DIR) + "/models/demo");
  return folder;
}

/// A picture that depends on its seed everywhere.
struct Picture {
  int width, height;
  std::vector<std::uint8_t> rgb;

  Picture(int w, int h, std::uint32_t seed) : width(w), height(h), rgb(static_cast<std::size_t>(w * h * 3)) {
    std::uint32_t state = seed * 2654435761U + 1;
    for (auto& value : rgb) {
      state = state * 1664525U + 1013904223U;
      value = static_cast<std::uint8_t>(state >> 24U);
    }
  }

  model::PictureView view() const { return {rgb.data(), width, height}; }
};

/// The visual tokens of `count` temporal patches of noise, one a second from `begin` on.
inline std::vector<model::VisualTokensPtr> noise_window(int count, std::uint32_t seed, int width = 112,
                                                        int height = 84,
                                                        kernels::DType embeddings = kernels::DType::f32,
                                                        double begin = 0) {
  run::TowerEncoder encoder(demo_model(), kernels::DType::f32, kernels::Stream::cpu(1),
                            model::Quantization::none, embeddings);
  std::vector<Picture> pictures;
  for (int i = 0; i < 2 * count; ++i)
    pictures.emplace_back(width, height, seed * 1000 + static_cast<std::uint32_t>(i));
  std::vector<run::PatchFrames> patches;
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(2 * i);
    patches.push_back({{pictures[at].view(), pictures[at + 1].view()}, begin + static_cast<double>(i), 1.0});
  }
  return encoder.encode(patches);
}

}  // namespace vigil::stream::testing
