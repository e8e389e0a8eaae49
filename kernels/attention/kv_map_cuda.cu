#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "kernels/attention/kv_map_cuda.h"

namespace vigil::kernels::cuda {

namespace {

/// The driver's encoder, found at run time, so that nothing links the driver's library.
PFN_cuTensorMapEncodeTiled_v12000 find_encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const cudaError_t error =
      cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
  if (error != cudaSuccess || result != cudaDriverEntryPointSuccess || found == nullptr)
    throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
  return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(found);
}

}  // namespace

CUtensorMap kv_map(const KvPages& pages) {
  if (pages.head_dim != 64 && pages.head_dim != 128)
    throw std::invalid_argument("attention: head_dim " + std::to_string(pages.head_dim) +
                                " is neither 64 nor 128");
  if (pages.base == nullptr || reinterpret_cast<std::uintptr_t>(pages.base) % 16 != 0)
    throw std::invalid_argument("attention: the pages' base is not aligned to 16 bytes");
  if (pages.kv_heads < 1 || pages.pages < 1 || pages.page_stride % pages.head_dim != 0 ||
      pages.value_offset % pages.head_dim != 0 || pages.page_stride < 0 || pages.value_offset < 0)
    throw std::invalid_argument("attention: pages do not lie in rows of head_dim");
  const std::int64_t rows = (pages.pages - 1) * (pages.page_stride / pages.head_dim) +
                            pages.value_offset / pages.head_dim + std::int64_t{pages.kv_heads} * kPageTokens;
  if (rows > std::numeric_limits<std::int32_t>::max())
    throw std::invalid_argument("attention: the pool has more than 2^31 rows");

  static const PFN_cuTensorMapEncodeTiled_v12000 encode = find_encoder();
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(pages.head_dim), static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[1] = {static_cast<cuuint64_t>(pages.head_dim) * 2};
  const cuuint32_t box[2] = {kBoxColumns, kPageTokens};
  const cuuint32_t steps[2] = {1, 1};
  CUtensorMap map{};
  const CUresult error =
      encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(pages.base), sizes, strides, box,
             steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (error != CUDA_SUCCESS)
    throw std::runtime_error("cuTensorMapEncodeTiled failed with error " +
                             std::to_string(static_cast<int>(error)));
  return map;
}

}  // namespace vigil::kernels::cuda
