// One block a multiprocessor streams its share of the weights through shared memory and keeps copies of the
// next ones in flight from its first instruction to its last, so that the memory waits neither for threads
// nor for blocks that begin and end, and hardly for the kernel before this one. The products themselves are
// the matrix units': made by threads, they would set the pace from the second row on.
#include <algorithm>

#include "kernels/device/bulk_copy.cuh"
#include "kernels/device/cuda.cuh"
#include "kernels/device/overlap.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/linear/activate_cuda.h"
#include "kernels/linear/few_rows_cuda.h"
#include "kernels/quantize/quantize.h"

namespace vigil::kernels {
namespace {

using bfloat = __nv_bfloat16;

/// Rows of weights, and of x, of a product of the matrix units.
constexpr int kWeights = 16;
constexpr int kTile = 8;
constexpr int kMostTiles = 2;

constexpr int kWarps = 8;  // that compute; one more copies
constexpr int kComputing = kWarps * 32;
constexpr int kThreads = kComputing + 32;
constexpr int kBarrier = 1;  // of the computing warps

constexpr int kPackBytes = 16;
/// Groups of kWeights rows that meet each pack of x while a thread has it.
constexpr int kGroups = 4;

/// A stage holds a piece of kWeights rows. A warp's part of it is so many steps, in each of which four
/// neighbouring threads take a row's next four packs. Copies of 4 KB reach the memory's rate, of 2 KB nearly;
/// with more rows of x, a thread has no registers for as much of each.
template <int kTiles>
struct Stage {
  static constexpr int kSteps = kTiles == 1 ? 8 : 4;
  static constexpr int kWarpPacks = 4 * kSteps;
  static constexpr int kPiece = kWarps * kWarpPacks;  // packs of a row
  static constexpr int kRowBytes = kPiece * kPackBytes;
  static constexpr int kBytes = kWeights * kRowBytes;
  static constexpr int kCount = (192 << 10) / kBytes;
};

template <int kTiles>
struct Shared {
  alignas(128) std::uint8_t stages[Stage<kTiles>::kCount][Stage<kTiles>::kBytes];
  /// Of each warp: its part of the sums of a turn. A column more keeps rows on different banks.
  float sums[kWarps][kTiles * kTile][kGroups * kWeights + 1];
  std::uint64_t full[Stage<kTiles>::kCount], empty[Stage<kTiles>::kCount];
};

template <typename T, typename Out>
struct Call {
  const T* x;
  std::int64_t x_stride;
  const float* x_scales;  // with those of w; null: none
  int rows;
  const T* w;
  std::int64_t w_stride;
  const float* w_scales;
  const float* bias;
  Out* out;
  std::int64_t out_stride;
  std::int64_t cols;
  int packs;  // of a row
  bool accumulate;
  Activation activation;
};

/// A block's share: columns of the output [first, end), in groups of those whose rows of weights a stage
/// holds: kWeights neighbours, or with `kGated` half as many gates, followed by their values; and in turns of
/// kGroups groups.
template <bool kGated>
struct Share {
  static constexpr int kColumns = kGated ? kWeights / 2 : kWeights;
  static constexpr int kTurn = kGroups * kColumns;
  std::int64_t first, end;
  std::int64_t cols;  // of all blocks

  __device__ explicit Share(std::int64_t of)
      : first(std::int64_t{blockIdx.x} * of / gridDim.x),
        end((std::int64_t{blockIdx.x} + 1) * of / gridDim.x),
        cols(of) {}
  /// Groups of the turn that begins with this column.
  __device__ int groups(std::int64_t turn) const {
    return static_cast<int>(min(std::int64_t{kGroups}, (end - turn + kColumns - 1) / kColumns));
  }
  /// The row of the group's i-th weights; -1 beyond the share.
  __device__ std::int64_t row(std::int64_t turn, int group, int i) const {
    const std::int64_t column = turn + group * kColumns + i % kColumns;
    if (column >= end) return -1;
    return column + i / kColumns * cols;
  }
};

/// The stages in turn, by their addresses in shared memory.
template <int kTiles>
struct Ring {
  std::uint32_t stages, fulls, empties;
  int stage = 0;
  std::uint32_t parity = 0;

  __device__ explicit Ring(const Shared<kTiles>& shared)
      : stages(cuda::shared_address(shared.stages)),
        fulls(cuda::shared_address(shared.full)),
        empties(cuda::shared_address(shared.empty)) {}
  __device__ std::uint32_t address() const { return stages + stage * Stage<kTiles>::kBytes; }
  __device__ std::uint32_t full() const { return fulls + 8 * stage; }
  __device__ std::uint32_t empty() const { return empties + 8 * stage; }
  __device__ void advance() {
    if (++stage == Stage<kTiles>::kCount) {
      stage = 0;
      parity ^= 1U;
    }
  }
};

/// Keeps the stages full. One warp, a lane a row; weights depend on no kernel before.
template <int kTiles, bool kGated, typename T, typename Out>
__device__ __forceinline__ void copy_weights(const Call<T, Out>& call, Ring<kTiles> ring) {
  constexpr int kPiece = Stage<kTiles>::kPiece;
  const Share<kGated> share(call.cols);
  const std::uint64_t policy = cuda::evict_first();
  const int lane = static_cast<int>(threadIdx.x % 32);
  for (std::int64_t turn = share.first; turn < share.end; turn += share.kTurn)
    for (int piece = 0; piece < call.packs; piece += kPiece) {
      const auto bytes = static_cast<std::uint32_t>(min(kPiece, call.packs - piece)) * kPackBytes;
      for (int group = 0; group < share.groups(turn); ++group, ring.advance()) {
        const std::int64_t row = lane < kWeights ? share.row(turn, group, lane) : -1;
        const auto rows = static_cast<std::uint32_t>(__popc(__ballot_sync(0xffffffffU, row >= 0)));
        cuda::barrier_wait(ring.empty(), ring.parity ^ 1U);
        if (lane == 0) cuda::barrier_arrive_expect(ring.full(), rows * bytes);
        __syncwarp();
        if (row >= 0)
          cuda::copy_once(ring.address() + lane * Stage<kTiles>::kRowBytes,
                          reinterpret_cast<const std::uint8_t*>(call.w + row * call.w_stride) +
                              std::int64_t{piece} * kPackBytes,
                          bytes, ring.full(), policy);
      }
    }
}

/// sums += w xᵀ; upper, lower: 16 bytes of rows g and g + 8 of the weights, g being a quarter of the lane; x:
/// of row g of x. The sum does not ask for the order of columns, as long as w and x have the same. Of E4M3,
/// Hopper makes f16, in which it is exact.
template <typename T>
__device__ __forceinline__ void multiply_packs(float (&sums)[4], const uint4& upper, const uint4& lower,
                                               const uint4& x) {
  const auto with = [&](std::uint32_t a0, std::uint32_t a1, std::uint32_t a2, std::uint32_t a3,
                        std::uint32_t b0, std::uint32_t b1) {
    if constexpr (sizeof(T) == 2) {
      asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    } else {
      asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
          : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
    }
  };
  with(upper.x, lower.x, upper.y, lower.y, x.x, x.y);
  with(upper.z, lower.z, upper.w, lower.w, x.z, x.w);
}

__device__ __forceinline__ uint4 read_shared(std::uint32_t from) {
  uint4 pack;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(pack.x), "=r"(pack.y), "=r"(pack.z), "=r"(pack.w)
               : "r"(from)
               : "memory");
  return pack;
}

/// By words: a choice between two arrays' elements would put both into memory.
__device__ __forceinline__ uint4 choose(bool first, const uint4& a, const uint4& b) {
  return {first ? a.x : b.x, first ? a.y : b.y, first ? a.z : b.z, first ? a.w : b.w};
}

/// sums[tile] += of a stage's rows, the warp's packs of them; `from`: the thread's first pack of row
/// `row_of`, of which `packs` and those beyond are not there.
template <int kTiles, typename T>
__device__ __forceinline__ void multiply_stage(float (&sums)[kTiles][4], std::uint32_t from, int row_of,
                                               int packs, const uint4 (&x)[kTiles][Stage<kTiles>::kSteps]) {
  // Odd rows read a step's packs and the next one's in the other order: even ones then use other banks.
  const bool odd = row_of % 2 != 0;
#pragma unroll
  for (int step = 0; step < Stage<kTiles>::kSteps; step += 2) {
    uint4 upper[2], lower[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int at = 4 * (step + (odd ? 1 - i : i));
      // What lies beyond may be NaN, which x's zeros would not hide.
      upper[i] = at < packs ? read_shared(from + at * kPackBytes) : uint4{};
      lower[i] = at < packs ? read_shared(from + 8 * Stage<kTiles>::kRowBytes + at * kPackBytes) : uint4{};
    }
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
        multiply_packs<T>(sums[tile], choose(odd, upper[1 - i], upper[i]),
                          choose(odd, lower[1 - i], lower[i]), x[tile][step + i]);
  }
}

/// An output that a thread writes, and what it takes beside the sum.
template <typename Out>
struct Output {
  Out* to = nullptr;
  float before = 0;
  float scale = 1, bias = 0;
  float value_scale = 1, value_bias = 0;  // of a gate's value
};

template <bool kGated, typename T, typename Out>
__device__ __forceinline__ Output<Out> look_up(const Call<T, Out>& call, int row, std::int64_t column,
                                               std::int64_t end) {
  Output<Out> output;
  if (row >= call.rows || column >= end) return output;
  output.to = call.out + row * call.out_stride + column;
  if (call.accumulate) output.before = cuda::number(*output.to);
  if (call.bias != nullptr) {
    output.bias = call.bias[column];
    if (kGated) output.value_bias = call.bias[call.cols + column];
  }
  if (call.x_scales != nullptr) {
    output.scale = call.x_scales[row] * call.w_scales[column];
    if (kGated) output.value_scale = call.x_scales[row] * call.w_scales[call.cols + column];
  }
  return output;
}

/// Each warp takes some packs of each piece of each row. The computing warps.
template <int kTiles, bool kGated, typename T, typename Out>
__device__ __forceinline__ void compute(const Call<T, Out>& call, Shared<kTiles>& shared, Ring<kTiles> ring) {
  using Shape = Stage<kTiles>;
  using Part = Share<kGated>;
  const Part share(call.cols);
  const auto thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int row_of = thread % 32 / 4;
  const int quarter = thread % 4;
  const int first_pack = warp * Shape::kWarpPacks + quarter;
  constexpr int kOutputs = Part::kTurn * kTiles * kTile / kComputing;  // of a thread in a turn

  for (std::int64_t turn = share.first; turn < share.end; turn += Part::kTurn) {
    // On their way while the products are made.
    Output<Out> outputs[kOutputs];
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const int at = thread + i * kComputing;
      outputs[i] = look_up<kGated>(call, at / Part::kTurn, turn + at % Part::kTurn, share.end);
    }

    const int groups = share.groups(turn);
    float sums[kGroups][kTiles][4] = {};
    for (int piece = 0; piece < call.packs; piece += Shape::kPiece) {
      const int packs = call.packs - piece - first_pack;
      uint4 x[kTiles][Shape::kSteps];
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
        for (int step = 0; step < Shape::kSteps; ++step) {
          const int row = tile * kTile + row_of;
          x[tile][step] = row < call.rows && 4 * step < packs
                              ? reinterpret_cast<const uint4*>(
                                    call.x + row * call.x_stride)[piece + first_pack + 4 * step]
                              : uint4{};
        }
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        if (group >= groups) break;
        cuda::barrier_wait(ring.full(), ring.parity);
        multiply_stage<kTiles, T>(sums[group],
                                  ring.address() + row_of * Shape::kRowBytes + first_pack * kPackBytes,
                                  row_of, packs, x);
        __syncwarp();
        if (thread % 32 == 0) cuda::barrier_arrive(ring.empty());
        ring.advance();
      }
    }

#pragma unroll
    for (int group = 0; group < kGroups; ++group)
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          shared.sums[warp][tile * kTile + 2 * quarter + i % 2][group * kWeights + row_of + i / 2 * 8] =
              sums[group][tile][i];
    cuda::named_sync(kBarrier, kComputing);
#pragma unroll
    for (int i = 0; i < kOutputs; ++i) {
      const Output<Out>& output = outputs[i];
      if (output.to == nullptr) continue;
      const int row = (thread + i * kComputing) / Part::kTurn;
      const int column = (thread + i * kComputing) % Part::kTurn;
      const int weights = column / Part::kColumns * kWeights + column % Part::kColumns;
      const auto total = [&](int of) {
        float sum = 0;
#pragma unroll
        for (const auto& of_warp : shared.sums) sum += of_warp[row][of];
        return sum;
      };
      const float sum = total(weights) * output.scale + output.bias;
      if constexpr (kGated) {
        const float value = total(weights + Part::kColumns) * output.value_scale + output.value_bias;
        *output.to = cuda::rounded<Out>(cuda::activate(sum, call.activation) * value);
      } else {
        *output.to = cuda::rounded<Out>(sum + output.before);
      }
    }
    cuda::named_sync(kBarrier, kComputing);
  }
}

template <int kTiles, bool kGated, typename T, typename Out>
__global__ void __launch_bounds__(kThreads) multiply(const __grid_constant__ Call<T, Out> call) {
  extern __shared__ std::uint8_t memory[];
  constexpr std::uint32_t kAlignment = alignof(Shared<kTiles>);
  auto& shared = *reinterpret_cast<Shared<kTiles>*>(
      memory + (kAlignment - cuda::shared_address(memory) % kAlignment) % kAlignment);
  const Ring<kTiles> ring(shared);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < Stage<kTiles>::kCount; ++stage) {
      cuda::barrier_init(ring.fulls + 8 * stage, 1);
      cuda::barrier_init(ring.empties + 8 * stage, kWarps);
    }
    cuda::barrier_init_fence();
  }
  cuda::let_next_begin();
  __syncthreads();
  if (threadIdx.x >= kComputing) return copy_weights<kTiles, kGated>(call, ring);
  cuda::await_previous();
  compute<kTiles, kGated>(call, shared, ring);
}

template <bool kGated, typename T, typename Out>
void run(const CudaQueue& queue, const Call<T, Out>& call) {
  const auto launch = [&]<int kTiles>() {
    static_assert(sizeof(Shared<kTiles>) + alignof(Shared<kTiles>) <= 227 << 10);
    const auto blocks = static_cast<unsigned>(std::min<std::int64_t>(queue.multiprocessors(), call.cols));
    cuda::launch_early(multiply<kTiles, kGated, T, Out>,
                       {blocks, kThreads, sizeof(Shared<kTiles>) + alignof(Shared<kTiles>)}, queue.stream(),
                       call);
  };
  if (call.rows <= kTile) {
    launch.template operator()<1>();
  } else {
    launch.template operator()<2>();
  }
}

template <bool kGated>
void run(const CudaQueue& queue, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias, bool accumulate,
         Activation activation) {
  const auto with = [&]<typename T, typename Out>(std::int64_t row_bytes) {
    run<kGated, T, Out>(
        queue, {x.row<T>(0), x.stride, x.scales, static_cast<int>(x.rows), w.row<T>(0), w.stride, w.scales,
                bias, out.row<Out>(0), out.stride, kGated ? w.rows / 2 : w.rows,
                static_cast<int>(row_bytes / kPackBytes), accumulate, activation});
  };
  cuda::with_type(out.dtype, [&](auto type) {
    using Out = decltype(type);
    if (x.dtype == DType::e4m3) {
      with.template operator()<std::uint8_t, Out>(e4m3_stride(x.cols));
    } else {
      with.template operator()<bfloat, Out>(x.cols * static_cast<std::int64_t>(sizeof(bfloat)));
    }
  });
}

}  // namespace

bool cuda::fits_few_rows(ConstMatrix x, ConstMatrix w) {
  if (x.rows > kMostTiles * kTile || x.cols == 0 || x.dtype != w.dtype) return false;
  if (x.dtype == DType::e4m3) return true;  // laid out in packs
  constexpr int kPack = kPackBytes / sizeof(bfloat);
  if (x.dtype != DType::bf16) return false;
  const bool fits = packs(x.data, x.stride, x.cols, sizeof(bfloat), kPack) &&
                    packs(w.data, w.stride, w.cols, sizeof(bfloat), kPack);
  static SlowPath slow{
      "linear", "up to 16 rows that are no whole packs of 16 bytes: cuBLASLt, which reads weights slower"};
  if (!fits) slow.taken();
  return fits;
}

void cuda::few_rows(const CudaQueue& queue, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                    bool accumulate) {
  run<false>(queue, x, w, out, bias, accumulate, Activation::none);
}

void cuda::few_rows_gated(const CudaQueue& queue, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                          Activation activation) {
  run<true>(queue, x, w, out, bias, false, activation);
}

}  // namespace vigil::kernels
