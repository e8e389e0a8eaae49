// What packing and unpacking share on a GPU. Included by .cu files only, which are compiled with -fmad=false.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/device/cuda.cuh"
#include "kernels/packed_kv/packed_codes.h"
#include "kernels/packed_kv/packed_kv.h"

namespace vigil::kernels::cuda {

/// Columns that a thread has of a row: 16 bytes of bf16.
inline constexpr int kColumns = 8;
inline constexpr int kBlock = static_cast<int>(kPackedBlock);

/// Threads of a block that has kBlock rows, `lanes` threads a row.
template <int lanes>
inline constexpr int kRowThreads = std::max(128, kColumns* lanes);

/// Whether rows of a cache can be taken 16 bytes at once.
inline bool rows_pack(const KvLayers& cache) {
  const auto whole = [&](std::int64_t elements) {
    return elements * static_cast<std::int64_t>(size_of(cache.first.dtype)) % 16 == 0;
  };
  return reinterpret_cast<std::uintptr_t>(cache.first.base) % 16 == 0 && whole(cache.stride) &&
         whole(cache.first.page_stride) && whole(cache.first.value_offset);
}

/// Calls `run` with the threads a row, as a constant, where heads of this width have a fast way.
template <typename Run>
bool with_lanes(std::int64_t head_dim, const Run& run) {
  switch (head_dim) {
    case 32:
      run(std::integral_constant<int, 4>{});
      return true;
    case 64:
      run(std::integral_constant<int, 8>{});
      return true;
    case 128:
      run(std::integral_constant<int, 16>{});
      return true;
    case 256:
      run(std::integral_constant<int, 32>{});
      return true;
    default:
      return false;
  }
}

/// Calls `run` with the form as a constant.
template <typename Run>
void with_form(PackedForm form, const Run& run) {
  if (form == PackedForm::bf16) {
    run(std::integral_constant<PackedForm, PackedForm::bf16>{});
  } else if (form == PackedForm::fp8) {
    run(std::integral_constant<PackedForm, PackedForm::fp8>{});
  } else {
    run(std::integral_constant<PackedForm, PackedForm::int4>{});
  }
}

/// In elements from the cache's base.
__device__ __forceinline__ std::int64_t place_of(const KvLayers& cache, std::int64_t layer, bool value,
                                                 std::int64_t head, std::int32_t slot) {
  const auto page = static_cast<std::uint32_t>(slot) / static_cast<std::uint32_t>(cache.first.page_tokens);
  const auto token = static_cast<std::uint32_t>(slot) % static_cast<std::uint32_t>(cache.first.page_tokens);
  return layer * cache.stride + (value ? cache.first.value_offset : 0) + page * cache.first.page_stride +
         (head * cache.first.page_tokens + token) * cache.first.head_dim;
}

__device__ __forceinline__ float low_half(std::uint32_t word) {
  return __uint_as_float(word << 16U);
}
__device__ __forceinline__ float high_half(std::uint32_t word) {
  return __uint_as_float(word & 0xffff0000U);
}

}  // namespace vigil::kernels::cuda
