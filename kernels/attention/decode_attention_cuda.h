// Attention of one new token per sequence over its paged keys, on Hopper (sm_90a), bf16: bound by reading the
// pages.
//
// The (sequence, KV head, page) triples of all sequences are one row of work that the grid's blocks divide
// evenly, so that a long sequence is split over many blocks and short ones share them, whatever the lengths
// are when the grid runs. All query heads of a KV head are answered while its page is at hand. Where blocks
// share a KV head of a sequence, each leaves its part in the workspace, and a second kernel, whose blocks
// wait beside the first, combines them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

namespace vigil::kernels::cuda {

/// The most sequences of a call, and query heads to a KV head.
inline constexpr int kDecodeSequences = 1024;
inline constexpr int kDecodeGroup = 16;

/// All pointers are to device memory and borrowed until the stream has run the call.
struct DecodeAttention {
  const void* q = nullptr;  // [sequences, heads * head_dim] bf16, rows q_stride elements apart
  std::int64_t q_stride = 0;
  void* out = nullptr;  // the same shape, rows out_stride elements apart
  std::int64_t out_stride = 0;

  const void* base = nullptr;  // keys and values, as in KvLayer: pages of 64 tokens, bf16
  std::int64_t page_stride = 0;
  std::int64_t value_offset = 0;
  std::int64_t pool_pages = 0;
  int kv_heads = 0;
  int heads = 0;     // a multiple of kv_heads
  int head_dim = 0;  // 64 or 128

  int sequences = 0;
  const std::int32_t* page_ids = nullptr;
  const std::uint64_t* live = nullptr;  // beside each page id: bit i tells that its token i is a live key
  const std::int32_t* first_page = nullptr;  // of each sequence: where its list begins in page_ids and live
  const std::int32_t* position =
      nullptr;                // of each sequence's query: its page's place in the list * 64 + its place
                              // there; negative: the sequence rests, its row is not written
  void* workspace = nullptr;  // decode_workspace_bytes(), aligned to 16; of one stream at a time
  float scale = 1;            // of the scores; positive
  /// Promises that page_ids, live, first_page and position are in place, and all pages but the one of each
  /// sequence's position, when kernels that the stream was given since its last kernel without overlap may
  /// still run. The call then reads them while these do (programmatic dependent launch).
  bool lists_in_place = false;
};

/// Bytes of workspace that a call with up to so many sequences takes on the current device.
/// Throws std::runtime_error where CUDA fails.
std::size_t decode_workspace_bytes(int sequences, int heads, int kv_heads, int head_dim);

/// out[s, h] = Σ_j softmax_j(scale q[s, h] · k[j, h / group]) v[j, h / group] over the live keys j of
/// sequence s at or before its position; zero if there is none. Whatever lies at dead keys, NaN too, leaves
/// no trace. The grid depends on the device alone: a graph that captured the call follows lengths and page
/// lists as they change in device memory.
///
/// Throws std::invalid_argument for shapes and alignments that do not fit, std::runtime_error where CUDA
/// fails.
void decode_attention(cudaStream_t stream, const DecodeAttention& call);

}  // namespace vigil::kernels::cuda
