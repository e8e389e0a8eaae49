#include "kernels/device/slow_path.h"
#include "kernels/packed_kv/packed_kv_backends.h"
#include "kernels/packed_kv/write_rows_cuda.h"

namespace vigil::kernels {
namespace {

using cuda::kBlock;
using cuda::kRowThreads;

/// A block of threads a block of tokens of one head.
template <typename T, PackedForm form, int lanes>
__global__ void __launch_bounds__(kRowThreads<lanes>)
    pack_rows(const KvLayers from, const KvSlots slots, const PackedShape shape, std::int64_t layer,
              std::int64_t head, std::byte* to) {
  const std::int64_t block = blockIdx.x, l = blockIdx.z;
  const auto heads = static_cast<unsigned>(from.first.kv_heads);
  const unsigned h = blockIdx.y % heads;
  const bool value = blockIdx.y >= heads;
  cuda::write_rows<T, form, lanes>(from, l, value, h, slots.slots + l * slots.stride + block * kBlock,
                                   static_cast<int>(shape.tokens_of_block(block)), shape,
                                   to + shape.offset(layer + l, value, head + h, block));
}

/// The same for heads of any width, element by element.
template <typename T>
__global__ void __launch_bounds__(128)
    pack_elements(const KvLayers from, const KvSlots slots, const PackedShape shape, std::int64_t layer,
                  std::int64_t head, std::byte* to) {
  const std::int64_t block = blockIdx.x, l = blockIdx.z, heads = from.first.kv_heads;
  const std::int64_t h = blockIdx.y % heads;
  const bool value = blockIdx.y >= heads;
  cuda::write_elements<T>(from, l, value, h, slots.slots + l * slots.stride + block * kBlock,
                          shape.tokens_of_block(block), shape,
                          to + shape.offset(layer + l, value, head + h, block));
}

}  // namespace

void cuda::pack_kv(Stream& stream, const KvLayers& from, KvSlots slots, const PackedShape& shape,
                   std::int64_t layer, std::int64_t head, std::byte* to) {
  const cudaStream_t queue = queue_of(stream);
  const dim3 grid(static_cast<unsigned>(shape.blocks()), static_cast<unsigned>(2 * from.first.kv_heads),
                  static_cast<unsigned>(from.count));
  const bool fast = rows_pack(from) && with_lanes(shape.head_dim, [&](auto lanes) {
                      with_type(from.first.dtype, [&](auto type) {
                        with_form(shape.form, [&](auto form) {
                          pack_rows<decltype(type), decltype(form)::value, decltype(lanes)::value>
                              <<<grid, kRowThreads<decltype(lanes)::value>, 0, queue>>>(from, slots, shape,
                                                                                        layer, head, to);
                        });
                      });
                    });
  if (!fast) {
    static SlowPath slow{"pack_kv", "heads of other than 32, 64, 128 or 256 elements: element by element"};
    slow.taken();
    if (from.first.dtype == DType::f32) {
      pack_elements<float><<<grid, 128, 0, queue>>>(from, slots, shape, layer, head, to);
    } else {
      pack_elements<bf16><<<grid, 128, 0, queue>>>(from, slots, shape, layer, head, to);
    }
  }
  check_launch("pack_kv");
}

}  // namespace vigil::kernels
