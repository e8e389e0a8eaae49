#include "kernels/device/slow_path.h"
#include "kernels/packed_kv/packed_kv_backends.h"
#include "kernels/packed_kv/packed_kv_cuda.h"
#include "kernels/packed_kv/packed_rows_cuda.h"

namespace vigil::kernels {
namespace {

using cuda::Columns;
using cuda::element_of;
using cuda::kBlock;
using cuda::kColumns;
using cuda::kRowThreads;
using cuda::read_columns;
using cuda::store;

/// Neighbouring columns that a thread turns together with as many of the other half of the head.
constexpr int kHalf = kColumns / 2;
/// Heads whose keys a block of threads turns with the angles that it has read, at most; and blocks that leave
/// no multiprocessor idle, below which each turns those of one head.
constexpr int kMostHeadsATurn = 4;
constexpr std::int64_t kManyBlocks = 4096;

/// The tokens of a part that lie in a block: rows [begin, end) of it, of which row `begin` is token `first`
/// of the part.
struct Rows {
  std::int64_t block;
  int tokens, begin, end;
  std::int64_t first;

  __device__ Rows(const PackedShape& shape, const PackedPart& part, unsigned index)
      : block(part.token / kBlock + index),
        tokens(static_cast<int>(shape.tokens_of_block(block))),
        begin(static_cast<int>(max(part.token - block * kBlock, std::int64_t{0}))),
        end(static_cast<int>(min(part.token + part.count - block * kBlock, std::int64_t{tokens}))),
        first(block * kBlock + begin - part.token) {}
};

/// What a block of threads does for a block of tokens of one head, as pack_rows.
template <typename T, PackedForm form, int lanes>
__device__ __forceinline__ void copy_rows(const std::byte* from, const PackedShape& shape,
                                          const PackedPart& part, std::int64_t l, bool value, unsigned h,
                                          const KvSlots& slots, const KvLayers& to) {
  constexpr int kStep = kRowThreads<lanes> / lanes;
  constexpr int kRows = kBlock / kStep;
  const Rows mine(shape, part, blockIdx.x);
  const int column = static_cast<int>(threadIdx.x) % lanes * kColumns;
  const int first = static_cast<int>(threadIdx.x) / lanes;

  __shared__ std::int64_t places[kBlock];
  const int row = static_cast<int>(threadIdx.x);
  if (row >= mine.begin && row < mine.end)
    places[row] =
        cuda::place_of(to, l, value, h, slots.slots[l * slots.stride + mine.first + row - mine.begin]);
  const std::byte* block = from + shape.offset(part.layer + l, value, part.head + h, mine.block);
  const Columns<form, kColumns> columns(block, lanes * kColumns, column);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int now = first + r * kStep;
    if (now < mine.begin || now >= mine.end) continue;
    float values[kColumns];
    read_columns<form, kColumns>(shape, block, mine.tokens, now, column, columns, values);
    store(static_cast<T*>(to.first.base) + places[now] + column, values);
  }
}

/// The same for keys that are turned, of `count` heads from `begin` on (those of all layers in a row), which
/// share the angles. A thread has columns of both halves of a row.
template <typename T, PackedForm form, int lanes>
__device__ __forceinline__ void turn_rows(const std::byte* from, const PackedShape& shape,
                                          const PackedPart& part, unsigned begin, int count, const float* cos,
                                          const float* sin, const KvSlots& slots, const KvLayers& to) {
  constexpr int kThreads = kRowThreads<lanes>;
  constexpr int kStep = kThreads / lanes;
  constexpr int kWidth = lanes * kColumns;
  const Rows mine(shape, part, blockIdx.x);
  const auto heads = static_cast<unsigned>(to.first.kv_heads);
  const int column = static_cast<int>(threadIdx.x) % lanes * kHalf;

  __shared__ std::int64_t places[kMostHeadsATurn][kBlock];
  __shared__ const std::byte* blocks[kMostHeadsATurn];
  for (int i = static_cast<int>(threadIdx.x); i < count * kBlock; i += kThreads) {
    const unsigned l = (begin + i / kBlock) / heads, h = (begin + i / kBlock) % heads;
    const int row = i % kBlock;
    if (row >= mine.begin && row < mine.end)
      places[i / kBlock][row] =
          cuda::place_of(to, l, false, h, slots.slots[l * slots.stride + mine.first + row - mine.begin]);
    if (row == 0) blocks[i / kBlock] = from + shape.offset(part.layer + l, false, part.head + h, mine.block);
  }
  __syncthreads();
  for (int row = static_cast<int>(threadIdx.x) / lanes; row < mine.end; row += kStep) {
    if (row < mine.begin) continue;
    const std::int64_t angles = (mine.first + row - mine.begin) * (kWidth / 2) + column;
    using Four = cuda::Pack<float, kHalf>;
    const Four c = *reinterpret_cast<const Four*>(cos + angles);
    const Four s = *reinterpret_cast<const Four*>(sin + angles);
#pragma unroll
    for (int head = 0; head < kMostHeadsATurn; ++head) {
      if (head >= count) break;
      const std::byte* block = blocks[head];
      float low[kHalf], high[kHalf];
      read_columns<form, kHalf>(shape, block, mine.tokens, row, column,
                                Columns<form, kHalf>(block, kWidth, column), low);
      read_columns<form, kHalf>(shape, block, mine.tokens, row, column + kWidth / 2,
                                Columns<form, kHalf>(block, kWidth, column + kWidth / 2), high);
#pragma unroll
      for (int i = 0; i < kHalf; ++i) {
        // Not a zero of another sign.
        if (s.values[i] == 0.0F && c.values[i] == 1.0F) continue;
        const float a = low[i], b = high[i];
        low[i] = a * c.values[i] - b * s.values[i];
        high[i] = b * c.values[i] + a * s.values[i];
      }
      T* key = static_cast<T*>(to.first.base) + places[head][row] + column;
      store(key, low);
      store(key + kWidth / 2, high);
    }
  }
}

template <typename T, PackedForm form, int lanes>
__global__ void __launch_bounds__(kRowThreads<lanes>)
    unpack_rows(const std::byte* from, const PackedShape shape, const PackedPart part, const KvSlots slots,
                const KvLayers to) {
  const auto heads = static_cast<unsigned>(to.first.kv_heads);
  copy_rows<T, form, lanes>(from, shape, part, blockIdx.z, blockIdx.y >= heads, blockIdx.y % heads, slots,
                            to);
}

/// The same with turned keys: the first blocks of the grid's second dimension have those of `each` heads, the
/// others the values of one.
template <typename T, PackedForm form, int lanes>
__global__ void __launch_bounds__(kRowThreads<lanes>)
    unpack_turned(const std::byte* from, const PackedShape shape, const PackedPart part, unsigned each,
                  const float* cos, const float* sin, const KvSlots slots, const KvLayers to) {
  const auto heads = static_cast<unsigned>(to.first.kv_heads);
  const unsigned all = static_cast<unsigned>(to.count) * heads;
  const unsigned turns = (all + each - 1) / each;
  if (blockIdx.y < turns) {
    const unsigned begin = blockIdx.y * each;
    turn_rows<T, form, lanes>(from, shape, part, begin, static_cast<int>(min(all - begin, each)), cos, sin,
                              slots, to);
  } else {
    const unsigned head = blockIdx.y - turns;
    copy_rows<T, form, lanes>(from, shape, part, head / heads, true, head % heads, slots, to);
  }
}

/// The same for heads of any width: a thread two elements that are turned together.
template <typename T>
__global__ void __launch_bounds__(256)
    unpack_elements(const std::byte* from, const PackedShape shape, const PackedPart part, const float* cos,
                    const float* sin, const KvSlots slots, const KvLayers to) {
  const std::int64_t half = shape.head_dim / 2, heads = to.first.kv_heads;
  std::int64_t at = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const std::int64_t j = at % half;
  const std::int64_t i = (at /= half) % part.count;
  const std::int64_t h = (at /= part.count) % heads;
  const bool value = (at /= heads) % 2 != 0;
  const std::int64_t l = at / 2;
  if (l >= to.count) return;
  const std::int64_t token = part.token + i, index = token / kBlock;
  const std::byte* block = from + shape.offset(part.layer + l, value, part.head + h, index);
  float low = element_of(shape, block, shape.tokens_of_block(index), token % kBlock, j);
  float high = element_of(shape, block, shape.tokens_of_block(index), token % kBlock, j + half);
  if (!value && cos != nullptr && !(sin[i * half + j] == 0.0F && cos[i * half + j] == 1.0F)) {
    const float a = low, b = high, c = cos[i * half + j], s = sin[i * half + j];
    low = a * c - b * s;
    high = b * c + a * s;
  }
  T* place =
      static_cast<T*>(to.first.base) + cuda::place_of(to, l, value, h, slots.slots[l * slots.stride + i]);
  place[j] = cuda::rounded<T>(low);
  place[j + half] = cuda::rounded<T>(high);
}

}  // namespace

void cuda::unpack_kv(Stream& stream, const std::byte* from, const PackedShape& shape, const PackedPart& part,
                     const float* cos, const float* sin, KvSlots slots, const KvLayers& to) {
  const cudaStream_t queue = queue_of(stream);
  const std::int64_t blocks = (part.token + part.count - 1) / kBlock - part.token / kBlock + 1;
  const std::int64_t heads = to.first.kv_heads;
  const bool aligned = rows_pack(to) && (cos == nullptr || (reinterpret_cast<std::uintptr_t>(cos) % 16 == 0 &&
                                                            reinterpret_cast<std::uintptr_t>(sin) % 16 == 0));
  with_type(to.first.dtype, [&](auto type) {
    using T = decltype(type);
    const bool fast =
        aligned && with_lanes(shape.head_dim, [&](auto lanes) {
          constexpr int kLanes = decltype(lanes)::value;
          with_form(shape.form, [&](auto form) {
            constexpr PackedForm kForm = decltype(form)::value;
            constexpr int kThreads = kRowThreads<kLanes>;
            if (cos == nullptr) {
              const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(2 * heads),
                              static_cast<unsigned>(to.count));
              unpack_rows<T, kForm, kLanes><<<grid, kThreads, 0, queue>>>(from, shape, part, slots, to);
            } else {
              const std::int64_t all = to.count * heads;
              const int each = blocks * all < kManyBlocks ? 1 : kMostHeadsATurn;
              const dim3 grid(static_cast<unsigned>(blocks),
                              blocks_for(all, each) + static_cast<unsigned>(all));
              unpack_turned<T, kForm, kLanes><<<grid, kThreads, 0, queue>>>(
                  from, shape, part, static_cast<unsigned>(each), cos, sin, slots, to);
            }
          });
        });
    if (fast) return;
    static SlowPath slow{"unpack_kv", "heads of other than 32, 64, 128 or 256 elements: element by element"};
    slow.taken();
    unpack_elements<T>
        <<<blocks_for(to.count * 2 * heads * part.count * (shape.head_dim / 2), 256), 256, 0, queue>>>(
            from, shape, part, cos, sin, slots, to);
  });
  check_launch("unpack_kv");
}

}  // namespace vigil::kernels
