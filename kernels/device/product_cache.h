// cuBLASLt's choice of an algorithm for each shape of a product, made once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <cublasLt.h>

#include "kernels/device/dtype.h"

namespace vigil::kernels {

/// out[m, n] (+)= x[m, k] w[n, k]ᵀ (+ bias[n]), all row-major, with what cuBLASLt's choice depends on.
struct ProductShape {
  std::int64_t m, n, k;
  std::int64_t x_stride, w_stride, out_stride;
  DType in, out;
  bool bias, accumulate;
  /// Of e4m3: whether sums may stay in the matrix units (linear_e4m3_cuda.cpp).
  bool fast;
  /// Bytes that the addresses are multiples of, at most 16.
  std::uint32_t x_alignment, w_alignment, out_alignment;
  friend auto operator<=>(const ProductShape&, const ProductShape&) = default;
};

/// Of x's rows and w's rows, on the GPU, if they are e4m3; else null.
struct ProductScales {
  const float* x = nullptr;
  const float* w = nullptr;
};

/// What cuBLASLt needs to run a product of one shape.
class Product {
 public:
  Product(cublasLtHandle_t blas, const ProductShape& shape, std::size_t workspace_bytes,
          const ProductScales& scales);
  ~Product();
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  /// False if cuBLASLt has no algorithm for the shape.
  bool possible() const { return !candidates_.empty(); }
  /// Algorithms that are left to choose from, cuBLASLt's own choice first.
  std::size_t candidates() const { return candidates_.size(); }
  /// Keeps candidate `i` alone.
  void choose(std::size_t i) { candidates_ = {candidates_[i]}; }

  /// bias: the type of out; bf16 for products of e4m3.
  void run(cublasLtHandle_t blas, cudaStream_t stream, const void* x, const void* w, const void* bias,
           void* out, void* workspace, std::size_t workspace_bytes, std::size_t candidate = 0,
           const ProductScales& scales = {}) const;

 private:
  void set_scales(const ProductScales& scales) const;

  bool accumulate_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t w_ = nullptr, x_ = nullptr, out_ = nullptr;
  std::vector<cublasLtMatmulAlgo_t> candidates_;
};

/// The products that were used last. Not thread-safe.
class ProductCache {
 public:
  Product& of(cublasLtHandle_t blas, const ProductShape& shape, std::size_t workspace_bytes,
              const ProductScales& scales = {});

 private:
  using Entry = std::pair<ProductShape, std::unique_ptr<Product>>;
  /// Last used first.
  std::list<Entry> entries_;
  std::map<ProductShape, std::list<Entry>::iterator> by_shape_;
};

}  // namespace vigil::kernels
