// The pool of pages as a matrix that the copy engine reads: a row is one token's key or value of one head.
#pragma once

#include <cstdint>

#include <cuda.h>

namespace vigil::kernels::cuda {

inline constexpr int kPageTokens = 64;
inline constexpr int kBoxColumns = 64;  // 128 bytes, the widest that the 128-byte swizzle takes

/// Where the pages of one layer lie in device memory, bf16: the key of page p and head h at
/// base + p * page_stride + h * 64 * head_dim, the value the same + value_offset (elements).
struct KvPages {
  const void* base = nullptr;
  std::int64_t page_stride = 0;
  std::int64_t value_offset = 0;
  std::int64_t pages = 0;
  int kv_heads = 0;
  int head_dim = 0;
};

/// A map of these pages with boxes of 64 rows and 64 columns in the 128-byte swizzle. Throws
/// std::invalid_argument for a head_dim other than 64 and 128, for strides that are no multiple of it and an
/// unaligned base, std::runtime_error where the driver refuses.
CUtensorMap kv_map(const KvPages& pages);

}  // namespace vigil::kernels::cuda
