// A ring of pages in shared memory that one warp keeps full and others read, by either kind of bulk copy. The
// two kernels differ in that instruction alone, so that what compute-sanitizer's racecheck says of the one
// and not of the other is about the tool (docs/cuda.md).
#include <vector>

#include <cuda_bf16.h>
#include <gtest/gtest.h>

#include "kernels/attention/kv_map_cuda.h"
#include "kernels/device/bulk_copy.cuh"
#include "tests/kernels/paged_case_cuda.h"

namespace vigil::kernels {
namespace {

constexpr int kStages = 2;
constexpr int kReaders = 128;
constexpr int kElements = cuda::kPageTokens * cuda::kBoxColumns;
constexpr unsigned kBytes = kElements * sizeof(__nv_bfloat16);

template <bool kTensor>
__global__ void __launch_bounds__(kReaders + 32)
    sum_pages(const __grid_constant__ CUtensorMap map, const __nv_bfloat16* pages, int count, float* sums) {
  __shared__ alignas(1024) __nv_bfloat16 stages[kStages][kElements];
  __shared__ std::uint64_t full[kStages], empty[kStages];
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < kStages; ++stage) {
      cuda::barrier_init(cuda::shared_address(&full[stage]), 1);
      cuda::barrier_init(cuda::shared_address(&empty[stage]), kReaders / 32);
    }
    cuda::barrier_init_fence();
  }
  __syncthreads();

  if (threadIdx.x >= kReaders) {
    if (threadIdx.x > kReaders) return;
    const std::uint64_t policy = cuda::evict_first();
    for (int page = 0; page < count; ++page) {
      const int stage = page % kStages;
      const unsigned turn = page / kStages % 2;
      const std::uint32_t barrier = cuda::shared_address(&full[stage]);
      cuda::barrier_wait(cuda::shared_address(&empty[stage]), turn ^ 1U);
      cuda::barrier_arrive_expect(barrier, kBytes);
      if constexpr (kTensor) {
        cuda::copy_box(cuda::shared_address(stages[stage]), map, 0, page * cuda::kPageTokens, barrier);
      } else {
        cuda::copy_once(cuda::shared_address(stages[stage]), pages + page * kElements, kBytes, barrier,
                        policy);
      }
    }
    return;
  }
  for (int page = 0; page < count; ++page) {
    const int stage = page % kStages;
    cuda::barrier_wait(cuda::shared_address(&full[stage]), page / kStages % 2);
    float sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < kElements; i += kReaders)
      sum += __bfloat162float(stages[stage][i]);
    __syncwarp();
    if (threadIdx.x % 32 == 0) cuda::barrier_arrive(cuda::shared_address(&empty[stage]));
    atomicAdd(&sums[page], sum);
  }
}

template <bool kTensor>
void expect_sums() {
  if (!test::gpu_here()) GTEST_SKIP() << "skipped, no GPU";
  constexpr int kCount = 7;
  std::vector<__nv_bfloat16> values(std::size_t{kCount} * kElements);
  std::vector<float> expected(kCount);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto value = static_cast<float>((i * 7 + i / kElements) % 11);
    values[i] = __float2bfloat16_rn(value);
    expected[i / kElements] += value;
  }
  const test::OnDevice<__nv_bfloat16> pages(values);
  const test::OnDevice<float> sums(std::vector<float>(kCount, 0.0F));
  const CUtensorMap map = cuda::kv_map({pages.data(), kElements, 0, kCount, 1, cuda::kBoxColumns});
  sum_pages<kTensor><<<1, kReaders + 32>>>(map, pages.data(), kCount, sums.data());
  test::require_cuda(cudaDeviceSynchronize());
  EXPECT_EQ(sums.host(), expected);
}

TEST(BulkCopyTest, NeighboursFillARing) {
  expect_sums<false>();
}

TEST(BulkCopyTest, BoxesFillARing) {
  expect_sums<true>();
}

}  // namespace
}  // namespace vigil::kernels
