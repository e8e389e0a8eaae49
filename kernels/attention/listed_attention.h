// Attention over paged keys and, beside them, over keys of each KV head's own: where what was chosen of a
// long past differs from head to head, no list of pages can name it.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"

namespace vigil::kernels {

/// Of each sequence that has lists, and each KV head, a list of keys and values, of a length of its own that
/// is known on the device alone. Borrowed, on the stream's device, of the type, KV heads and head_dim of the
/// pages beside it.
struct KvLists {
  /// [sequences, kv_heads, capacity, head_dim], dense. What lies past a list's end is not looked at.
  const void* keys = nullptr;
  const void* values = nullptr;
  /// [sequences, kv_heads]: how long each list is; what is below 0 or above the capacity counts as that.
  const std::int32_t* counts = nullptr;
  std::int64_t sequences = 0;
  std::int64_t capacity = 0;
  /// [segments]: which of the sequences each segment of the plan is; -1: it has no lists. Null: the one of
  /// its own number.
  const std::int32_t* of_segment = nullptr;
};

/// out[i, h] = Σ_j softmax_j(scale q[i, h] · k[j, h / group]) v[j, h / group] over the keys of the pages that
/// query i of segment s sees (paged_attention), and over all of list (of_segment[s], h / group). Without a
/// list, or with an empty one, it is paged_attention; with lists of all that is not in the pages, attention
/// to everything. A row whose scores are all -inf is NaN, as its softmax is; what is NaN in a list shows in
/// the rows of its sequence and KV head alone.
///
/// q and out as of paged_attention; scale above 0. The lengths may change between calls that were recorded
/// once (device/replay.h): the work is divided when it runs. Few rows a sequence are what it is for: beyond
/// 64 (query, head) rows a KV head, keys are read once for each 64 of them. Throws std::invalid_argument as
/// paged_attention does, for lists that are not one a segment, where nobody says whose they are (who
/// does is believed), and, where keys go through a GPU's matrix
/// units, for rows or lists that do not begin at multiples of 16 bytes.
void listed_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                      const KvLists& lists, float scale, Matrix out);

}  // namespace vigil::kernels
