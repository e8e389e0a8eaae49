#include <algorithm>

#include "kernels/collective/sum_cuda.h"
#include "kernels/device/cuda.cuh"
#include "kernels/device/overlap.cuh"
#include "kernels/device/slow_path.h"

namespace vigil::kernels {
namespace {

using cuda::Ranks;
using cuda::RankState;

constexpr int kThreads = 512;
/// Polls between two looks at the host's memory.
constexpr int kPatience = 512;

/// 16 bytes of a part.
template <typename T>
constexpr int kNumbers = static_cast<int>(16 / sizeof(T));

__device__ __forceinline__ void send(std::byte* to, uint4 pack) {
  asm volatile("st.relaxed.sys.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(pack.x), "r"(pack.y),
               "r"(pack.z), "r"(pack.w)
               : "memory");
}

__device__ __forceinline__ uint4 look(const std::byte* at) {
  uint4 pack;
  asm volatile("ld.relaxed.sys.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "l"(at)
               : "memory");
  return pack;
}

/// 16 bytes that are read once.
__device__ __forceinline__ uint4 fetch(const void* from) {
  uint4 pack;
  asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "l"(from)
               : "memory");
  return pack;
}

/// The same numbers, and none of the words empty.
__device__ __forceinline__ std::uint32_t sendable(std::uint32_t word) {
  return word == cuda::kEmpty ? 0x7fff7fffU : word;
}
__device__ __forceinline__ uint4 sendable(uint4 pack) {
  return {sendable(pack.x), sendable(pack.y), sendable(pack.z), sendable(pack.w)};
}

/// What was sent to `at`, once all of it is there; leaves the place empty.
__device__ __forceinline__ uint4 receive(std::byte* at, const volatile int* off) {
  constexpr std::uint32_t empty = cuda::kEmpty;
  uint4 pack = look(at);
  for (int polls = 1; pack.x == empty || pack.y == empty || pack.z == empty || pack.w == empty; ++polls) {
    if (polls % kPatience == 0 && *off != 0) break;
    pack = look(at);
  }
  *reinterpret_cast<uint4*>(at) = {empty, empty, empty, empty};
  return pack;
}

template <typename T>
__device__ __forceinline__ void add(uint4 pack, float (&sums)[kNumbers<T>]) {
  const std::uint32_t words[4] = {pack.x, pack.y, pack.z, pack.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if constexpr (sizeof(T) == 4) {
      sums[i] += __uint_as_float(words[i]);
    } else {
      sums[2 * i] += __uint_as_float(words[i] << 16U);
      sums[2 * i + 1] += __uint_as_float(words[i] & 0xffff0000U);
    }
  }
}

/// What becomes of the sums of a row.
template <typename T>
struct Target {
  float* x;
  std::int64_t x_stride;
  std::int64_t cols;
  /// Null: no norm.
  const float* weight;
  float epsilon;
  T* out;
  std::int64_t out_stride;
};

/// Reads and writes `count` neighbours, of which those from `cols` on are not there.
template <int count, bool whole, typename From>
__device__ __forceinline__ void read(const From* from, std::int64_t at, std::int64_t cols,
                                     float (&to)[count]) {
  if constexpr (whole) {
    if (at >= cols) return;
    const auto pack = *reinterpret_cast<const cuda::Pack<From, 4>*>(from + at);
#pragma unroll
    for (int i = 0; i < 4; ++i) to[i] = cuda::number(pack.values[i]);
    if constexpr (count == 8) {
      const auto more = *reinterpret_cast<const cuda::Pack<From, 4>*>(from + at + 4);
#pragma unroll
      for (int i = 0; i < 4; ++i) to[4 + i] = cuda::number(more.values[i]);
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (at + i < cols) to[i] = cuda::number(from[at + i]);
  }
}

template <int count, bool whole, typename To>
__device__ __forceinline__ void write(To* to, std::int64_t at, std::int64_t cols,
                                      const float (&from)[count]) {
  if constexpr (whole) {
    if (at >= cols) return;
#pragma unroll
    for (int first = 0; first < count; first += 4) {
      cuda::Pack<To, 4> pack;
#pragma unroll
      for (int i = 0; i < 4; ++i) pack.values[i] = cuda::rounded<To>(from[first + i]);
      *reinterpret_cast<cuda::Pack<To, 4>*>(to + at + first) = pack;
    }
  } else {
#pragma unroll
    for (int i = 0; i < count; ++i)
      if (at + i < cols) to[at + i] = cuda::rounded<To>(from[i]);
  }
}

/// Numbers of a row that a thread has: those of the packs t, t + kThreads, ... of thread t.
template <typename T, int packs>
struct Numbers {
  float of[packs][kNumbers<T>] = {};

  template <bool whole>
  __device__ __forceinline__ void load(const float* row, std::int64_t cols) {
#pragma unroll
    for (int k = 0; k < packs; ++k) read<kNumbers<T>, whole>(row, place(k), cols, of[k]);
  }
  template <bool whole, typename To>
  __device__ __forceinline__ void store(To* row, std::int64_t cols) const {
#pragma unroll
    for (int k = 0; k < packs; ++k) write<kNumbers<T>, whole>(row, place(k), cols, of[k]);
  }
  __device__ static std::int64_t place(int k) {
    return (std::int64_t{k} * kThreads + threadIdx.x) * kNumbers<T>;
  }
};

/// x[row] += sums, and its norm; `x`: what the row is before, `weights`: of the norm, if there is one. Both
/// are loaded while the sums are on their way, and zero beyond the end of the row.
template <bool whole, typename T, int packs>
__device__ __forceinline__ void finish(Numbers<T, packs>& x, const Numbers<T, packs>& sums,
                                       const Numbers<T, packs>& weights, std::int64_t row,
                                       const Target<T>& target) {
  float squares = 0;
#pragma unroll
  for (int k = 0; k < packs; ++k)
#pragma unroll
    for (int i = 0; i < kNumbers<T>; ++i) {
      if (Numbers<T, packs>::place(k) + i < target.cols) x.of[k][i] += sums.of[k][i];
      squares += x.of[k][i] * x.of[k][i];
    }
  x.template store<whole>(target.x + row * target.x_stride, target.cols);
  if (target.weight == nullptr) return;

  __shared__ float of_warp[kThreads / 32];
  squares = cuda::warp_sum(squares);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = 0;
#pragma unroll
  for (int warp = 0; warp < kThreads / 32; ++warp) squares += of_warp[warp];
  const float scale = rsqrtf(squares / static_cast<float>(target.cols) + target.epsilon);
#pragma unroll
  for (int k = 0; k < packs; ++k)
#pragma unroll
    for (int i = 0; i < kNumbers<T>; ++i) x.of[k][i] *= weights.of[k][i] * scale;
  x.template store<whole>(target.out + row * target.out_stride, target.cols);
  __syncthreads();  // of_warp is free for the next row
}

struct Part {
  const std::byte* data;
  std::int64_t row_bytes;
  std::int64_t rows;
};

template <typename T, int packs, bool whole>
__global__ void __launch_bounds__(kThreads)
    exchange(const __grid_constant__ Ranks ranks, Part part, Target<T> target) {
  Numbers<T, packs> weights;
  if (target.weight != nullptr) weights.template load<whole>(target.weight, target.cols);
  cuda::await_previous();
  RankState& own = *ranks.state[ranks.rank];
  const unsigned long long turn = *const_cast<volatile unsigned long long*>(&own.turn);
  // Where `from` sends to in the memory of `to`.
  const auto inbox = [&](int to, int from) {
    return ranks.inbox[to] +
           ((turn & 1U) * static_cast<unsigned>(ranks.count) + static_cast<unsigned>(from)) *
               cuda::kInboxBytes;
  };
  const auto row_packs = static_cast<int>(part.row_bytes / 16);
  for (std::int64_t row = blockIdx.x; row < part.rows; row += gridDim.x)
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const int at = k * kThreads + static_cast<int>(threadIdx.x);
      if (at >= row_packs) break;
      const std::int64_t offset = row * part.row_bytes + std::int64_t{at} * 16;
      const uint4 pack = sendable(*reinterpret_cast<const uint4*>(part.data + offset));
      for (int to = 0; to < ranks.count; ++to)
        if (to != ranks.rank) send(inbox(to, ranks.rank) + offset, pack);
    }
  for (std::int64_t row = blockIdx.x; row < part.rows; row += gridDim.x) {
    Numbers<T, packs> x, sums;
    x.template load<whole>(target.x + row * target.x_stride, target.cols);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const int at = k * kThreads + static_cast<int>(threadIdx.x);
      if (at >= row_packs) break;
      const std::int64_t offset = row * part.row_bytes + std::int64_t{at} * 16;
      for (int from = 0; from < ranks.count; ++from)
        add<T>(from == ranks.rank ? *reinterpret_cast<const uint4*>(part.data + offset)
                                  : receive(inbox(ranks.rank, from) + offset, ranks.off),
               sums.of[k]);
    }
    // All other GPUs' parts of its rows are here.
    if (row + gridDim.x >= part.rows) cuda::let_next_begin();
    finish<whole>(x, sums, weights, row, target);
  }
  __syncthreads();
  if (threadIdx.x == 0 && atomicAdd(&own.through, 1U) == gridDim.x - 1) {
    own.through = 0;
    own.turn = turn + 1;
  }
}

__global__ void __launch_bounds__(32) wait_for_all(const __grid_constant__ Ranks ranks) {
  RankState& own = *ranks.state[ranks.rank];
  const unsigned long long turn = own.turn + 1;
  const auto other = static_cast<int>(threadIdx.x);
  if (other < ranks.count && other != ranks.rank) {
    // What the kernels before have written is seen by whoever sees this.
    __threadfence_system();
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(&ranks.state[other]->ready[ranks.rank]),
                 "l"(turn)
                 : "memory");
    unsigned long long there = 0;
    for (int polls = 1; there < turn; ++polls) {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(there) : "l"(&own.ready[other]) : "memory");
      if (polls % kPatience == 0 && *ranks.off != 0) break;
    }
  }
  __syncwarp();
  if (threadIdx.x == 0) own.turn = turn;
}

struct Sources {
  const std::byte* parts[cuda::kMostRanks];
  int count;
};

/// Rows of a rank's share, the last one's being what is left.
__host__ __device__ inline std::int64_t share_of(std::int64_t rows, int ranks) {
  return (rows + ranks - 1) / ranks;
}

template <typename T>
__global__ void __launch_bounds__(kThreads) reduce(const __grid_constant__ Sources sources, Part part,
                                                   std::int64_t first, std::int64_t end, std::byte* to) {
  const auto row_packs = static_cast<int>(part.row_bytes / 16);
  for (std::int64_t row = first + blockIdx.x; row < end; row += gridDim.x)
    for (int at = static_cast<int>(threadIdx.x); at < row_packs; at += kThreads) {
      const std::int64_t offset = row * part.row_bytes + std::int64_t{at} * 16;
      float sums[kNumbers<T>] = {};
#pragma unroll 4
      for (int from = 0; from < sources.count; ++from) add<T>(fetch(sources.parts[from] + offset), sums);
      write<kNumbers<T>, true>(reinterpret_cast<T*>(to + offset), 0, kNumbers<T>, sums);
    }
}

/// Each row is the sum of all sources', or with `kShares` that of the rank whose share it is in.
template <typename T, int packs, bool whole, bool kShares>
__global__ void __launch_bounds__(kThreads)
    gather(const __grid_constant__ Sources sources, Part part, Target<T> target) {
  const auto row_packs = static_cast<int>(part.row_bytes / 16);
  Numbers<T, packs> weights;
  if (target.weight != nullptr) weights.template load<whole>(target.weight, target.cols);
  for (std::int64_t row = blockIdx.x; row < part.rows; row += gridDim.x) {
    const int first = kShares ? static_cast<int>(row / share_of(part.rows, sources.count)) : 0;
    const int end = kShares ? first + 1 : sources.count;
    Numbers<T, packs> x, sums;
    x.template load<whole>(target.x + row * target.x_stride, target.cols);
#pragma unroll
    for (int k = 0; k < packs; ++k) {
      const int at = k * kThreads + static_cast<int>(threadIdx.x);
      if (at >= row_packs) break;
      const std::int64_t offset = row * part.row_bytes + std::int64_t{at} * 16;
#pragma unroll 2
      for (int from = first; from < end; ++from) add<T>(fetch(sources.parts[from] + offset), sums.of[k]);
    }
    finish<whole>(x, sums, weights, row, target);
  }
}

/// Calls `run` with the type of parts, packs a thread, and whether rows are taken in whole packs.
template <typename Run>
void with_shape(ConstMatrix part, Matrix x, const SumNorm& norm, const Run& run) {
  const bool normed = norm.weight != nullptr;
  cuda::with_type(part.dtype, [&](auto type) {
    using T = decltype(type);
    const Target<T> target{.x = x.row<float>(0),
                           .x_stride = x.stride,
                           .cols = x.cols,
                           .weight = norm.weight,
                           .epsilon = norm.epsilon,
                           .out = normed ? norm.out.row<T>(0) : nullptr,
                           .out_stride = norm.out.stride};
    const bool whole = x.cols % kNumbers<T> == 0 && cuda::packs(x.data, x.stride, x.cols, sizeof(float), 4) &&
                       (!normed || (cuda::packs(norm.weight, 0, x.cols, sizeof(float), 4) &&
                                    cuda::packs(norm.out.data, norm.out.stride, x.cols, sizeof(T), 4)));
    const auto with = [&]<int packs>() {
      if (whole) {
        run.template operator()<T, packs, true>(target);
      } else {
        static SlowPath slow{"add_parts", kOddRows};
        slow.taken();
        run.template operator()<T, packs, false>(target);
      }
    };
    const std::int64_t each = (x.cols + kThreads * kNumbers<T> - 1) / (kThreads * kNumbers<T>);
    if (each <= 1) {
      with.template operator()<1>();
    } else if (each <= 2) {
      with.template operator()<2>();
    } else if (each <= 4) {
      with.template operator()<4>();
    } else {
      with.template operator()<8>();
    }
  });
}

Part part_of(ConstMatrix part) {
  return {static_cast<const std::byte*>(part.data),
          part.stride * static_cast<std::int64_t>(size_of(part.dtype)), part.rows};
}

Sources sources_of(std::span<const void* const> parts) {
  Sources sources{};
  for (const void* from : parts) sources.parts[sources.count++] = static_cast<const std::byte*>(from);
  return sources;
}

/// One a row, at most as many as run at once.
unsigned blocks_of(std::int64_t rows, int multiprocessors) {
  constexpr std::int64_t kBlocksEach = 3;
  return static_cast<unsigned>(std::min(rows, kBlocksEach * multiprocessors));
}

template <bool kShares>
void launch_gather(cudaStream_t stream, int multiprocessors, std::span<const void* const> parts,
                   ConstMatrix part, Matrix x, const SumNorm& norm) {
  with_shape(part, x, norm, [&]<typename T, int packs, bool whole>(const Target<T>& target) {
    gather<T, packs, whole, kShares><<<blocks_of(part.rows, multiprocessors), kThreads, 0, stream>>>(
        sources_of(parts), part_of(part), target);
  });
  check_launch("sum over GPUs");
}

template <typename... Parameters>
void load(void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  check_cuda(cudaFuncGetAttributes(&attributes, kernel), "kernels");
}

template <typename T, int packs>
void load_kernels() {
  load(exchange<T, packs, true>);
  load(exchange<T, packs, false>);
  load(gather<T, packs, true, false>);
  load(gather<T, packs, false, false>);
  load(gather<T, packs, true, true>);
  load(gather<T, packs, false, true>);
}

template <typename T>
void load_kernels_of() {
  load(reduce<T>);
  load_kernels<T, 1>();
  load_kernels<T, 2>();
  load_kernels<T, 4>();
  load_kernels<T, 8>();
}

}  // namespace

void cuda::load_sum_kernels() {
  load_kernels_of<float>();
  load_kernels_of<__nv_bfloat16>();
  load(wait_for_all);
}

void cuda::send_and_add(cudaStream_t stream, const Ranks& ranks, ConstMatrix part, Matrix x,
                        const SumNorm& norm) {
  const auto blocks = static_cast<unsigned>(part.rows < kMostWaiting ? part.rows : kMostWaiting);
  with_shape(part, x, norm, [&]<typename T, int packs, bool whole>(const Target<T>& target) {
    launch_early(exchange<T, packs, whole>, {blocks, kThreads}, stream, ranks, part_of(part), target);
  });
}

void cuda::wait_for_ranks(cudaStream_t stream, const Ranks& ranks) {
  wait_for_all<<<1, 32, 0, stream>>>(ranks);
  check_launch("meeting of GPUs");
}

void cuda::fetch_and_add(cudaStream_t stream, int multiprocessors, std::span<const void* const> parts,
                         ConstMatrix part, Matrix x, const SumNorm& norm) {
  launch_gather<false>(stream, multiprocessors, parts, part, x, norm);
}

void cuda::add_share(cudaStream_t stream, int multiprocessors, std::span<const void* const> parts, int rank,
                     Matrix part) {
  const std::int64_t share = share_of(part.rows, static_cast<int>(parts.size()));
  const std::int64_t first = std::min(part.rows, rank * share);
  const std::int64_t end = std::min(part.rows, first + share);
  if (first == end) return;
  cuda::with_type(part.dtype, [&](auto type) {
    reduce<decltype(type)><<<blocks_of(end - first, multiprocessors), kThreads, 0, stream>>>(
        sources_of(parts), part_of(part), first, end, static_cast<std::byte*>(part.data));
  });
  check_launch("share of a sum over GPUs");
}

void cuda::fetch_shares(cudaStream_t stream, int multiprocessors, std::span<const void* const> parts,
                        ConstMatrix part, Matrix x, const SumNorm& norm) {
  launch_gather<true>(stream, multiprocessors, parts, part, x, norm);
}

}  // namespace vigil::kernels
