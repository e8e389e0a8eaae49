// Keys that lie in pages: how far others are from them, turning them to other positions, and as rows.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// to[i] = Σ_h Σ_d (k[i, h, d] - key[slots[i], h, d])²: how far each key is from the one in a slot of its
/// layer, over all KV heads of the layer.
///
/// k: [rows, kv_heads * head_dim] of the layer's type, f32 or bf16, rotated as what lies in the pages is;
/// slots: [rows], each a slot of the layer (not checked), any of them more than once; to: f32 [rows], added
/// up in f32. All of it lies on the stream's device. Throws std::invalid_argument for shapes or types that
/// do not fit.
void key_distances(Stream& stream, ConstMatrix k, const std::int32_t* slots, const KvLayer& layer, float* to);

/// key[slots[i], h] = R(i) key[slots[i], h] for all KV heads h, in place, R(i) being the rotation that `rope`
/// (rope/rope.h) makes by row i of cos and sin: with the angles of p' - p, keys of positions p become those
/// of p', since R(p') = R(p' - p) R(p) (equation 5 of CodecSight). Values have no position.
///
/// slots: [count], each a slot of the layer (not checked), none twice; cos and sin: f32 [count, head_dim /
/// 2], dense, as `rope_angles` makes them. Computed in f32 and rounded to the layer's type, f32 or bf16: each
/// turn of a bf16 key rounds it once more. A pair whose angle is 0 keeps its bits. Throws
/// std::invalid_argument for a negative count and for a layer whose keys are none of these types, or of an
/// odd width.
void rotate_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const float* cos,
                 const float* sin, const KvLayer& layer);

/// to[l * count + i, h * head_dim + d] = key[slots[i], h, d] of layer l: the keys of some tokens in all
/// layers as rows, layer after layer, bit for bit.
///
/// first: the first of `layers` layers, whose keys lie `layer_stride` elements apart in the same pages;
/// slots: [count], each a slot of them (not checked); to: [layers * count, kv_heads * head_dim] of their
/// type, on the stream's device, as all of it. Throws std::invalid_argument for shapes or types that do not
/// fit.
void read_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const KvLayer& first,
               std::int64_t layers, std::int64_t layer_stride, Matrix to);

}  // namespace vigil::kernels
