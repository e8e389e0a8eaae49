// Packed keys and values that lie in the host's memory, which the GPU reads and writes by itself.
#include <cstring>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include "kernels/device/buffer.h"
#include "kernels/packed_kv/packed_kv.h"
#include "kernels/random/random.h"

namespace vigil::kernels {
namespace {

struct FreePinned {
  void operator()(std::byte* memory) const { cudaFreeHost(memory); }
};
using Pinned = std::unique_ptr<std::byte, FreePinned>;

Pinned pinned(std::size_t bytes) {
  void* memory = nullptr;
  if (cudaMallocHost(&memory, bytes) != cudaSuccess) throw std::bad_alloc();
  std::memset(memory, 0xff, bytes);
  return Pinned(static_cast<std::byte*>(memory));
}

TEST(PackedKvGpuTest, PinnedMemoryOfTheHostIsAsGoodAsTheDevices) {
  if (cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  constexpr std::int64_t kLayers = 3, kHeads = 2, kHead = 128, kTokens = 200,
                         kLayer = 2 * kHeads * 64 * kHead;
  Stream stream = Stream::cuda();
  const auto bytes = static_cast<std::size_t>(4 * kLayers * kLayer * 2);
  const Buffer cache(stream, bytes), one(stream, bytes), two(stream, bytes);
  fill_random(stream, dense(cache.data(), DType::bf16, 4 * kLayers, kLayer), 1, 4);
  for (const Buffer* each : {&one, &two})
    fill_random(stream, dense(each->data(), DType::bf16, 4 * kLayers, kLayer), 2, 4);
  const auto layers = [&](const Buffer& memory) {
    return KvLayers{
        {memory.data(), DType::bf16, 4, kLayers * kLayer, kLayer / 2, 64, kHeads, kHead}, kLayers, kLayer};
  };
  std::vector<std::int32_t> all(kTokens);
  std::iota(all.rbegin(), all.rend(), 11);
  const DeviceArray<std::int32_t> slots(stream, all);
  for (const PackedForm form : {PackedForm::bf16, PackedForm::fp8, PackedForm::int4}) {
    const PackedShape shape{form, kLayers, kHeads, kHead, kTokens};
    const auto size = static_cast<std::size_t>(shape.bytes());
    const Buffer there(stream, size);
    const Pinned here = pinned(size);
    pack_kv(stream, layers(cache), {slots.data(), 0}, shape, 0, 0, there.data());
    pack_kv(stream, layers(cache), {slots.data(), 0}, shape, 0, 0, here.get());
    std::vector<std::byte> packed(size);
    download(stream, packed.data(), there.data(), size);
    EXPECT_EQ(std::memcmp(packed.data(), here.get(), size), 0);
    for (const bool from_host : {true, false})
      unpack_kv(stream, from_host ? here.get() : there.data(), shape, {0, 0, 70, 100}, nullptr, nullptr,
                {slots.data(), 0}, layers(from_host ? one : two));
    std::vector<std::byte> from_host(bytes), from_device(bytes);
    download(stream, from_host.data(), one.data(), bytes);
    download(stream, from_device.data(), two.data(), bytes);
    EXPECT_EQ(from_host, from_device);
  }
}

}  // namespace
}  // namespace vigil::kernels
