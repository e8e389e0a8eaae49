#include "kernels/device/product_cache.h"

#include <array>
#include <span>

#include "kernels/device/cuda_queue.h"

namespace vigil::kernels {
namespace {

// A window's length changes its shapes; a model has some ten products.
constexpr std::size_t kMostShapes = 512;

// Products of so few rows read their weights once. cuBLASLt's own choice is then up to a tenth slower than
// another of these.
constexpr std::int64_t kMostRowsChosen = 128;
constexpr int kMostCandidates = 8;

cudaDataType_t type_of(DType type) {
  switch (type) {
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    default:
      return CUDA_R_32F;
  }
}

/// A row-major matrix is a column-major one with rows and columns exchanged.
cublasLtMatrixLayout_t layout(DType type, std::int64_t rows, std::int64_t cols, std::int64_t stride) {
  cublasLtMatrixLayout_t made = nullptr;
  check_cublas(cublasLtMatrixLayoutCreate(&made, type_of(type), static_cast<std::uint64_t>(cols),
                                          static_cast<std::uint64_t>(rows), stride),
               "matrix layout");
  return made;
}

}  // namespace

Product::Product(cublasLtHandle_t blas, const ProductShape& shape, std::size_t workspace_bytes,
                 const ProductScales& scales)
    : accumulate_(shape.accumulate) {
  // outᵀ = w xᵀ in cuBLASLt's order of elements.
  check_cublas(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "product");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check_cublas(cublasLtMatmulDescSetAttribute(operation_, attribute, &value, sizeof(value)), "product");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, CUBLAS_OP_T);
  set(CUBLASLT_MATMUL_DESC_TRANSB, CUBLAS_OP_N);
  if (shape.bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  if (shape.in == DType::e4m3) {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
    set(CUBLASLT_MATMUL_DESC_B_SCALE_MODE, CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F);
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(shape.fast ? 1 : 0));
    if (shape.bias) set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16BF);
    set_scales(scales);
  }
  w_ = layout(shape.in, shape.n, shape.k, shape.w_stride);
  x_ = layout(shape.in, shape.m, shape.k, shape.x_stride);
  out_ = layout(shape.out, shape.m, shape.n, shape.out_stride);

  cublasLtMatmulPreference_t preference = nullptr;
  check_cublas(cublasLtMatmulPreferenceCreate(&preference), "product preference");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof(value)),
                 "product preference");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  // Where blocks share a sum, not in bf16: that costs more than the rounding of the result.
  prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.w_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.x_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.out_alignment);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.out_alignment);
  std::array<cublasLtMatmulHeuristicResult_t, kMostCandidates> found{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      blas, operation_, w_, x_, out_, out_, preference,
      shape.m <= kMostRowsChosen && shape.in != DType::e4m3 ? kMostCandidates : 1, found.data(), &count);
  cublasLtMatmulPreferenceDestroy(preference);
  if (status != CUBLAS_STATUS_SUCCESS) return;
  for (const auto& each : std::span(found).first(static_cast<std::size_t>(count)))
    if (each.state == CUBLAS_STATUS_SUCCESS) candidates_.push_back(each.algo);
}

Product::~Product() {
  if (out_ != nullptr) cublasLtMatrixLayoutDestroy(out_);
  if (x_ != nullptr) cublasLtMatrixLayoutDestroy(x_);
  if (w_ != nullptr) cublasLtMatrixLayoutDestroy(w_);
  if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
}

void Product::set_scales(const ProductScales& scales) const {
  check_cublas(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scales.w,
                                              sizeof(scales.w)),
               "product");
  check_cublas(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scales.x,
                                              sizeof(scales.x)),
               "product");
}

void Product::run(cublasLtHandle_t blas, cudaStream_t stream, const void* x, const void* w, const void* bias,
                  void* out, void* workspace, std::size_t workspace_bytes, std::size_t candidate,
                  const ProductScales& scales) const {
  if (scales.x != nullptr) set_scales(scales);
  if (bias != nullptr)
    check_cublas(
        cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias)),
        "product");
  const float one = 1;
  const float kept = accumulate_ ? 1 : 0;
  check_cublas(cublasLtMatmul(blas, operation_, &one, w, w_, x, x_, &kept, out, out_, out, out_,
                              &candidates_[candidate], workspace, workspace_bytes, stream),
               "product");
}

Product& ProductCache::of(cublasLtHandle_t blas, const ProductShape& shape, std::size_t workspace_bytes,
                          const ProductScales& scales) {
  if (const auto found = by_shape_.find(shape); found != by_shape_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return *entries_.front().second;
  }
  entries_.emplace_front(shape, std::make_unique<Product>(blas, shape, workspace_bytes, scales));
  by_shape_[shape] = entries_.begin();
  if (entries_.size() > kMostShapes) {
    by_shape_.erase(entries_.back().first);
    entries_.pop_back();
  }
  return *entries_.front().second;
}

}  // namespace vigil::kernels
