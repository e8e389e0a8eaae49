// Attention of any ascending subset of a stream's tokens over its paged keys, on Hopper (sm_90a), bf16.
//
// One block of the grid takes a tile of consecutive queries with all query heads of one KV head as its 128
// rows, so that few queries fill it and the keys behind the tile's last query are few. One warp copies pages
// to shared memory, a second zeroes the values of dead keys there, and two warpgroups of 64 rows each keep
// scores and the sum in registers (online softmax; FlashAttention-3, Shah et al. 2024, sections 3.1 and 3.2).
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace vigil::kernels::cuda {

/// `rows` consecutive rows of q and out, from `first_row`, all of one segment. Its keys lie in the pages
/// page_ids[first_page .. first_page + pages): all pages of the segment up to the one of its last query's own
/// key.
struct QueryTile {
  std::int32_t first_row;
  std::int32_t rows;  // 1 to tile_rows()
  std::int32_t first_page;
  std::int32_t pages;  // at least 1
};

/// All pointers are to device memory and borrowed until the stream has run the call.
struct IndexedAttention {
  const void* q = nullptr;  // [rows, heads * head_dim] bf16, rows q_stride elements apart
  std::int64_t q_stride = 0;
  void* out = nullptr;  // the same shape, rows out_stride elements apart
  std::int64_t out_stride = 0;

  const void* base = nullptr;  // keys and values, as in KvLayer: pages of 64 tokens, bf16
  std::int64_t page_stride = 0;
  std::int64_t value_offset = 0;
  std::int64_t pool_pages = 0;
  int kv_heads = 0;
  int heads = 0;     // a multiple of kv_heads, at most 128 of them to a KV head
  int head_dim = 0;  // 64 or 128

  const std::int32_t* page_ids = nullptr;
  const std::uint64_t* live = nullptr;  // beside each page id: bit i tells that its token i is a live key
  const std::int32_t* position =
      nullptr;  // of each row: its page's place in its segment's list * 64 + its place there
  const QueryTile* tiles = nullptr;  // longest first, or blocks wait for the last one
  std::int32_t tile_count = 0;
  float scale = 1;  // of the scores; positive

  /// May be none. With it, a few tiles with long lists are spread over the whole device:
  /// indexed_workspace_bytes(), aligned to 16, of one stream at a time.
  void* workspace = nullptr;
};

/// The most rows of a tile: 128 / (heads / kv_heads).
int tile_rows(int heads, int kv_heads);

/// Bytes of workspace for any call on the current device. Throws std::runtime_error where CUDA fails.
std::size_t indexed_workspace_bytes(int head_dim);

/// out[i, h] = Σ_j softmax_j(scale q[i, h] · k[j, h / group]) v[j, h / group] over the live keys j at or
/// before the position of row i; zero for a row that sees none. Whatever lies at dead keys, NaN too, leaves
/// no trace. Writes the rows of its tiles only. Positions ascend within a tile. Takes no memory and may be
/// captured in a graph.
///
/// Throws std::invalid_argument for shapes and alignments that do not fit, std::runtime_error where CUDA
/// fails.
void indexed_attention(cudaStream_t stream, const IndexedAttention& call);

}  // namespace vigil::kernels::cuda
