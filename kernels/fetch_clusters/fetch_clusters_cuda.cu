// Pieces from the host's memory by kernels that read it: a warp a piece, block by block into shared memory
// and from there, as numbers, into its list. Many warps wait at once, so that the bus is never without
// requests, and each brings as many tokens as the others.
#include <algorithm>

#include <cub/block/block_scan.cuh>

#include "kernels/device/slow_path.h"
#include "kernels/fetch_clusters/fetch_clusters_backends.h"
#include "kernels/packed_kv/packed_kv_cuda.h"
#include "kernels/packed_kv/packed_rows_cuda.h"

namespace vigil::kernels {
namespace {

using cuda::Columns;
using cuda::kBlock;
using cuda::kColumns;

constexpr int kPlaceThreads = 1024;
/// Warps of a block that has a multiprocessor for itself, at most, and shared memory that they divide: a warp
/// has room for the keys and values of 64 tokens in FP8.
constexpr int kMostWarps = 12;
constexpr int kFetchThreads = kMostWarps * 32;
constexpr std::int64_t kRoomBytes = 16640;
constexpr std::int64_t kMostRoomBytes = std::int64_t{200} << 10U;
/// As many as keep the bus busy.
constexpr int kMostBlocks = 16;
constexpr int kHalfColumns = kColumns / 2;

/// A block a KV head.
__global__ void __launch_bounds__(kPlaceThreads)
    place(ClusterSelection chosen, std::int64_t clusters, const std::int32_t* counts, FetchedLists to) {
  using Scan = cub::BlockScan<int, kPlaceThreads>;
  __shared__ typename Scan::TempStorage scan;
  __shared__ int length;
  const std::int64_t head = blockIdx.x;
  const int count = chosen.count[head];
  if (threadIdx.x == 0) length = 0;
  __syncthreads();
  int sum = 0;
  for (int first = 0; first < count; first += kPlaceThreads) {
    const int i = first + static_cast<int>(threadIdx.x);
    const int tokens = i < count ? counts[chosen.clusters[head * clusters + i]] : 0;
    int before = 0;
    int more = 0;
    Scan(scan).ExclusiveSum(tokens, before, more);
    if (i < count) {
      to.places[head * clusters + i] = sum + before;
      if (sum + before + tokens <= to.capacity) atomicMax(&length, sum + before + tokens);
    }
    sum += more;
    __syncthreads();
  }
  if (threadIdx.x == 0) to.counts[head] = length;
}

/// 16 bytes to shared memory.
__device__ __forceinline__ void copy_16(std::byte* to, const std::byte* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(
                   static_cast<std::uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
}
/// Bytes of the host to shared memory, by a warp, as whole lines of 128 bytes but at the ends: the bus brings
/// lines, and rows of 512 bytes that begin elsewhere ask for one more each.
__device__ __forceinline__ void copy_lines(std::byte* to, const std::byte* from, int bytes, int lane) {
  const auto skewed = static_cast<int>(reinterpret_cast<std::uintptr_t>(from) % 128);
  for (int at = lane * 16 - skewed; at < bytes; at += 32 * 16)
    if (at >= 0) copy_16(to + at, from + at);
}
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;\n" ::: "memory");
}

/// One chosen cluster of one KV head.
struct Piece {
  PackedShape shape;
  const std::byte* from;
  std::int64_t place;  // in all lists, in tokens
  std::int64_t angles;

  __device__ const std::byte* block(bool value, std::int64_t index) const {
    return from + shape.offset(0, value, 0, index);
  }
};

/// The first of `count` ascending places that is not before `place`, by a warp: 32 at once.
__device__ __forceinline__ int first_from(const std::int32_t* places, int count, std::int64_t place,
                                          int lane) {
  int first = 0;
  for (int left = count; left > 0;) {
    const int step = (left + 31) / 32;
    const int at = first + (lane + 1) * step - 1;
    const bool before = at < first + left && places[at] < place;
    const int whole = __popc(__ballot_sync(0xffffffffU, before));
    // Of the part in which it is, the last one is known not to be before.
    left = min(step, left - whole * step);
    first += whole * step;
    if (step == 1) break;
  }
  return first;
}

/// Visits the pieces of warp `warp` of `warps`: as many tokens as the others have, but for parts of a piece,
/// so that none is waited for. Those of all KV heads lie in a row.
template <typename Visit>
__device__ __forceinline__ void each_piece(const ClusterPieces& pieces, const ClusterSelection& chosen,
                                           std::int64_t clusters, const ClusterTurn& turn,
                                           const FetchedLists& to, int warp, int warps, int lane,
                                           const Visit& visit) {
  std::int64_t all = 0;
  for (int head = 0; head < static_cast<int>(pieces.kv_heads); ++head) all += to.counts[head];
  const std::int64_t begin = all * warp / warps, end = all * (warp + 1) / warps;
  std::int64_t passed = 0;
  for (int head = 0; head < static_cast<int>(pieces.kv_heads) && passed < end; ++head) {
    const std::int64_t of_head = to.counts[head];
    if (passed + of_head > begin) {
      const int count = chosen.count[head];
      const std::int32_t* places = to.places + head * clusters;
      for (int i = first_from(places, count, begin - passed, lane); i < count; ++i) {
        const std::int64_t place = places[i];
        if (passed + place >= end) break;
        const int cluster = chosen.clusters[head * clusters + i];
        const std::int64_t tokens = pieces.counts[cluster];
        if (place + tokens > to.capacity) break;
        const PackedShape shape{pieces.form, 1, 1, pieces.head_dim, tokens};
        visit(Piece{shape, pieces.memory + pieces.begins[cluster] + head * shape.bytes(),
                    head * to.capacity + place, turn.cos == nullptr ? 0 : std::int64_t{turn.first[cluster]}});
      }
    }
    passed += of_head;
  }
}

template <typename T, PackedForm form, int lanes>
__global__ void __launch_bounds__(kFetchThreads)
    fetch(ClusterPieces pieces, ClusterSelection chosen, std::int64_t clusters, ClusterTurn turn,
          FetchedLists to) {
  extern __shared__ __align__(16) std::byte memory[];
  constexpr int kWidth = lanes * kColumns;
  constexpr int kRowsAtOnce = 32 / lanes;
  constexpr PackedShape kWhole{form, 1, 1, kWidth, kBlock};
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  constexpr std::int64_t kRoom = std::max(kRoomBytes, kWhole.block_bytes(kBlock));
  std::byte* memory_of_warp = memory + warp * kRoom;
  const int warps = static_cast<int>(blockDim.x) / 32;
  const auto visit = [&](const Piece& piece) {
    // Keys and values at once where there is room for both.
    const std::int64_t all_bytes = piece.shape.bytes();
    const bool at_once = all_bytes <= kRoom;
    if (at_once) copy_lines(memory_of_warp, piece.from, static_cast<int>(all_bytes), lane);
    for (int half = 0; half < 2; ++half) {
      const bool value = half != 0;
      T* list = static_cast<T*>(value ? to.values : to.keys) + piece.place * kWidth;
      for (std::int64_t index = 0; index < piece.shape.blocks(); ++index) {
        const auto tokens = static_cast<int>(piece.shape.tokens_of_block(index));
        const auto bytes = static_cast<int>(piece.shape.block_bytes(tokens));
        const std::byte* from = piece.block(value, index);
        const std::byte* room = memory_of_warp + (at_once ? from - piece.from : 0);
        if (!at_once) copy_lines(memory_of_warp, from, bytes, lane);
        await_copies();
        __syncwarp();
        T* rows = list + index * kBlock * kWidth;
        if (value || turn.cos == nullptr) {
          const int column = lane % lanes * kColumns;
          const Columns<form, kColumns> columns(room, kWidth, column);
          for (int row = lane / lanes; row < tokens; row += kRowsAtOnce) {
            float values[kColumns];
            cuda::read_columns<form, kColumns>(piece.shape, room, tokens, row, column, columns, values);
            cuda::store(rows + row * kWidth + column, values);
          }
        } else {
          // A thread has columns of both halves of a row.
          const int column = lane % lanes * kHalfColumns;
          const Columns<form, kHalfColumns> low_columns(room, kWidth, column),
              high_columns(room, kWidth, column + kWidth / 2);
          for (int row = lane / lanes; row < tokens; row += kRowsAtOnce) {
            const std::int64_t angles = (piece.angles + index * kBlock + row) * (kWidth / 2) + column;
            using Four = cuda::Pack<float, kHalfColumns>;
            const Four c = *reinterpret_cast<const Four*>(turn.cos + angles);
            const Four s = *reinterpret_cast<const Four*>(turn.sin + angles);
            float low[kHalfColumns], high[kHalfColumns];
            cuda::read_columns<form, kHalfColumns>(piece.shape, room, tokens, row, column, low_columns, low);
            cuda::read_columns<form, kHalfColumns>(piece.shape, room, tokens, row, column + kWidth / 2,
                                                   high_columns, high);
#pragma unroll
            for (int i = 0; i < kHalfColumns; ++i) {
              // Not a zero of another sign.
              if (s.values[i] == 0.0F && c.values[i] == 1.0F) continue;
              const float a = low[i], b = high[i];
              low[i] = a * c.values[i] - b * s.values[i];
              high[i] = b * c.values[i] + a * s.values[i];
            }
            cuda::store(rows + row * kWidth + column, low);
            cuda::store(rows + row * kWidth + column + kWidth / 2, high);
          }
        }
        __syncwarp();
      }
    }
  };
  each_piece(pieces, chosen, clusters, turn, to, static_cast<int>(blockIdx.x) * warps + warp,
             static_cast<int>(gridDim.x) * warps, lane, visit);
}

/// The same for heads of any width: a lane two elements that are turned together.
template <typename T>
__global__ void __launch_bounds__(kFetchThreads)
    fetch_elements(ClusterPieces pieces, ClusterSelection chosen, std::int64_t clusters, ClusterTurn turn,
                   FetchedLists to) {
  const std::int64_t width = pieces.head_dim, half = width / 2;
  const auto lane = static_cast<std::int64_t>(threadIdx.x % 32);
  const auto visit = [&](const Piece& piece) {
    for (std::int64_t at = lane; at < 2 * piece.shape.tokens * half; at += 32) {
      const std::int64_t j = at % half, i = at / half % piece.shape.tokens;
      const bool value = at / half >= piece.shape.tokens;
      const std::int64_t tokens = piece.shape.tokens_of_block(i / kBlock);
      const std::byte* block = piece.block(value, i / kBlock);
      float low = cuda::element_of(piece.shape, block, tokens, i % kBlock, j);
      float high = cuda::element_of(piece.shape, block, tokens, i % kBlock, j + half);
      if (!value && turn.cos != nullptr) {
        const float c = turn.cos[(piece.angles + i) * half + j], s = turn.sin[(piece.angles + i) * half + j];
        if (!(s == 0.0F && c == 1.0F)) {
          const float a = low, b = high;
          low = a * c - b * s;
          high = b * c + a * s;
        }
      }
      T* row = static_cast<T*>(value ? to.values : to.keys) + (piece.place + i) * width;
      row[j] = cuda::rounded<T>(low);
      row[j + half] = cuda::rounded<T>(high);
    }
  };
  each_piece(pieces, chosen, clusters, turn, to, static_cast<int>(blockIdx.x * kMostWarps + threadIdx.x / 32),
             static_cast<int>(gridDim.x) * kMostWarps, static_cast<int>(lane), visit);
}

}  // namespace

void cuda::place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                          const ClusterPieces& pieces, const FetchedLists& to) {
  place<<<static_cast<unsigned>(pieces.kv_heads), kPlaceThreads, 0, queue_of(stream)>>>(chosen, clusters,
                                                                                        pieces.counts, to);
  check_launch("place_clusters");
}

void cuda::fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                          std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to) {
  const cudaStream_t queue = queue_of(stream);
  const auto blocks = static_cast<unsigned>(std::min(kMostBlocks, stream.cuda_queue().multiprocessors()));
  const bool aligned = reinterpret_cast<std::uintptr_t>(turn.cos) % 16 == 0 &&
                       reinterpret_cast<std::uintptr_t>(turn.sin) % 16 == 0;
  with_type(to.dtype, [&](auto type) {
    using T = decltype(type);
    const bool fast =
        aligned && with_lanes(pieces.head_dim, [&](auto lanes) {
          constexpr int kLanes = decltype(lanes)::value;
          with_form(pieces.form, [&](auto form) {
            constexpr PackedForm kForm = decltype(form)::value;
            const PackedShape whole{kForm, 1, 1, pieces.head_dim, kBlock};
            const std::int64_t room = std::max(kRoomBytes, whole.block_bytes(kBlock));
            const std::int64_t warps = std::min<std::int64_t>(kMostWarps, kMostRoomBytes / room);
            const auto bytes = static_cast<std::size_t>(warps * room);
            check_cuda(
                cudaFuncSetAttribute(fetch<T, kForm, kLanes>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                     static_cast<int>(bytes)),
                "fetch_clusters");
            fetch<T, kForm, kLanes><<<blocks, static_cast<unsigned>(warps * 32), bytes, queue>>>(
                pieces, chosen, clusters, turn, to);
          });
        });
    if (fast) return;
    static SlowPath slow{"fetch_clusters",
                         "heads of other than 32, 64, 128 or 256 elements: element by element"};
    slow.taken();
    fetch_elements<T><<<blocks, kFetchThreads, 0, queue>>>(pieces, chosen, clusters, turn, to);
  });
  check_launch("fetch_clusters");
}

}  // namespace vigil::kernels
