// What a family of models fixes in its code rather than in config.json: data that the tower and the decoder
// are made by. A trait stands here when one of them reads it.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "kernels/linear/linear.h"

namespace vigil::model {

/// Tensors of a vision tower, as transformers 5 names them, without ".weight" and ".bias". Those of a block
/// follow its number: `of_block`.
struct VisionNames {
  std::string_view patch_embed;
  std::string_view blocks;
  std::string_view norm1, norm2, qkv, proj, gate, up, down;
  /// The norm, and the two products that fold a square of patches into a token.
  std::string_view merger_norm, merger_in, merger_out;
};

/// The same of a decoder. `head` is that of a model whose head is not its embeddings.
struct TextNames {
  std::string_view embeddings;
  std::string_view layers;
  std::string_view input_norm, attention_norm, q, k, v, o, gate, up, down;
  std::string_view norm, head;
};

/// The name of a block's tensor: "model.visual.blocks.", 3 and "norm1" are "model.visual.blocks.3.norm1".
inline std::string of_block(std::string_view blocks, int block, std::string_view tensor) {
  return std::string(blocks) + std::to_string(block) + "." + std::string(tensor);
}

/// Of a vision tower. Views are of text that lives as long as the program.
struct VisionTraits {
  VisionNames names = {};
  /// Of the gate of its MLPs, and between the products of its merger.
  kernels::Activation activation = kernels::Activation::none;
  kernels::Activation merger_activation = kernels::Activation::none;
  float norm_eps = 0;
  /// Base of the rotary frequencies of rows and of columns.
  float rope_theta = 0;
};

/// Of a token's positions on the temporal, height and width axes, those that go on with the time of a video.
using TimeAxes = std::array<bool, 3>;
inline constexpr TimeAxes kTimeAlone{true, false, false};

/// Of a decoder; the same of views.
struct TextTraits {
  TextNames names = {};
  /// Of the gate of its MLPs.
  kernels::Activation activation = kernels::Activation::none;
  /// Queries, keys and values have a bias.
  bool qkv_bias = false;
  /// Which axes of a visual token's position (temporal, height, width) go on with the time of a video. No
  /// text stands between its frames.
  TimeAxes time_axes = kTimeAlone;
};

}  // namespace vigil::model
