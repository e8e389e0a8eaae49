// One warp's arithmetic of decode attention: 16 keys of each page, all query heads of a KV head at once.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "kernels/attention/decode_attention_work_cuda.h"
#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/online_softmax_cuda.h"

namespace vigil::kernels::cuda::decode {

__device__ __forceinline__ void multiply(float (&d)[4], const std::uint32_t* a, std::uint32_t b0,
                                         std::uint32_t b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// One warp's share of a (sequence, KV head): 16 keys of every page. Rows are the query heads of the KV head,
/// at most 16 (mma's m16n8k16; a thread has rows lane / 4 and lane / 4 + 8).
template <int kHeadDim>
struct Share {
  using Shape = Layout<kHeadDim>;
  std::uint32_t query[kHeadDim / 4];
  float sum[kHeadDim / 8][4];
  float largest[2];
  float total[2];  // of this thread's columns

  __device__ __forceinline__ void begin(const __nv_bfloat16* heads, int group) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kHeadDim / 4; ++i) {
      const int row = lane / 4 + i % 2 * 8;
      const int column = i / 4 * 16 + i / 2 % 2 * 8 + lane % 4 * 2;
      query[i] = row < group ? *reinterpret_cast<const std::uint32_t*>(heads + row * kHeadDim + column) : 0;
    }
#pragma unroll
    for (auto& four : sum)
#pragma unroll
      for (float& x : four) x = 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      largest[row] = kNone;
      total[row] = 0;
    }
  }

  /// `seen`: which of this warp's 16 keys count; `dead`: whose values may be NaN.
  __device__ __forceinline__ void add(std::uint32_t keys, std::uint32_t values, std::uint32_t seen,
                                      std::uint32_t dead, float scale) {
    const int lane = threadIdx.x % 32;
    const int warp_key = threadIdx.x / 32 % kWarps * kWarpKeys;
    if (dead != 0) {
      // Two lanes a row of 128 bytes in each half; lanes begin at different banks.
      if ((dead >> (lane / 2) & 1) != 0)
#pragma unroll
        for (int half = 0; half < Shape::kHalves; ++half)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const std::uint32_t to = values + half * Shape::kBoxBytes + (warp_key + lane / 2) * 128 +
                                     (lane % 2 * 4 + (i + lane / 2) % 4) * 16;
            asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};\n" ::"r"(to), "r"(0) : "memory");
          }
      fence_async();  // the copy engine writes here next
      __syncwarp();
    }

    // All loads first: none waits for a product.
    const int key = warp_key + lane / 16 * 8 + lane % 8;
    std::uint32_t k[kHeadDim / 16][4];
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      const int chunk = 2 * i + lane / 8 % 2;
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(k[i][0]), "=r"(k[i][1]), "=r"(k[i][2]), "=r"(k[i][3])
                   : "r"(keys + chunk / 8 * Shape::kBoxBytes + key * 128 + ((chunk % 8) ^ (key % 8)) * 16)
                   : "memory");
    }
    const int value = warp_key + lane / 8 % 2 * 8 + lane % 8;
    std::uint32_t v[kHeadDim / 16][4];
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      const int chunk = 2 * i + lane / 16;
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
          : "=r"(v[i][0]), "=r"(v[i][1]), "=r"(v[i][2]), "=r"(v[i][3])
          : "r"(values + chunk / 8 * Shape::kBoxBytes + value * 128 + ((chunk % 8) ^ (value % 8)) * 16)
          : "memory");
    }
    // Even and odd steps apart, for shorter chains.
    float s[2][4] = {};
    float odd[2][4] = {};
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; i += 2)
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        multiply(s[j], query + 4 * i, k[i][2 * j], k[i][2 * j + 1]);
        multiply(odd[j], query + 4 * (i + 1), k[i + 1][2 * j], k[i + 1][2 * j + 1]);
      }
#pragma unroll
    for (int j = 0; j < 2; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) s[j][e] += odd[j][e];

    const std::uint32_t mine = seen >> (lane % 4 * 2);
    float shrink[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float most = largest[row];
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[j][2 * row + e];
          x = (mine >> (8 * j + e) & 1) != 0 ? x : kNone;
          most = fmaxf(most, x);
        }
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 2));
      const float shift = most == kNone ? 0.0F : most * scale;
      shrink[row] = exp2_fast(largest[row] * scale - shift);
      largest[row] = most;
      float weight = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[j][2 * row + e];
          x = exp2_fast(x * scale - shift);
          weight += x;
        }
      total[row] = total[row] * shrink[row] + weight;
    }
    if (__any_sync(0xFFFFFFFF, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
      for (auto& four : sum)
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] *= shrink[i / 2];
    }

    const std::uint32_t weights[4] = {pack_bf16(s[0][0], s[0][1]), pack_bf16(s[0][2], s[0][3]),
                                      pack_bf16(s[1][0], s[1][1]), pack_bf16(s[1][2], s[1][3])};
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i) {
      multiply(sum[2 * i], weights, v[i][0], v[i][1]);
      multiply(sum[2 * i + 1], weights, v[i][2], v[i][3]);
    }
  }

  /// Leaves what belongs to heads that exist.
  __device__ __forceinline__ void leave(Found<kHeadDim>& found, int group) const {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float all = total[row];
      all += __shfl_xor_sync(0xFFFFFFFF, all, 1);
      all += __shfl_xor_sync(0xFFFFFFFF, all, 2);
      const int head = lane / 4 + 8 * row;
      if (head >= group) continue;
      float* at = found.sum[warp][head];
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
        *reinterpret_cast<float2*>(at + n * 8 + lane % 4 * 2) =
            make_float2(sum[n][2 * row], sum[n][2 * row + 1]);
      if (lane % 4 == 0) {
        found.largest[warp][head] = largest[row];
        found.total[warp][head] = all;
      }
    }
  }
};

}  // namespace vigil::kernels::cuda::decode
