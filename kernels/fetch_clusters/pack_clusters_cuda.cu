// A block of threads a block of tokens of a cluster's keys or values of one head. What is narrower than bf16
// is put together in shared memory first, so that the bus is given whole lines.
#include "kernels/device/slow_path.h"
#include "kernels/fetch_clusters/fetch_clusters_backends.h"
#include "kernels/packed_kv/write_rows_cuda.h"

namespace vigil::kernels {
namespace {

using cuda::kBlock;
using cuda::kColumns;
using cuda::kRowThreads;

constexpr int kElementThreads = 128;

/// A block of tokens that a block of threads packs, for one head's keys or values; of no tokens, nothing.
struct Task {
  ClusterToPack cluster;
  unsigned head;
  bool value;
  std::int64_t index;
  int tokens = 0;

  /// The first `count` tasks are the first blocks of all clusters. Then there is one for each further window
  /// of kBlock slots, and whatever other block begins in it: one at most, since that of the same cluster
  /// begins kBlock slots later, and those of other clusters lie at least as far behind their own first slot.
  __device__ Task(const ClustersToPack& all, unsigned heads) {
    const unsigned part = blockIdx.x % (2 * heads);
    head = part / 2;
    value = part % 2 != 0;
    std::int64_t number = blockIdx.x / (2 * heads);
    index = 0;
    if (number >= all.count) {
      const std::int64_t last = (number - all.count + 2) * kBlock - 1;
      // The last cluster that begins more than a block before.
      std::int64_t low = 0, high = all.count;
      while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (all.clusters[middle].first <= last - kBlock) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      if (low == 0) return;
      number = low - 1;
      index = (last - all.clusters[number].first) / kBlock;
    }
    cluster = all.clusters[number];
    tokens =
        static_cast<int>(max(min(cluster.tokens - index * kBlock, std::int64_t{kBlock}), std::int64_t{0}));
  }

  __device__ const std::int32_t* slots(const ClustersToPack& all) const {
    return all.slots + cluster.first + index * kBlock;
  }
  __device__ std::byte* place(const PackedShape& piece, std::byte* to) const {
    return to + cluster.begin + head * piece.bytes() + piece.offset(0, value, 0, index);
  }
};

/// Bytes of shared memory, in whole lines of 128 bytes but at the ends.
__device__ __forceinline__ void write_lines(std::byte* to, const std::byte* from, int bytes) {
  const auto skewed = static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % 128);
  for (int at = static_cast<int>(threadIdx.x) * 16 - skewed; at < bytes;
       at += static_cast<int>(blockDim.x) * 16)
    if (at >= 0) *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
}

template <typename T, PackedForm form, int lanes>
__global__ void __launch_bounds__(kRowThreads<lanes>)
    pack(const KvLayers from, const ClustersToPack all, std::byte* to) {
  const Task task(all, static_cast<unsigned>(from.first.kv_heads));
  if (task.tokens == 0) return;
  const PackedShape piece{form, 1, 1, lanes * kColumns, task.cluster.tokens};
  std::byte* place = task.place(piece, to);
  const auto write = [&](std::byte* at) {
    cuda::write_rows<T, form, lanes>(from, task.cluster.layer, task.value, task.head, task.slots(all),
                                     task.tokens, piece, at);
  };
  if constexpr (form == PackedForm::bf16) {
    write(place);
  } else {
    constexpr PackedShape kWhole{form, 1, 1, lanes * kColumns, kBlock};
    __shared__ __align__(16) std::byte room[kWhole.block_bytes(kBlock)];
    write(room);
    __syncthreads();
    write_lines(place, room, static_cast<int>(piece.block_bytes(task.tokens)));
  }
}

/// The same for heads of any width, element by element.
template <typename T>
__global__ void __launch_bounds__(kElementThreads)
    pack_elements(const KvLayers from, const ClustersToPack all, PackedForm form, std::byte* to) {
  const Task task(all, static_cast<unsigned>(from.first.kv_heads));
  if (task.tokens == 0) return;
  const PackedShape piece{form, 1, 1, from.first.head_dim, task.cluster.tokens};
  cuda::write_elements<T>(from, task.cluster.layer, task.value, task.head, task.slots(all), task.tokens,
                          piece, task.place(piece, to));
}

}  // namespace

void cuda::pack_clusters(Stream& stream, const KvLayers& from, const ClustersToPack& clusters,
                         PackedForm form, std::byte* to) {
  const cudaStream_t queue = queue_of(stream);
  const auto blocks =
      static_cast<unsigned>((clusters.count + (clusters.tokens - 1) / kBlock) * 2 * from.first.kv_heads);
  const bool fast = rows_pack(from) && with_lanes(from.first.head_dim, [&](auto lanes) {
                      with_type(from.first.dtype, [&](auto type) {
                        with_form(form, [&](auto which) {
                          pack<decltype(type), decltype(which)::value, decltype(lanes)::value>
                              <<<blocks, kRowThreads<decltype(lanes)::value>, 0, queue>>>(from, clusters, to);
                        });
                      });
                    });
  if (!fast) {
    static SlowPath slow{"pack_clusters",
                         "heads of other than 32, 64, 128 or 256 elements, or rows that do not begin at 16 "
                         "bytes: element by element"};
    slow.taken();
    if (from.first.dtype == DType::f32) {
      pack_elements<float><<<blocks, kElementThreads, 0, queue>>>(from, clusters, form, to);
    } else {
      pack_elements<bf16><<<blocks, kElementThreads, 0, queue>>>(from, clusters, form, to);
    }
  }
  check_launch("pack_clusters");
}

}  // namespace vigil::kernels
