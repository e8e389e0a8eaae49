// Keys and values of some tokens out of the pages, in one piece and in fewer bytes, and back: what leaves a
// camera's window can be kept elsewhere and come again.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// How an element is written. What comes back is, of a bf16 x (a cache of f32 is rounded to bf16 first):
///
///   bf16   x itself, bit for bit.
///
///   fp8    e4m3(x · (1 / s)) · s with a scale for each token of a head: s = max(m / 448, 2^-126), m being
///          the largest finite |x| of its head_dim elements. Off by less than |x| / 16, or by s / 1024.
///
///   int4   b + q s with a base and a step for each column of a head in each block of kPackedBlock tokens
///          (KIVI, arXiv 2402.02750, whose keys are rounded along tokens; so are values here): b is the
///          smallest x, s = (largest - smallest) / 15, q = round((x - b) / s) from 0 to 15. Off by s / 2 at
///          most. A step below 2^-126 is 0, and all x become b.
///
/// s is bf16, rounded towards zero, so that nothing comes back that is beyond the largest: what is cut off by
/// that is below half a step. The rest is f32, each operation rounded to nearest; b is a bf16 anyway. A -0
/// that is the base comes back as 0.
///
/// NaN and infinities: bf16 keeps them (a NaN of f32 becomes 0x7fff). fp8 and int4 bring a NaN back for each,
/// in its place; they have no share in scale, base or step, so no other element suffers. For that, a column
/// of a block that has one counts to 14 instead of 15: s = (largest - smallest) / 14, written with its sign
/// bit set, and code 15 is NaN.
enum class PackedForm : std::uint8_t { bf16, fp8, int4 };

/// Tokens that share a base and a step, and lie together.
inline constexpr std::int64_t kPackedBlock = 64;

/// Where a packed byte range begins, and each of its parts.
inline constexpr std::int64_t kPackedAlignment = 16;

/// What lies where in packed keys and values, of all KV heads of the model, whoever has which:
///
///   [layers][key, value][kv_heads]   segments of `segment_bytes()`, each of all tokens of a head
///   segment:                         blocks of kPackedBlock tokens, the last one of those that are left
///   block of n tokens, bf16:         [n, head_dim] bf16
///                      fp8:          s: [n] bf16, then [n, head_dim] e4m3
///                      int4:         b: [head_dim] bf16, s: [head_dim] bf16, then [n, head_dim / 2] bytes of
///                                    two codes, the even column's in the lower half
///
/// Each part (s of fp8; b and s of int4 together; the elements) begins at a multiple of 16 bytes, with zeros
/// between. The bytes do not depend on pages, on the device or on how many of them share the heads. A block
/// can be read by itself. Of n tokens, n a multiple of 64, of heads of 128: bf16 256 bytes a token and head,
/// fp8 130, int4 72; heads of 64: 128, 66, 36.
struct PackedShape {
  PackedForm form = PackedForm::bf16;
  std::int64_t layers = 0;
  /// Of all devices.
  std::int64_t kv_heads = 0;
  /// Even.
  std::int64_t head_dim = 0;
  std::int64_t tokens = 0;

  /// The bytes of a block before its elements.
  constexpr std::int64_t head_bytes(std::int64_t block_tokens) const {
    switch (form) {
      case PackedForm::bf16:
        return 0;
      case PackedForm::fp8:
        return aligned(2 * block_tokens);
      case PackedForm::int4:
        return aligned(4 * head_dim);
    }
    return 0;
  }
  /// The bytes of a token's elements in its block.
  constexpr std::int64_t row_bytes() const {
    return form == PackedForm::bf16 ? 2 * head_dim : form == PackedForm::fp8 ? head_dim : head_dim / 2;
  }
  constexpr std::int64_t block_bytes(std::int64_t block_tokens) const {
    return head_bytes(block_tokens) + aligned(block_tokens * row_bytes());
  }
  constexpr std::int64_t segment_bytes() const {
    const std::int64_t left = tokens % kPackedBlock;
    return tokens / kPackedBlock * block_bytes(kPackedBlock) + (left > 0 ? block_bytes(left) : 0);
  }
  constexpr std::int64_t bytes() const { return layers * 2 * kv_heads * segment_bytes(); }

  constexpr std::int64_t blocks() const { return (tokens + kPackedBlock - 1) / kPackedBlock; }
  constexpr std::int64_t tokens_of_block(std::int64_t block) const {
    return block < tokens / kPackedBlock ? kPackedBlock : tokens % kPackedBlock;
  }
  /// Where a block of the keys (or values) of one head begins.
  constexpr std::int64_t offset(std::int64_t layer, bool value, std::int64_t head, std::int64_t block) const {
    return ((layer * 2 + (value ? 1 : 0)) * kv_heads + head) * segment_bytes() +
           block * block_bytes(kPackedBlock);
  }

  static constexpr std::int64_t aligned(std::int64_t bytes) {
    return (bytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
  }
};

/// Some layers of a cache: the first one, how many, and the elements from a layer's base to the next one's.
/// A device that shares the model has some of its KV heads.
struct KvLayers {
  KvLayer first;
  std::int64_t count = 0;
  std::int64_t stride = 0;
};

/// The slots of tokens on the stream's device: of token i in layer l slots[l * stride + i]. With a stride of
/// 0 all layers have one list. Slots are not checked; none occurs twice in a list that is written to.
struct KvSlots {
  const std::int32_t* slots = nullptr;
  std::int64_t stride = 0;
};

/// The part of packed keys and values that a call is about: as many layers and heads as the cache has that is
/// given with it, from these on, and `count` tokens from `token` on, any.
struct PackedPart {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  std::int64_t token = 0;
  std::int64_t count = 0;
};

/// Packs the keys and values of the tokens in `slots` ([layers of `from`, shape.tokens], in the caller's
/// order) into their layers and heads of `to`, from `layer` and `head` on: all of their bytes, none of
/// others.
///
/// to: shape.bytes() on the stream's device, or memory of the host that it can write, at a multiple of 16.
/// Throws std::invalid_argument for a cache that is neither f32 nor bf16 or has another head_dim, an odd
/// head_dim, layers and heads that are not in the shape, and memory that begins elsewhere.
void pack_kv(Stream& stream, const KvLayers& from, KvSlots slots, const PackedShape& shape,
             std::int64_t layer, std::int64_t head, std::byte* to);

/// Unpacks a part into slots of a cache: token part.token + i into slots i, f32 or bf16. With cos and sin,
/// keys are turned as rotate_keys does (paged_keys.h) before they are rounded to the cache's type, once: a
/// pair whose angle is 0 comes back as it was packed. Values are not turned.
///
/// from: as `to` of pack_kv; it may be pinned memory of the host. cos and sin: f32 [part.count, head_dim /
/// 2], dense, as rope_angles makes them of differences of positions, for all layers; both null: no turn.
/// Throws what pack_kv does, and for tokens that are not in the shape or one of cos and sin alone.
void unpack_kv(Stream& stream, const std::byte* from, const PackedShape& shape, const PackedPart& part,
               const float* cos, const float* sin, KvSlots slots, const KvLayers& to);

}  // namespace vigil::kernels
