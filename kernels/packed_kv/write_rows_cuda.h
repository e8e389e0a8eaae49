// Blocks of packed rows, written out of a cache. Included by .cu files only, which are compiled with
// -fmad=false.
#pragma once

#include "kernels/packed_kv/packed_kv_cuda.h"

namespace vigil::kernels::cuda {

inline constexpr int kWarp = 32;
inline constexpr unsigned kAll = 0xffffffffU;
inline constexpr std::uint32_t kLeastBits = 0xff80ff80U, kMostBits = 0x7f807f80U;

/// The columns of a thread in one row, as bf16: two a word.
struct Row {
  std::uint32_t words[kColumns / 2];
};

__device__ __forceinline__ Row load_row(const __nv_bfloat16* at) {
  const uint4 all = __ldcs(reinterpret_cast<const uint4*>(at));
  return {{all.x, all.y, all.z, all.w}};
}
__device__ __forceinline__ Row load_row(const float* at) {
  const float4 first = __ldcs(reinterpret_cast<const float4*>(at));
  const float4 second = __ldcs(reinterpret_cast<const float4*>(at) + 1);
  const auto two = [](float low, float high) {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return reinterpret_cast<const std::uint32_t&>(both);
  };
  return {{two(first.x, first.y), two(first.z, first.w), two(second.x, second.y), two(second.z, second.w)}};
}

__device__ __forceinline__ bool finite_half(std::uint32_t word, int half) {
  const std::uint32_t exponent = half == 0 ? 0x7f80U : 0x7f800000U;
  return (word & exponent) != exponent;
}
/// A word in which what is not finite is exchanged for the same half of another one.
__device__ __forceinline__ std::uint32_t finite_or(std::uint32_t word, std::uint32_t other) {
  std::uint32_t mask = finite_half(word, 0) ? 0U : 0xffffU;
  mask |= finite_half(word, 1) ? 0U : 0xffff0000U;
  return (word & ~mask) | (other & mask);
}

__device__ __forceinline__ std::uint32_t smaller(std::uint32_t a, std::uint32_t b) {
  const __nv_bfloat162 least =
      __hmin2_nan(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const std::uint32_t&>(least);
}
__device__ __forceinline__ std::uint32_t larger(std::uint32_t a, std::uint32_t b) {
  const __nv_bfloat162 most =
      __hmax2_nan(reinterpret_cast<const __nv_bfloat162&>(a), reinterpret_cast<const __nv_bfloat162&>(b));
  return reinterpret_cast<const std::uint32_t&>(most);
}

/// The largest magnitude of a row's columns, of all its threads; of the finite ones alone, if `careful`.
template <int lanes>
__device__ __forceinline__ std::uint32_t largest(const Row& row, bool careful) {
  std::uint32_t both = 0;
#pragma unroll
  for (const std::uint32_t word : row.words)
    both = __vmaxu2(both, (careful ? finite_or(word, 0) : word) & 0x7fff7fffU);
  std::uint32_t most = max(both & 0xffffU, both >> 16U);
#pragma unroll
  for (int offset = 1; offset < lanes; offset *= 2) most = max(most, __shfl_xor_sync(kAll, most, offset));
  return most;
}

/// Rows in E4M3, and their scales.
template <int lanes, int count>
__device__ __forceinline__ void write_fp8(Row (&rows)[count], int tokens, const PackedShape& shape,
                                          std::byte* to) {
  constexpr int kStep = kRowThreads<lanes> / lanes;
  __shared__ std::uint16_t scales[kBlock];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int first = static_cast<int>(threadIdx.x) / lanes;
  std::byte* elements = to + shape.head_bytes(tokens);
#pragma unroll
  for (int r = 0; r < count; ++r) {
    const int token = first + r * kStep;
    std::uint32_t most = largest<lanes>(rows[r], false);
    // Rare, and the same for all threads of a row; other rows of the warp come along.
    if (__any_sync(kAll, most >= 0x7f80U)) {
      most = largest<lanes>(rows[r], true);
#pragma unroll
      for (std::uint32_t& word : rows[r].words) word = finite_or(word, 0x7fff7fffU);
    }
    const std::uint16_t scale = packed::fp8_scale(__uint_as_float(most << 16U));
    const float inverse = 1.0F / packed::number(scale);
    std::uint32_t codes[2] = {};
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) {
      const std::uint32_t word = rows[r].words[i];
      const float2 two = make_float2(low_half(word) * inverse, high_half(word) * inverse);
      codes[i / 2] |= std::uint32_t{__nv_cvt_float2_to_fp8x2(two, __NV_SATFINITE, __NV_E4M3)} << (i % 2 * 16);
    }
    if (lane == 0) scales[token] = token < tokens ? scale : std::uint16_t{0};
    if (token < tokens)
      reinterpret_cast<uint2*>(elements + token * shape.row_bytes())[lane] = make_uint2(codes[0], codes[1]);
  }
  __syncthreads();
  if (static_cast<int>(threadIdx.x) < shape.head_bytes(tokens) / 4)
    reinterpret_cast<std::uint32_t*>(to)[threadIdx.x] =
        reinterpret_cast<const std::uint32_t*>(scales)[threadIdx.x];
}

/// The codes of a thread's columns in one row; `careful` where some may not be finite.
__device__ __forceinline__ std::uint32_t int4_codes(const Row& row, const float (&inverse)[kColumns],
                                                    const float (&shift)[kColumns], bool careful) {
  // Each code is in the lowest bits of a float below whose point nothing is left (packed_codes.h): what
  // stands above them is the same for all, and taken off at the end.
  constexpr std::uint32_t kAbove = 0x4b400000U;
  std::uint32_t codes = 0, above = 0;
#pragma unroll
  for (int i = kColumns - 1; i >= 0; --i) {
    const std::uint32_t word = row.words[i / 2];
    const float x = i % 2 == 0 ? low_half(word) : high_half(word);
    std::uint32_t code = __float_as_uint((x * inverse[i] - shift[i]) + packed::kRounder);
    if (careful && !finite_half(word, i % 2)) code = kAbove + packed::kNanInt4;
    codes = (codes << 4U) + code;
    above = (above << 4U) + kAbove;
  }
  return codes - above;
}

/// Rows in four bits, and the base and step of each column.
template <int lanes, int count>
__device__ __forceinline__ void write_int4(const Row (&rows)[count], int tokens, const PackedShape& shape,
                                           std::byte* to) {
  constexpr int kThreads = kRowThreads<lanes>;
  constexpr int kStep = kThreads / lanes;
  constexpr int kWidth = lanes * kColumns;
  constexpr int kWarps = kThreads / kWarp;
  __shared__ __align__(16) std::uint32_t least[kWarps][kWidth / 2];
  __shared__ __align__(16) std::uint32_t most[kWarps][kWidth / 2];
  __shared__ __align__(16) float inverses[kWidth];
  __shared__ __align__(16) float shifts[kWidth];
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int first = static_cast<int>(threadIdx.x) / lanes;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int column = static_cast<int>(threadIdx.x);

  // The smallest and the largest of each column: thread `column` has that of its own afterwards.
  const auto bounds = [&](bool careful, float& low, float& high) {
#pragma unroll
    for (int i = 0; i < kColumns / 2; ++i) {
      std::uint32_t below = kMostBits, above = kLeastBits;
#pragma unroll
      for (int r = 0; r < count; ++r) {
        if (first + r * kStep >= tokens) continue;
        const std::uint32_t word = rows[r].words[i];
        below = smaller(below, careful ? finite_or(word, kMostBits) : word);
        above = larger(above, careful ? finite_or(word, kLeastBits) : word);
      }
#pragma unroll
      for (int offset = lanes; offset < kWarp; offset *= 2) {
        below = smaller(below, __shfl_xor_sync(kAll, below, offset));
        above = larger(above, __shfl_xor_sync(kAll, above, offset));
      }
      if (static_cast<int>(threadIdx.x) % kWarp < lanes) {
        least[warp][lane * (kColumns / 2) + i] = below;
        most[warp][lane * (kColumns / 2) + i] = above;
      }
    }
    __syncthreads();
    if (column < kWidth) {
      std::uint32_t below = least[0][column / 2], above = most[0][column / 2];
#pragma unroll
      for (int other = 1; other < kWarps; ++other) {
        below = smaller(below, least[other][column / 2]);
        above = larger(above, most[other][column / 2]);
      }
      low = column % 2 == 0 ? low_half(below) : high_half(below);
      high = column % 2 == 0 ? low_half(above) : high_half(above);
    }
  };
  float low = 0, high = 0;
  bounds(false, low, high);
  const bool odd = !isfinite(low) || !isfinite(high);
  const bool careful = __syncthreads_or(odd ? 1 : 0) != 0;
  if (careful) bounds(true, low, high);
  if (column < kWidth) {
    const packed::Int4Column made = packed::int4_column(low, high, odd);
    auto* head = reinterpret_cast<std::uint16_t*>(to);
    head[column] = made.base;
    head[kWidth + column] = made.step;
    inverses[column] = made.inverse;
    shifts[column] = made.shift;
  }
  __syncthreads();

  float inverse[kColumns], shift[kColumns];
#pragma unroll
  for (int i = 0; i < kColumns; ++i) {
    inverse[i] = inverses[lane * kColumns + i];
    shift[i] = shifts[lane * kColumns + i];
  }
  std::byte* elements = to + shape.head_bytes(tokens);
  const auto write = [&](bool some_odd) {
#pragma unroll
    for (int r = 0; r < count; ++r) {
      const int token = first + r * kStep;
      if (token < tokens)
        reinterpret_cast<std::uint32_t*>(elements + token * shape.row_bytes())[lane] =
            int4_codes(rows[r], inverse, shift, some_odd);
    }
  };
  if (careful) {
    write(true);
  } else {
    write(false);
  }
}

/// What a block of threads (kRowThreads<lanes> of them) writes for the keys or values of one head: up to
/// kBlock tokens, those in `slots`, to `to`, which is the device's, the host's or shared memory. `lanes`
/// threads a row, whose columns stay in registers. Whoever reads what other threads wrote synchronises.
template <typename T, PackedForm form, int lanes>
__device__ __forceinline__ void write_rows(const KvLayers& from, std::int64_t l, bool value, unsigned h,
                                           const std::int32_t* slots, int tokens, const PackedShape& shape,
                                           std::byte* to) {
  constexpr int kStep = kRowThreads<lanes> / lanes;
  constexpr int kRows = kBlock / kStep;
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  const int first = static_cast<int>(threadIdx.x) / lanes;

  // A division for each row, not for each thread of it.
  __shared__ std::int64_t places[kBlock];
  if (static_cast<int>(threadIdx.x) < tokens)
    places[threadIdx.x] = place_of(from, l, value, h, slots[threadIdx.x]);
  __syncthreads();
  Row rows[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const int token = first + r * kStep;
    rows[r] = token < tokens
                  ? load_row(static_cast<const T*>(from.first.base) + places[token] + lane * kColumns)
                  : Row{};
  }

  if constexpr (form == PackedForm::bf16) {
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int token = first + r * kStep;
      if (token < tokens)
        reinterpret_cast<uint4*>(to + token * shape.row_bytes())[lane] =
            make_uint4(rows[r].words[0], rows[r].words[1], rows[r].words[2], rows[r].words[3]);
    }
  } else if constexpr (form == PackedForm::fp8) {
    write_fp8<lanes>(rows, tokens, shape, to);
  } else {
    write_int4<lanes>(rows, tokens, shape, to);
  }
}

/// The same for heads of any width, element by element, by as many threads as there are.
template <typename T>
__device__ void write_elements(const KvLayers& from, std::int64_t l, bool value, std::int64_t h,
                               const std::int32_t* slots, std::int64_t tokens, const PackedShape& shape,
                               std::byte* to) {
  const std::int64_t width = shape.head_dim;
  const auto bits = [&](std::int64_t token, std::int64_t column) {
    return packed::kept(
        static_cast<const T*>(from.first.base)[place_of(from, l, value, h, slots[token]) + column]);
  };
  std::byte* elements = to + shape.head_bytes(tokens);
  const std::int64_t used = shape.form == PackedForm::fp8    ? 2 * tokens
                            : shape.form == PackedForm::int4 ? 4 * width
                                                             : 0;
  if (threadIdx.x < kColumns * 2) {
    // Fewer than 16 bytes are left after each part.
    if (to + used + threadIdx.x < elements) to[used + threadIdx.x] = std::byte{0};
    std::byte* rest = elements + tokens * shape.row_bytes() + threadIdx.x;
    if (rest < to + shape.block_bytes(tokens)) *rest = std::byte{0};
  }
  auto* scales = reinterpret_cast<std::uint16_t*>(to);
  if (shape.form == PackedForm::bf16) {
    for (std::int64_t i = threadIdx.x; i < tokens * width; i += blockDim.x)
      reinterpret_cast<std::uint16_t*>(elements)[i] = bits(i / width, i % width);
  } else if (shape.form == PackedForm::fp8) {
    for (std::int64_t token = threadIdx.x; token < tokens; token += blockDim.x) {
      std::uint16_t most = 0;
      for (std::int64_t j = 0; j < width; ++j) {
        const std::uint16_t now = bits(token, j);
        if (packed::is_finite(now) && (now & 0x7fffU) > most)
          most = static_cast<std::uint16_t>(now & 0x7fffU);
      }
      scales[token] = packed::fp8_scale(packed::number(most));
      const float inverse = 1.0F / packed::number(scales[token]);
      for (std::int64_t j = 0; j < width; ++j)
        elements[token * width + j] = std::byte{packed::fp8_code(bits(token, j), inverse)};
    }
  } else {
    for (std::int64_t pair = threadIdx.x; pair < width / 2; pair += blockDim.x) {
      packed::Int4Column columns[2];
      for (int c = 0; c < 2; ++c) {
        float least = __int_as_float(0x7f800000), most = -least;
        bool odd = false;
        for (std::int64_t token = 0; token < tokens; ++token) {
          const std::uint16_t now = bits(token, 2 * pair + c);
          const float x = packed::number(now);
          odd = odd || !packed::is_finite(now);
          if (packed::is_finite(now) && x < least) least = x;
          if (packed::is_finite(now) && x > most) most = x;
        }
        columns[c] = packed::int4_column(least, most, odd);
        scales[2 * pair + c] = columns[c].base;
        scales[width + 2 * pair + c] = columns[c].step;
      }
      for (std::int64_t token = 0; token < tokens; ++token) {
        std::uint32_t codes[2];
        for (int c = 0; c < 2; ++c)
          codes[c] = packed::int4_code(bits(token, 2 * pair + c), columns[c].inverse, columns[c].shift);
        elements[token * (width / 2) + pair] = static_cast<std::byte>(codes[0] | codes[1] << 4U);
      }
    }
  }
}

}  // namespace vigil::kernels::cuda
