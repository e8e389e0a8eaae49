#include <utility>

#include <cub/block/block_radix_sort.cuh>

#include "kernels/device/cuda.cuh"
#include "kernels/top_k/top_k_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kItems = 16;
/// Numbers that a block sorts. Of each such chunk the largest remain, until they are one.
constexpr int kChunk = kThreads * kItems;
static_assert(kChunk >= 2 * kMostTopK, "each turn leaves fewer");

/// Numbers of rows, and where they are from; no columns: these are their places.
struct Numbers {
  const float* values;
  const std::int32_t* columns;
  std::int64_t stride;
  std::int64_t count;
};

/// A block a chunk of a row. The sort is stable and chunks are in the order of their columns, so that equal
/// numbers stay in it.
__global__ void __launch_bounds__(kThreads)
    keep_largest(Numbers from, float* values, std::int32_t* columns, std::int64_t stride, int count) {
  using Sort = cub::BlockRadixSort<float, kThreads, kItems, std::int32_t>;
  __shared__ typename Sort::TempStorage storage;
  const std::int64_t begin = std::int64_t{blockIdx.x} * kChunk;
  const float* row = from.values + blockIdx.y * from.stride;
  const std::int32_t* row_columns =
      from.columns == nullptr ? nullptr : from.columns + blockIdx.y * from.stride;
  float keys[kItems];
  std::int32_t places[kItems];
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const std::int64_t at = begin + static_cast<int>(threadIdx.x) * kItems + i;
    const float value = at < from.count ? row[at] : -INFINITY;
    const bool any = value > -INFINITY;  // not of NaN
    keys[i] = any ? value : -INFINITY;
    places[i] = !any ? -1 : row_columns == nullptr ? static_cast<std::int32_t>(at) : row_columns[at];
  }
  Sort(storage).SortDescending(keys, places);
#pragma unroll
  for (int i = 0; i < kItems; ++i) {
    const int rank = static_cast<int>(threadIdx.x) * kItems + i;
    if (rank >= count) break;
    const std::int64_t to = blockIdx.y * stride + std::int64_t{blockIdx.x} * count + rank;
    values[to] = keys[i];
    columns[to] = places[i];
  }
}

}  // namespace

void cuda::top_k(Stream& stream, ConstMatrix x, std::int64_t count, std::int32_t* columns, float* values) {
  const cudaStream_t queue = queue_of(stream);
  // Of the first turn the most is left; the second's lies beside it, the third's in the first's place.
  const std::int64_t most = (x.cols + kChunk - 1) / kChunk * count;
  const auto area = static_cast<std::size_t>(x.rows * most);
  auto* workspace = static_cast<float*>(stream.cuda_queue().workspace(
      CudaQueue::Workspace::top_k, 2 * area * (sizeof(float) + sizeof(std::int32_t))));
  float* left = workspace;
  float* spare = workspace + 2 * area;

  Numbers from{x.row<float>(0), nullptr, x.stride, x.cols};
  while (true) {
    const std::int64_t chunks = from.count > kChunk ? (from.count + kChunk - 1) / kChunk : 1;
    const bool last = chunks == 1;
    float* to = last ? values : left;
    std::int32_t* to_columns = last ? columns : reinterpret_cast<std::int32_t*>(left + area);
    const std::int64_t stride = chunks * count;
    keep_largest<<<dim3(static_cast<unsigned>(chunks), static_cast<unsigned>(x.rows)), kThreads, 0, queue>>>(
        from, to, to_columns, stride, static_cast<int>(count));
    if (last) break;
    from = {to, to_columns, stride, stride};
    std::swap(left, spare);
  }
  check_launch("top_k");
}

}  // namespace vigil::kernels
