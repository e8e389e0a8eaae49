#include <cooperative_groups.h>

#include "kernels/device/cuda.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/similarity/similarity_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kEdge = static_cast<int>(kCropEdge), kTokens = static_cast<int>(kCropTokens);
/// One of a block's warps a pair of rows of the crop: each row with itself and with those above it.
constexpr int kWarps = kEdge * (kEdge + 1) / 2, kThreads = kWarps * kWarp;
/// Blocks of a crop, a cluster: they divide the elements among them.
constexpr int kBlocks = 4;
/// Elements of a crop's tokens that a block has in its shared memory at a time.
constexpr int kPart = 256;
/// Tokens that a warp multiplies with those at their places before.
constexpr int kBefore = (kTokens + kWarps - 1) / kWarps;

struct Placed {
  const void* embeddings;
  std::int64_t stride;
  const std::int32_t* places;
  int tokens;

  /// The row of the token at this place, or -1.
  __device__ int row_of(std::int64_t place) const {
    int begin = 0, end = tokens;
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if (places[middle] < place) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    return begin < tokens && places[begin] == place ? begin : -1;
  }
};

struct Sums {
  /// Of two tokens: the later one's row.
  float with[kTokens][kTokens];
  float with_before[kTokens], of_before[kTokens];
};
constexpr int kSums = sizeof(Sums) / sizeof(float);

/// A place without a token has zeros: it has no direction, and counts for no other.
template <typename T, int count>
__device__ void load_part(const Placed& tokens, const int* rows, int begin, int width, float (*part)[kPart]) {
  using Values = cuda::Pack<T, count>;
  using Numbers = cuda::Pack<float, count>;
  constexpr int kPacks = kPart / count;
  for (int item = static_cast<int>(threadIdx.x); item < kTokens * kPacks; item += kThreads) {
    const int token = item / kPacks, pack = item % kPacks;
    Numbers numbers{};
    if (rows[token] >= 0 && begin + pack * count < width) {
      const T* row = static_cast<const T*>(tokens.embeddings) + rows[token] * tokens.stride + begin;
      const Values values = reinterpret_cast<const Values*>(row)[pack];
#pragma unroll
      for (int j = 0; j < count; ++j) numbers.values[j] = cuda::number(values.values[j]);
    }
    reinterpret_cast<Numbers*>(part[token])[pack] = numbers;
  }
}

/// What the sums of a crop say of its token.
__device__ void tell(const Sums& sums, int token, float* to_before, float* spread) {
  const float unknown = nanf("");
  const double own = sums.with[token][token];
  *to_before = *spread = unknown;
  if (!has_direction(own)) return;
  const double of_before = sums.of_before[token];
  if (has_direction(of_before))
    *to_before = static_cast<float>(sums.with_before[token] / sqrt(own * of_before));
  const auto alike = [&](int k) {
    return sums.with[max(token, k)][min(token, k)] / sqrt(own * sums.with[k][k]);
  };
  double sum = 0, squares = 0;
  int counted = 0;
  for (int k = 0; k < kTokens; ++k) {
    if (!has_direction(sums.with[k][k])) continue;
    sum += alike(k);
    ++counted;
  }
  const double mean = sum / counted;
  for (int k = 0; k < kTokens; ++k) {
    if (!has_direction(sums.with[k][k])) continue;
    const double off = alike(k) - mean;
    squares += off * off;
  }
  *spread = static_cast<float>(squares / counted);
}

/// One cluster a crop.
template <typename T, int count>
__global__ void __cluster_dims__(kBlocks) __launch_bounds__(kThreads)
    compare(const Placed tokens, const Placed before, int width, std::int64_t rows, std::int64_t columns,
            float* to_before, float* spread) {
  using Values = cuda::Pack<T, count>;
  using Numbers = cuda::Pack<float, count>;
  __shared__ alignas(16) float part[kTokens][kPart];
  __shared__ Sums sums;
  __shared__ int rows_of[kTokens], rows_before[kTokens];
  const auto cluster = cooperative_groups::this_cluster();
  const auto block = static_cast<int>(cluster.block_rank());
  const auto thread = static_cast<int>(threadIdx.x);
  const int warp = thread / kWarp, lane = thread % kWarp;

  if (thread < kTokens) {
    const std::int64_t crop = blockIdx.x / kBlocks, across = crops_along(columns);
    const std::int64_t y = crop / across * kEdge + thread / kEdge, x = crop % across * kEdge + thread % kEdge;
    const std::int64_t place = y < rows && x < columns ? y * columns + x : -1;
    rows_of[thread] = place < 0 ? -1 : tokens.row_of(place);
    rows_before[thread] = rows_of[thread] < 0 ? -1 : before.row_of(place);
  }
  // Rows of the crop: the warp's own, and an earlier one or the same.
  int lower = 0, upper = warp;
  while (upper > lower) upper -= ++lower;
  __syncthreads();

  float with[kEdge][kEdge] = {};
  float with_before[kBefore] = {}, of_before[kBefore] = {};
  for (int begin = block * kPart; begin < width; begin += kBlocks * kPart) {
    load_part<T, count>(tokens, rows_of, begin, width, part);
    __syncthreads();
    for (int e = lane; e < kPart; e += kWarp) {
      float own[kEdge], others[kEdge];
#pragma unroll
      for (int i = 0; i < kEdge; ++i) own[i] = part[lower * kEdge + i][e];
#pragma unroll
      for (int k = 0; k < kEdge; ++k) others[k] = part[upper * kEdge + k][e];
#pragma unroll
      for (int i = 0; i < kEdge; ++i)
#pragma unroll
        for (int k = 0; k < kEdge; ++k) with[i][k] += own[i] * others[k];
    }
#pragma unroll
    for (int i = 0; i < kBefore; ++i) {
      const int token = warp + i * kWarps;
      if (token >= kTokens || rows_before[token] < 0) continue;
      const T* row = static_cast<const T*>(before.embeddings) + rows_before[token] * before.stride + begin;
      for (int pack = lane; pack < kPart / count && begin + pack * count < width; pack += kWarp) {
        const Values values = reinterpret_cast<const Values*>(row)[pack];
        const Numbers numbers = reinterpret_cast<const Numbers*>(part[token])[pack];
#pragma unroll
        for (int j = 0; j < count; ++j) {
          const float past = cuda::number(values.values[j]);
          with_before[i] += numbers.values[j] * past;
          of_before[i] += past * past;
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < kEdge; ++i)
#pragma unroll
    for (int k = 0; k < kEdge; ++k) {
      const float sum = cuda::warp_sum(with[i][k]);
      if (lane == 0) sums.with[lower * kEdge + i][upper * kEdge + k] = sum;
    }
#pragma unroll
  for (int i = 0; i < kBefore; ++i) {
    const int token = warp + i * kWarps;
    const float product = cuda::warp_sum(with_before[i]), squares = cuda::warp_sum(of_before[i]);
    if (lane == 0 && token < kTokens) {
      sums.with_before[token] = product;
      sums.of_before[token] = squares;
    }
  }
  cluster.sync();
  if (block == 0) {
    // Those above the diagonal of rows are nobody's, and nobody reads what is added up of them.
    auto* own = reinterpret_cast<float*>(&sums);
    for (int i = thread; i < kSums; i += kThreads)
      for (int other = 1; other < kBlocks; ++other) own[i] += cluster.map_shared_rank(own, other)[i];
    __syncthreads();
    if (thread < kTokens && rows_of[thread] >= 0)
      tell(sums, thread, to_before + rows_of[thread], spread + rows_of[thread]);
  }
  cluster.sync();  // the first block has read the others' memory
}

Placed placed(const PlacedTokens& tokens) {
  return {tokens.embeddings.data, tokens.embeddings.stride, tokens.places,
          static_cast<int>(tokens.embeddings.rows)};
}

}  // namespace

void cuda::token_similarity(Stream& stream, const PlacedTokens& tokens, const PlacedTokens& before,
                            std::int64_t rows, std::int64_t columns, float* to_before, float* spread) {
  const cudaStream_t queue = queue_of(stream);
  const std::int64_t width = tokens.embeddings.cols;
  const auto crops = static_cast<unsigned>(crops_along(rows) * crops_along(columns));
  with_type(tokens.embeddings.dtype, [&](auto type) {
    using T = decltype(type);
    const auto launch = [&]<int count>() {
      compare<T, count><<<crops * kBlocks, kThreads, 0, queue>>>(
          placed(tokens), placed(before), static_cast<int>(width), rows, columns, to_before, spread);
    };
    const auto fits = [&](const ConstMatrix& x) {
      return x.rows == 0 || packs(x.data, x.stride, width, sizeof(T), 4);
    };
    if (fits(tokens.embeddings) && fits(before.embeddings)) {
      launch.template operator()<4>();
    } else {
      static SlowPath slow{"token_similarity", kOddRows};
      slow.taken();
      launch.template operator()<1>();
    }
  });
  check_launch("token_similarity");
}

}  // namespace vigil::kernels
