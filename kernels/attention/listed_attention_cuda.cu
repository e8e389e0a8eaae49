// Attention over pages and lists: bound by reading the keys and values. The 64s of all (rows, KV head) pairs
// are one row of work that the grid's blocks divide evenly, whatever the lists' lengths are when the grid
// runs. Where blocks share a pair, or warps its keys, a second kernel combines what each found.
#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "kernels/attention/attention_backends.h"
#include "kernels/attention/listed_attention_cuda.h"
#include "kernels/attention/plans_cuda.h"
#include "kernels/attention/warp_attention_cuda.h"
#include "kernels/device/cuda.cuh"
#include "kernels/device/overlap.cuh"

namespace vigil::kernels {

namespace cuda::listed {
namespace {

template <int kHeadDim>
struct Layout {
  static constexpr int kRowBytes = kHeadDim * 2;
  static constexpr int kHalfBytes = kPageTokens * kRowBytes;  // keys, or values, of a stage
  static constexpr int kStartAt = kStages * 2 * kHalfBytes;
  static constexpr int kBytes = kStartAt + (kMostPairs + 1) * 4;
};

/// 16 bytes to shared memory, or zeros in their place.
__device__ __forceinline__ void copy_or_clear(std::uint32_t to, const void* from, bool copied) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(copied ? 16 : 0)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}
/// Until all but the last `kPending` groups are there.
template <int kPending>
__device__ __forceinline__ void await_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

/// The keys and values of a unit; zeros for those that nobody sees, whose values may be NaN. 16 bytes of row
/// r lie where c ^ (r % 8) says, so that eight rows have their bytes in different banks.
template <int kHeadDim>
__device__ __forceinline__ void copy_unit(const Unit& unit, std::uint32_t stage) {
  using Shape = Layout<kHeadDim>;
  constexpr int kChunks = Shape::kRowBytes / 16;
#pragma unroll
  for (int half = 0; half < 2; ++half)
#pragma unroll
    for (int i = 0; i < kPageTokens * kChunks / kThreads; ++i) {
      const int at = i * kThreads + static_cast<int>(threadIdx.x);
      const int row = at / kChunks;
      const int chunk = at % kChunks;
      const bool seen = (unit.seen >> row & 1) != 0;
      const __nv_bfloat16* from = half == 0 ? unit.keys : unit.values;
      copy_or_clear(stage + half * Shape::kHalfBytes + row * Shape::kRowBytes + (chunk ^ (row % 8)) * 16,
                    from + (seen ? row * kHeadDim + chunk * 8 : 0), seen);
    }
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads, 2) attend_listed(const __grid_constant__ Arguments all) {
  using Shape = Layout<kHeadDim>;
  extern __shared__ __align__(128) std::uint8_t memory[];
  __shared__ std::uint64_t seen_of[kStages];
  let_next_begin();
  const std::uint32_t stages = shared_address(memory);
  const Work work = plan(all, reinterpret_cast<std::int32_t*>(memory + Shape::kStartAt));
  const int block = static_cast<int>(blockIdx.x);
  if (block >= work.blocks) return;
  const int first = work.first_unit(block);
  const int end = work.first_unit(block + 1);

  // What is copied runs ahead of what is computed; of the one after it the place is looked up by then.
  int ahead = first;
  int ahead_index = work.pair_of(first);
  Pair ahead_pair(all, ahead_index);
  Unit next(all, ahead_pair, ahead - work.start[ahead_index], kHeadDim);
  const auto copy_next = [&] {
    if (ahead < end) {
      const int stage = (ahead - first) % kStages;
      copy_unit<kHeadDim>(next, stages + stage * 2 * Shape::kHalfBytes);
      if (threadIdx.x == 0) seen_of[stage] = next.seen;
      if (++ahead < end) {
        if (ahead >= work.start[ahead_index + 1]) {
          ahead_index = work.pair_of(ahead);
          ahead_pair = Pair(all, ahead_index);
        }
        next = Unit(all, ahead_pair, ahead - work.start[ahead_index], kHeadDim);
      }
    }
    commit_copies();
  };

  int index = ahead_index;
  Pair pair = ahead_pair;
  Rows<kHeadDim> rows;
  for (int i = 0; i + 1 < kStages; ++i) copy_next();
  rows.begin(all, pair);
  for (int unit = first; unit < end; ++unit) {
    await_copies<kStages - 2>();
    __syncthreads();
    copy_next();  // where the unit before this one was
    const int stage = (unit - first) % kStages;
    const int within = unit - work.start[index];
    const std::uint32_t keys = stages + stage * 2 * Shape::kHalfBytes;
    rows.add_unit(keys, keys + Shape::kHalfBytes, seen_of[stage], within < pair.pages, within * kPageTokens,
                  all.scale);
    if (unit + 1 < work.start[index + 1] && unit + 1 < end) continue;
    const int from_block = work.block_of(work.start[index]);
    const int to_block = work.block_of(work.start[index + 1] - 1);
    const bool answer = from_block == to_block && tiles_of(pair.rows) == kWarps;
    if (threadIdx.x == 0 && block == from_block)
      all.parts_of[index] = {from_block + index, answer ? 0 : to_block - from_block + 1};
    rows.leave(all, pair, all.parts + std::int64_t{block + index} * floats_of_part(kHeadDim), answer);
    if (unit + 1 == end) break;
    index = work.pair_of(unit + 1);
    pair = Pair(all, index);
    rows.begin(all, pair);
  }
  await_copies<0>();
}

/// A block a row of a pair; grid: (pair, row). A warp has every fourth part.
template <int kHeadDim>
__global__ void __launch_bounds__(kThreads) combine_listed(const __grid_constant__ Arguments all) {
  constexpr int kColumns = kHeadDim / 32;  // of a lane
  constexpr int kPart = floats_of_part(kHeadDim);
  constexpr int kAtOnce = 12;  // parts of a warp whose loads are in flight
  using Columns = Pack<float, kColumns>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int row = static_cast<int>(blockIdx.y);
  const Pair pair(all, static_cast<int>(blockIdx.x));
  if (row >= pair.rows) return;
  const int tiles = tiles_of(pair.rows);
  const int ways = kWarps / tiles;
  await_previous();
  const PartsOf of = all.parts_of[blockIdx.x];
  const int count = of.count * ways;
  if (count == 0) return;
  const auto part_of = [&](int i) { return all.parts + std::int64_t{of.first + i / ways} * kPart; };
  const auto slot_of = [&](int i) { return (i % ways * tiles + row / 16) * 16 + row % 16; };

  // Of this warp's parts. One without a largest score may have a NaN in its total, and keeps it.
  float largest = kNone;
  float total = 0;
  float sum[kColumns] = {};
  const auto join = [&](float its, float its_total, const float* columns) {
    const float among = fmaxf(largest, its);
    const float kept = largest == kNone ? 1.0F : exp2_fast((largest - among) * all.scale);
    const float weight = its == kNone ? 0.0F : exp2_fast((its - among) * all.scale);
    total = total * kept + weight * its_total;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) sum[c] = sum[c] * kept + weight * columns[c];
    largest = among;
  };
  for (int first = warp; first < count; first += kWarps * kAtOnce) {
    // Loads beyond the last part repeat it and count nothing: with conditions they would wait for each other.
    Columns columns[kAtOnce];
    float ends[kAtOnce][2];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = min(first + i * kWarps, count - 1);
      const float* part = part_of(at);
      columns[i] = *reinterpret_cast<const Columns*>(part + slot_of(at) * kHeadDim + lane * kColumns);
      ends[i][0] = part[kRows * kHeadDim + slot_of(at)];
      ends[i][1] = part[kRows * kHeadDim + kRows + slot_of(at)];
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i)
      if (first + i * kWarps < count) join(ends[i][0], ends[i][1], columns[i].values);
  }
  __shared__ float others[kWarps - 1][kColumns + 2][32];
  if (warp > 0) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) others[warp - 1][c][lane] = sum[c];
    others[warp - 1][kColumns][lane] = largest;
    others[warp - 1][kColumns + 1][lane] = total;
  }
  __syncthreads();
  if (warp > 0) return;
#pragma unroll
  for (int other = 0; other < min(kWarps - 1, count - 1); ++other) {
    float columns[kColumns];
#pragma unroll
    for (int c = 0; c < kColumns; ++c) columns[c] = others[other][c][lane];
    join(others[other][kColumns][lane], others[other][kColumns + 1][lane], columns);
  }
  const float factor = 1 / total;
  Pack<__nv_bfloat16, kColumns> answer;
#pragma unroll
  for (int c = 0; c < kColumns; ++c) answer.values[c] = __float2bfloat16_rn(sum[c] * factor);
  *reinterpret_cast<Pack<__nv_bfloat16, kColumns>*>(all.out + pair.place(all, row, all.out_stride, kHeadDim) +
                                                    lane * kColumns) = answer;
}

template <int kHeadDim>
void launch(CudaQueue& queue, Arguments all, std::int32_t tiles, int most_rows) {
  // As many blocks as there is room for at once.
  const auto blocks = static_cast<unsigned>(2 * queue.multiprocessors());
  const std::int32_t a_tile = all.slices * all.kv_heads;
  if (a_tile > kMostPairs)
    throw std::invalid_argument("attention over lists: " + std::to_string(all.kv_heads) +
                                " KV heads, at most " + std::to_string(kMostPairs / all.slices) +
                                " on a GPU");
  const std::int32_t at_once = std::min(tiles, kMostPairs / a_tile);
  const std::size_t pairs_bytes =
      (static_cast<std::size_t>(at_once * a_tile) * sizeof(PartsOf) + 255) / 256 * 256;
  const std::size_t parts = blocks + static_cast<std::size_t>(at_once * a_tile);
  auto* memory = static_cast<std::byte*>(queue.workspace(
      CudaQueue::Workspace::listed_attention,
      pairs_bytes + parts * static_cast<std::size_t>(floats_of_part(kHeadDim)) * sizeof(float)));
  all.parts_of = reinterpret_cast<PartsOf*>(memory);
  all.parts = reinterpret_cast<float*>(memory + pairs_bytes);
  for (all.first_tile = 0; all.first_tile < tiles; all.first_tile += at_once) {
    all.tile_count = std::min(at_once, tiles - all.first_tile);
    launch_kernel(attend_listed<kHeadDim>, {dim3(blocks), kThreads, Layout<kHeadDim>::kBytes}, false,
                  queue.stream(), all);
    launch_early(combine_listed<kHeadDim>,
                 {dim3(static_cast<unsigned>(all.pairs()), static_cast<unsigned>(std::min(kRows, most_rows))),
                  kThreads},
                 queue.stream(), all);
  }
}

}  // namespace
}  // namespace cuda::listed

namespace {

constexpr int kListThreads = kWarpAttentionThreads;

/// For any type, page and head: a warp a query and head.
template <typename T>
__global__ void __launch_bounds__(kListThreads)
    attend_lists(const T* q, std::int64_t q_stride, KvLayer layer, const std::int32_t* keys,
                 const RowKeys* row_keys, const std::int32_t* row_segment, std::int64_t rows, int heads,
                 KvLists lists, float scale, T* out, std::int64_t out_stride) {
  const std::int64_t task = std::int64_t{blockIdx.x} * (kListThreads / 32) + threadIdx.x / 32;
  const std::int64_t row = task / heads;
  if (row >= rows) return;
  const RowKeys mine = row_keys[row];
  if (mine.count == 0) return;
  const auto head = static_cast<int>(task % heads);
  const std::int64_t kv_head = head / (heads / layer.kv_heads);
  const std::int32_t segment = row_segment[row];
  const std::int64_t sequence = lists.of_segment == nullptr ? segment : lists.of_segment[segment];
  const std::int64_t list = sequence * layer.kv_heads + kv_head;
  const std::int64_t listed =
      sequence < 0 ? 0 : max(std::int64_t{0}, min(std::int64_t{lists.counts[list]}, lists.capacity));
  const auto* base = static_cast<const T*>(layer.base);
  const auto in_pages = [&](std::int64_t j) {
    const std::int64_t slot = keys[mine.first + j];
    return base + slot / layer.page_tokens * layer.page_stride +
           (kv_head * layer.page_tokens + slot % layer.page_tokens) * layer.head_dim;
  };
  const auto in_list = [&](const void* of, std::int64_t j) {
    return static_cast<const T*>(of) + (list * lists.capacity + j) * layer.head_dim;
  };
  const auto head_dim = static_cast<int>(layer.head_dim);
  warp_attend(
      q + row * q_stride + head * head_dim, mine.count + listed, head_dim, scale,
      [&](std::int64_t j) { return j < mine.count ? in_pages(j) : in_list(lists.keys, j - mine.count); },
      [&](std::int64_t j) {
        return j < mine.count ? in_pages(j) + layer.value_offset : in_list(lists.values, j - mine.count);
      },
      out + row * out_stride + head * head_dim);
}

void require_aligned(const void* rows, std::int64_t stride, const char* what) {
  if (reinterpret_cast<std::uintptr_t>(rows) % 16 != 0 || stride % 8 != 0)
    throw std::invalid_argument(std::string("attention over lists: ") + what +
                                " do not begin at multiples of 16 bytes");
}

}  // namespace

void cuda::listed_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                            const KvLists& lists, float scale, Matrix out) {
  const cudaStream_t queue = queue_of(stream);
  const CudaPagedPlan& there = plan.cuda();
  const auto heads = static_cast<int>(q.cols / layer.head_dim);
  if (!there.by_pages) {
    check_warp_head(layer.head_dim);
    with_type(q.dtype, [&](auto type) {
      using T = decltype(type);
      attend_lists<T><<<blocks_for(there.rows * heads, kListThreads / 32), kListThreads, 0, queue>>>(
          q.row<T>(0), q.stride, layer, there.keys, there.row_keys, there.row_segment, there.rows, heads,
          lists, scale, out.row<T>(0), out.stride);
    });
    check_launch("listed_attention");
    return;
  }
  require_aligned(q.data, q.stride, "queries");
  require_aligned(out.data, out.stride, "results");
  require_aligned(layer.base, layer.page_stride, "pages");
  require_aligned(layer.base, layer.value_offset, "values of pages");
  require_aligned(lists.keys, 0, "keys of lists");
  require_aligned(lists.values, 0, "values of lists");
  constexpr float kLog2e = 1.44269504F;
  const auto kv_heads = static_cast<std::int32_t>(layer.kv_heads);
  const std::int32_t group = heads / kv_heads;
  const std::int32_t most_rows = there.decode ? group : tile_rows(heads, kv_heads) * group;
  const listed::Arguments all{static_cast<const __nv_bfloat16*>(q.data),
                              q.stride,
                              static_cast<__nv_bfloat16*>(out.data),
                              out.stride,
                              static_cast<const __nv_bfloat16*>(layer.base),
                              layer.page_stride,
                              layer.value_offset,
                              static_cast<const __nv_bfloat16*>(lists.keys),
                              static_cast<const __nv_bfloat16*>(lists.values),
                              lists.counts,
                              lists.capacity,
                              lists.of_segment,
                              there.page_ids,
                              there.live,
                              there.position,
                              there.first_page,
                              there.row_segment,
                              there.decode ? nullptr : there.tiles,
                              0,
                              0,
                              kv_heads,
                              group,
                              (most_rows + listed::kRows - 1) / listed::kRows,
                              scale * kLog2e,
                              nullptr,
                              nullptr};
  const std::int32_t tiles = there.decode ? there.segments : there.tile_count;
  if (layer.head_dim == 64) return listed::launch<64>(stream.cuda_queue(), all, tiles, most_rows);
  listed::launch<128>(stream.cuda_queue(), all, tiles, most_rows);
}

}  // namespace vigil::kernels
