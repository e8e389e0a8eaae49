// A stream in pages on the GPU with random keys, values and queries, to time attention on.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>

#include "kernels/attention/decode_attention_cuda.h"
#include "kernels/attention/indexed_attention_cuda.h"

namespace vigil::loadtest {

inline void require_cuda(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

/// Device memory that lives as long as the program.
template <typename T>
T* to_device(const std::vector<T>& values) {
  void* memory = nullptr;
  require_cuda(cudaMalloc(&memory, std::max<std::size_t>(values.size() * sizeof(T), 1)));
  require_cuda(cudaMemcpy(memory, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return static_cast<T*>(memory);
}

/// Standard normal numbers in bf16: a million of them over and over, from another place each time.
inline std::uint16_t* random_bf16(std::size_t count) {
  static const std::vector<std::uint16_t> drawn = [] {
    std::mt19937 random(std::random_device{}());
    std::normal_distribution<float> normal;
    std::vector<std::uint16_t> values(1'000'003);
    for (std::uint16_t& value : values)
      value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16);
    return values;
  }();
  static std::size_t place = 0;
  std::vector<std::uint16_t> values(count);
  for (std::uint16_t& value : values) {
    value = drawn[place];
    if (++place == drawn.size()) place = 0;
  }
  return to_device(values);
}

/// Median of `runs` times in milliseconds between events, after `warm` runs.
inline double median_ms(cudaStream_t stream, int warm, int runs, const std::function<void()>& work) {
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  require_cuda(cudaEventCreate(&start));
  require_cuda(cudaEventCreate(&stop));
  std::vector<float> times;
  for (int i = 0; i < warm + runs; ++i) {
    require_cuda(cudaEventRecord(start, stream));
    work();
    require_cuda(cudaEventRecord(stop, stream));
    require_cuda(cudaEventSynchronize(stop));
    float time = 0;
    require_cuda(cudaEventElapsedTime(&time, start, stop));
    if (i >= warm) times.push_back(time);
  }
  require_cuda(cudaEventDestroy(start));
  require_cuda(cudaEventDestroy(stop));
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());
  return times[static_cast<std::size_t>(runs / 2)];
}

/// One stream: `tokens` stored, a share of them dead, `queries` of the live ones (ascending) ask.
struct StreamCase {
  std::string name;
  int tokens = 0;
  double dead = 0;
  std::vector<int> queries;
  int heads = 28;
  int kv_heads = 4;
  int head_dim = 128;
};

struct PreparedCase {
  vigil::kernels::cuda::IndexedAttention call;
  double flops = 0;  // 4 * head_dim * heads * visible (query, key) pairs
};

inline PreparedCase prepare(const StreamCase& of) {
  std::mt19937 random(7);
  const int pages = (of.tokens + 63) / 64;
  std::vector<std::int32_t> page_ids(static_cast<std::size_t>(pages));
  for (int i = 0; i < pages; ++i) page_ids[static_cast<std::size_t>(i)] = i;
  std::shuffle(page_ids.begin(), page_ids.end(), random);
  std::vector<char> asks(static_cast<std::size_t>(of.tokens), 0);
  for (const int query : of.queries) asks[static_cast<std::size_t>(query)] = 1;
  std::vector<std::uint64_t> live(static_cast<std::size_t>(pages), 0);
  std::uniform_real_distribution<double> uniform;
  std::int64_t keys = 0;
  std::int64_t pairs = 0;
  std::vector<std::int32_t> position;
  for (int token = 0; token < of.tokens; ++token) {
    const bool query = asks[static_cast<std::size_t>(token)] != 0;
    if (!query && uniform(random) < of.dead) continue;
    live[static_cast<std::size_t>(token / 64)] |= std::uint64_t{1} << (token % 64);
    ++keys;
    if (!query) continue;
    pairs += keys;
    position.push_back(token);
  }
  const int rows = vigil::kernels::cuda::tile_rows(of.heads, of.kv_heads);
  std::vector<vigil::kernels::cuda::QueryTile> tiles;
  const auto queries = static_cast<int>(of.queries.size());
  for (int first = 0; first < queries; first += rows) {
    const int count = std::min(rows, queries - first);
    tiles.push_back({first, count, 0, position[static_cast<std::size_t>(first + count - 1)] / 64 + 1});
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const auto& a, const auto& b) { return a.pages > b.pages; });

  PreparedCase prepared;
  vigil::kernels::cuda::IndexedAttention& call = prepared.call;
  const std::int64_t columns = std::int64_t{of.heads} * of.head_dim;
  const std::size_t elements = static_cast<std::size_t>(queries) * static_cast<std::size_t>(columns);
  call.q = random_bf16(elements);
  call.out = random_bf16(elements);
  call.q_stride = call.out_stride = columns;
  call.value_offset = std::int64_t{of.kv_heads} * 64 * of.head_dim;
  call.page_stride = 2 * call.value_offset;
  call.pool_pages = pages;
  call.base = random_bf16(static_cast<std::size_t>(call.page_stride * pages));
  call.kv_heads = of.kv_heads;
  call.heads = of.heads;
  call.head_dim = of.head_dim;
  call.page_ids = to_device(page_ids);
  call.live = to_device(live);
  call.position = to_device(position);
  call.tiles = to_device(tiles);
  call.tile_count = static_cast<std::int32_t>(tiles.size());
  call.scale = 0.088388F;
  const std::size_t bytes = vigil::kernels::cuda::indexed_workspace_bytes(of.head_dim);
  require_cuda(cudaMalloc(&call.workspace, bytes));
  prepared.flops = 4.0 * of.head_dim * of.heads * static_cast<double>(pairs);
  return prepared;
}

/// `count` queries: every so many tokens, or the last ones.
inline std::vector<int> spread_queries(int tokens, int count) {
  std::vector<int> queries;
  for (int i = 0; i < count; ++i)
    queries.push_back(static_cast<int>(std::int64_t{tokens} * (i + 1) / count) - 1);
  return queries;
}
inline std::vector<int> last_queries(int tokens, int count) {
  std::vector<int> queries;
  for (int i = 0; i < count; ++i) queries.push_back(tokens - count + i);
  return queries;
}

/// One decode step of `sequences` sequences of `tokens` keys, in so many layers, that their pages exceed the
/// cache.
struct DecodeCase {
  std::string name;
  int sequences = 1;
  int tokens = 0;
  int layers = 1;
  int heads = 28;
  int kv_heads = 4;
  int head_dim = 128;
  bool overlap = false;  // each layer's call begins while the last one ends
};

struct PreparedDecode {
  std::vector<vigil::kernels::cuda::DecodeAttention> layers;
  void* pool = nullptr;
  double bytes = 0;  // of keys and values, of one layer
};

inline PreparedDecode prepare(const DecodeCase& of) {
  const int pages = (of.tokens + 63) / 64;
  const int all_pages = pages * of.sequences;
  std::vector<std::int32_t> page_ids(static_cast<std::size_t>(all_pages));
  for (int i = 0; i < all_pages; ++i) page_ids[static_cast<std::size_t>(i)] = i;
  std::shuffle(page_ids.begin(), page_ids.end(), std::mt19937(7));
  std::vector<std::uint64_t> live(page_ids.size(), ~std::uint64_t{0});
  std::vector<std::int32_t> first_page;
  std::vector<std::int32_t> position;
  for (int s = 0; s < of.sequences; ++s) {
    first_page.push_back(s * pages);
    position.push_back(of.tokens - 1);
  }
  vigil::kernels::cuda::DecodeAttention call;
  const std::int64_t columns = std::int64_t{of.heads} * of.head_dim;
  const std::size_t elements = static_cast<std::size_t>(of.sequences) * static_cast<std::size_t>(columns);
  call.q = random_bf16(elements);
  call.out = random_bf16(elements);
  call.q_stride = call.out_stride = columns;
  call.kv_heads = of.kv_heads;
  call.heads = of.heads;
  call.head_dim = of.head_dim;
  call.value_offset = std::int64_t{of.kv_heads} * 64 * of.head_dim;
  call.page_stride = 2 * call.value_offset * of.layers;
  call.pool_pages = all_pages;
  call.sequences = of.sequences;
  call.page_ids = to_device(page_ids);
  call.live = to_device(live);
  call.first_page = to_device(first_page);
  call.position = to_device(position);
  call.scale = 0.088388F;
  call.lists_in_place = of.overlap;
  const std::size_t bytes =
      vigil::kernels::cuda::decode_workspace_bytes(of.sequences, of.heads, of.kv_heads, of.head_dim);
  require_cuda(cudaMalloc(&call.workspace, bytes));

  // Drawn once, copied on the device until the pool is full.
  const auto pool_elements = static_cast<std::size_t>(call.page_stride * all_pages);
  const std::size_t drawn_elements = std::min<std::size_t>(pool_elements, 1 << 24);
  const std::uint16_t* drawn = random_bf16(drawn_elements);
  void* pool = nullptr;
  require_cuda(cudaMalloc(&pool, pool_elements * 2));
  for (std::size_t at = 0; at < pool_elements; at += drawn_elements)
    require_cuda(cudaMemcpy(static_cast<std::uint16_t*>(pool) + at, drawn,
                            std::min(drawn_elements, pool_elements - at) * 2, cudaMemcpyDeviceToDevice));
  PreparedDecode prepared;
  for (int layer = 0; layer < of.layers; ++layer) {
    call.base = static_cast<const std::uint16_t*>(pool) + layer * 2 * call.value_offset;
    prepared.layers.push_back(call);
  }
  prepared.pool = pool;
  prepared.bytes = 2.0 * 2 * of.sequences * of.tokens * of.kv_heads * of.head_dim;
  return prepared;
}

/// Milliseconds of one layer: a graph of all layers, median of `runs` replays.
inline double decode_ms(cudaStream_t stream, const PreparedDecode& of, int runs) {
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t replay = nullptr;
  require_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (const auto& layer : of.layers) vigil::kernels::cuda::decode_attention(stream, layer);
  require_cuda(cudaStreamEndCapture(stream, &graph));
  require_cuda(cudaGraphInstantiate(&replay, graph, 0));
  const double ms = median_ms(stream, 5, runs, [&] { require_cuda(cudaGraphLaunch(replay, stream)); });
  require_cuda(cudaGraphExecDestroy(replay));
  require_cuda(cudaGraphDestroy(graph));
  return ms / static_cast<double>(of.layers.size());
}

/// Bytes read and written per second, in TB/s, by a copy on the device of 2 GB.
inline double copy_rate(cudaStream_t stream) {
  constexpr std::size_t kBytes = std::size_t{2} << 30;
  void* from = nullptr;
  void* to = nullptr;
  require_cuda(cudaMalloc(&from, kBytes));
  require_cuda(cudaMalloc(&to, kBytes));
  require_cuda(cudaMemset(from, 1, kBytes));
  const double ms = median_ms(stream, 3, 10, [&] {
    require_cuda(cudaMemcpyAsync(to, from, kBytes, cudaMemcpyDeviceToDevice, stream));
  });
  require_cuda(cudaFree(from));
  require_cuda(cudaFree(to));
  return 2.0 * kBytes / ms / 1e9;
}

}  // namespace vigil::loadtest
