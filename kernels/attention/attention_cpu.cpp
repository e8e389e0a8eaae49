#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/attention/attention_backends.h"
#include "kernels/attention/softmax_cpu.h"
#include "kernels/device/cpu.h"
#include "kernels/linear/onednn.h"
#include "kernels/rope/rope_backends.h"

namespace vigil::kernels {
namespace {

// A tile's scores (rows x keys, f32) and its keys and values have to stay in a core's second-level cache.
constexpr std::int64_t kTileRows = 256;
constexpr std::int64_t kTileKeys = 512;
// Gathered tiles are padded to multiples of these, so that a growing window does not ask oneDNN for a new
// shape at every step.
constexpr std::int64_t kRowPadding = 8;
constexpr std::int64_t kManyRowPadding = 64;
constexpr std::int64_t kKeyPadding = 64;

constexpr std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

constexpr std::int64_t padded(std::int64_t rows) {
  if (rows <= kRowPadding) return rows;
  return round_up(rows, rows <= kManyRowPadding ? kRowPadding : kManyRowPadding);
}

/// The working memory of one thread; grows to the largest tile and stays.
struct Scratch {
  std::vector<std::byte> queries, keys, values, weights;
  std::vector<float> scores, sums, maxima, totals;

  static Scratch& of_this_thread() {
    thread_local Scratch scratch;
    return scratch;
  }
};

/// A matrix in place or gathered.
struct Tile {
  const void* data = nullptr;
  std::int64_t stride = 0;
};

/// The online softmax over the key tiles of one block of query rows:
/// totals = Σ exp(s - max), sums = Σ exp(s - max) v, both rescaled whenever the maximum grows.
class BlockAttention {
 public:
  BlockAttention(Scratch& scratch, DType dtype, std::int64_t rows, std::int64_t head_dim, float scale)
      : scratch_(scratch), dtype_(dtype), rows_(rows), head_dim_(head_dim), scale_(scale) {
    scratch_.sums.resize(static_cast<std::size_t>(rows * head_dim));
    scratch_.maxima.assign(static_cast<std::size_t>(rows), -std::numeric_limits<float>::infinity());
    scratch_.totals.assign(static_cast<std::size_t>(rows), 0.0F);
  }

  /// `visible(row)` is the number of this tile's keys that the row may see.
  template <typename Visible>
  void add_keys(Tile q, Tile k, Tile v, std::int64_t keys, const Visible& visible) {
    scratch_.scores.resize(static_cast<std::size_t>(rows_ * keys));
    scratch_.weights.resize(static_cast<std::size_t>(rows_ * keys) * size_of(dtype_));
    float* scores = scratch_.scores.data();
    onednn::product(key_of(rows_, keys, head_dim_, q.stride, k.stride, keys, dtype_, true, false), q.data,
                    k.data, nullptr, nullptr, scores);
    for (std::int64_t row = 0; row < rows_; ++row) {
      const auto at = static_cast<std::size_t>(row);
      const std::int64_t seen = visible(row);
      float* sums = scratch_.sums.data() + row * head_dim_;
      const float rescale =
          dtype_ == DType::bf16
              ? softmax_bf16(scores + row * keys, seen, keys, scale_, scratch_.maxima[at],
                             scratch_.totals[at],
                             reinterpret_cast<bf16*>(scratch_.weights.data()) + row * keys)
              : softmax_f32(scores + row * keys, seen, keys, scale_, scratch_.maxima[at], scratch_.totals[at],
                            reinterpret_cast<float*>(scratch_.weights.data()) + row * keys);
      if (!first_tile_ && rescale != 1.0F)
        for (std::int64_t j = 0; j < head_dim_; ++j) sums[j] *= rescale;
    }
    onednn::product(key_of(rows_, head_dim_, keys, keys, v.stride, head_dim_, dtype_, false, !first_tile_),
                    scratch_.weights.data(), v.data, nullptr, nullptr, scratch_.sums.data());
    first_tile_ = false;
  }

  /// Writes row `row` of the result.
  void write(std::int64_t row, void* to) const {
    const float* sums = scratch_.sums.data() + row * head_dim_;
    const float inverse = 1.0F / scratch_.totals[static_cast<std::size_t>(row)];
    if (dtype_ == DType::bf16) {
      scale_to_bf16(sums, head_dim_, inverse, static_cast<bf16*>(to));
    } else {
      for (std::int64_t j = 0; j < head_dim_; ++j) static_cast<float*>(to)[j] = sums[j] * inverse;
    }
  }

 private:
  static onednn::ProductKey key_of(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t x_stride,
                                   std::int64_t w_stride, std::int64_t out_stride, DType in, bool transposed,
                                   bool accumulate) {
    return {.m = m,
            .n = n,
            .k = k,
            .x_stride = x_stride,
            .w_stride = w_stride,
            .out_stride = out_stride,
            .multiply_stride = 0,
            .in = in,
            .out = DType::f32,
            .activation = Activation::none,
            .w_transposed = transposed,
            .bias = false,
            .accumulate = accumulate,
            .multiply = false};
  }

  Scratch& scratch_;
  DType dtype_;
  std::int64_t rows_;
  std::int64_t head_dim_;
  float scale_;
  bool first_tile_ = true;
};

std::byte* at(void* base, std::int64_t element, DType dtype) {
  return static_cast<std::byte*>(base) + static_cast<std::size_t>(element) * size_of(dtype);
}

const std::byte* at(const void* base, std::int64_t element, DType dtype) {
  return static_cast<const std::byte*>(base) + static_cast<std::size_t>(element) * size_of(dtype);
}

/// Copies the keys (or, with `value`, the values) of a head from their pages into consecutive rows; the rows
/// up to `padded` become zero.
void gather(const KvLayer& layer, std::span<const std::int32_t> slots, std::int64_t head, bool value,
            std::int64_t padded, std::vector<std::byte>& to) {
  const std::size_t row_bytes = static_cast<std::size_t>(layer.head_dim) * size_of(layer.dtype);
  to.resize(static_cast<std::size_t>(padded) * row_bytes);
  std::byte* next = to.data();
  for (std::size_t i = 0; i < slots.size();) {
    // A run of neighbouring slots within a page is one copy.
    std::size_t run = 1;
    const std::int64_t left_in_page = layer.page_tokens - slots[i] % layer.page_tokens;
    while (i + run < slots.size() && static_cast<std::int64_t>(run) < left_in_page &&
           slots[i + run] == slots[i] + static_cast<std::int32_t>(run))
      ++run;
    const std::int64_t from = layer.offset(slots[i], head) + (value ? layer.value_offset : 0);
    std::memcpy(next, at(layer.base, from, layer.dtype), run * row_bytes);
    next += run * row_bytes;
    i += run;
  }
  std::memset(next, 0, static_cast<std::size_t>(to.data() + to.size() - next));
}

/// One KV head's list of one sequence.
struct List {
  const void* keys = nullptr;
  const void* values = nullptr;
  std::int64_t count = 0;
};

List list_of(const KvLists& lists, const KvLayer& layer, std::int64_t segment, std::int64_t head) {
  const std::int64_t sequence = lists.of_segment != nullptr ? lists.of_segment[segment] : segment;
  if (sequence < 0) return {};
  const std::int64_t list = sequence * layer.kv_heads + head;
  const std::int64_t from = list * lists.capacity * layer.head_dim;
  return {at(lists.keys, from, layer.dtype), at(lists.values, from, layer.dtype),
          std::clamp<std::int64_t>(lists.counts[list], 0, lists.capacity)};
}

struct Task {
  const AttentionSegment* segment;
  std::int64_t head;
  std::int64_t begin, end;  // queries of the segment
  List list;                // which all of them see
};

/// `keys` rows from `first` on: in place, or, where they are not as many as `padded`, copied with zeros
/// behind.
const void* rows_of_list(const void* list, std::int64_t first, std::int64_t keys, std::int64_t padded,
                         const KvLayer& layer, std::vector<std::byte>& copy) {
  const std::byte* from = at(list, first * layer.head_dim, layer.dtype);
  if (keys == padded) return from;
  const std::size_t row_bytes = static_cast<std::size_t>(layer.head_dim) * size_of(layer.dtype);
  copy.assign(static_cast<std::size_t>(padded) * row_bytes, std::byte{});
  std::memcpy(copy.data(), from, static_cast<std::size_t>(keys) * row_bytes);
  return copy.data();
}

void attend(const Task& task, ConstMatrix q, const KvLayer& layer, std::int64_t group, float scale,
            Matrix out) {
  Scratch& scratch = Scratch::of_this_thread();
  const AttentionSegment& segment = *task.segment;
  const std::int64_t head_dim = layer.head_dim;
  const std::size_t head_bytes = static_cast<std::size_t>(head_dim) * size_of(layer.dtype);

  // All heads that share these keys ask together: row r is query begin + r / group, head r % group of the
  // group.
  const std::int64_t rows = (task.end - task.begin) * group;
  const std::int64_t padded_rows = padded(rows);
  scratch.queries.resize(static_cast<std::size_t>(padded_rows) * head_bytes);
  for (std::int64_t i = task.begin; i < task.end; ++i) {
    const std::byte* from =
        at(q.data, (segment.first_row + i) * q.stride + task.head * group * head_dim, q.dtype);
    std::memcpy(scratch.queries.data() + static_cast<std::size_t>((i - task.begin) * group) * head_bytes,
                from, static_cast<std::size_t>(group) * head_bytes);
  }
  std::memset(scratch.queries.data() + static_cast<std::size_t>(rows) * head_bytes, 0,
              static_cast<std::size_t>(padded_rows - rows) * head_bytes);

  BlockAttention block(scratch, layer.dtype, padded_rows, head_dim, scale);
  const std::int64_t seen_by_last = segment.own[static_cast<std::size_t>(task.end - 1)] + 1;
  for (std::int64_t first = 0; first < seen_by_last; first += kTileKeys) {
    const std::int64_t keys = std::min(kTileKeys, seen_by_last - first);
    const std::int64_t padded_keys = round_up(keys, kKeyPadding);
    const auto slots = segment.keys.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(keys));
    gather(layer, slots, task.head, false, padded_keys, scratch.keys);
    gather(layer, slots, task.head, true, padded_keys, scratch.values);
    block.add_keys({scratch.queries.data(), head_dim}, {scratch.keys.data(), head_dim},
                   {scratch.values.data(), head_dim}, padded_keys, [&](std::int64_t row) -> std::int64_t {
                     if (row >= rows) return 0;
                     const std::int64_t own = segment.own[static_cast<std::size_t>(task.begin + row / group)];
                     return std::clamp<std::int64_t>(own + 1 - first, 0, keys);
                   });
  }
  for (std::int64_t first = 0; first < task.list.count; first += kTileKeys) {
    const std::int64_t keys = std::min(kTileKeys, task.list.count - first);
    const std::int64_t padded_keys = round_up(keys, kKeyPadding);
    block.add_keys(
        {scratch.queries.data(), head_dim},
        {rows_of_list(task.list.keys, first, keys, padded_keys, layer, scratch.keys), head_dim},
        {rows_of_list(task.list.values, first, keys, padded_keys, layer, scratch.values), head_dim},
        padded_keys, [&](std::int64_t row) -> std::int64_t { return row < rows ? keys : 0; });
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t i = segment.first_row + task.begin + row / group;
    block.write(row, at(out.data, i * out.stride + (task.head * group + row % group) * head_dim, out.dtype));
  }
}

/// What queries see in both directions.
struct Rows {
  ConstMatrix k, v;
};

Rows rows_of(const PictureKeys& picture, std::int64_t layer, DType dtype, std::int64_t cols) {
  const void* keys = at(static_cast<const void*>(picture.base), layer * picture.layer_stride, dtype);
  return {dense(keys, dtype, picture.rows, cols),
          dense(at(keys, picture.rows * cols, dtype), dtype, picture.rows, cols)};
}

/// Queries [begin, end) of one head.
struct RowTask {
  Rows seen;
  std::int64_t head, begin, end;
};

void add_tasks(const Rows& seen, std::int64_t first, std::int64_t last, std::int64_t heads,
               std::vector<RowTask>& tasks) {
  for (std::int64_t begin = first; begin < last; begin += kTileRows)
    for (std::int64_t head = 0; head < heads; ++head)
      tasks.push_back({seen, head, begin, std::min(begin + kTileRows, last)});
}

void attend(Stream& stream, const std::vector<RowTask>& tasks, ConstMatrix q, std::int64_t head_dim,
            float scale, Matrix out) {
  parallel_for(stream, static_cast<std::int64_t>(tasks.size()), [&](std::int64_t i) {
    const RowTask& task = tasks[static_cast<std::size_t>(i)];
    const ConstMatrix &k = task.seen.k, &v = task.seen.v;
    const std::int64_t column = task.head * head_dim;
    const std::int64_t rows = task.end - task.begin;
    BlockAttention block(Scratch::of_this_thread(), q.dtype, rows, head_dim, scale);
    for (std::int64_t first = 0; first < k.rows; first += kTileKeys) {
      const std::int64_t keys = std::min(kTileKeys, k.rows - first);
      block.add_keys({at(q.data, task.begin * q.stride + column, q.dtype), q.stride},
                     {at(k.data, first * k.stride + column, k.dtype), k.stride},
                     {at(v.data, first * v.stride + column, v.dtype), v.stride}, keys,
                     [keys](std::int64_t) { return keys; });
    }
    for (std::int64_t row = 0; row < rows; ++row)
      block.write(row, at(out.data, (task.begin + row) * out.stride + column, out.dtype));
  });
}

/// `lists` may be none.
void attend_pages(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                  const KvLists* lists, float scale, Matrix out) {
  const std::int64_t group = q.cols / (layer.kv_heads * layer.head_dim);
  const std::int64_t block = std::max<std::int64_t>(1, kTileRows / group);
  std::vector<Task> tasks;
  for (std::size_t s = 0; s < plan.segments().size(); ++s) {
    const AttentionSegment& segment = plan.segments()[s];
    const auto queries = static_cast<std::int64_t>(segment.own.size());
    // The last queries see the most keys: started first, they do not end alone.
    for (std::int64_t begin = (queries - 1) / block * block; begin >= 0 && queries > 0; begin -= block)
      for (std::int64_t head = 0; head < layer.kv_heads; ++head)
        tasks.push_back(
            {&segment, head, begin, std::min(begin + block, queries),
             lists != nullptr ? list_of(*lists, layer, static_cast<std::int64_t>(s), head) : List{}});
  }
  parallel_for(stream, static_cast<std::int64_t>(tasks.size()), [&](std::int64_t i) {
    attend(tasks[static_cast<std::size_t>(i)], q, layer, group, scale, out);
  });
}

}  // namespace

void cpu::paged_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                          float scale, Matrix out) {
  attend_pages(stream, q, layer, plan, nullptr, scale, out);
}

void cpu::listed_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                           const KvLists& lists, float scale, Matrix out) {
  attend_pages(stream, q, layer, plan, &lists, scale, out);
}

void cpu::store_rotated(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos, const float* sin,
                        const PagedPlan& plan, const KvLayer& layer) {
  cpu::rope(stream, q, layer.head_dim, cos, sin);
  cpu::rope(stream, k, layer.head_dim, cos, sin);
  const std::span<const std::int32_t> slots = plan.slots();
  const std::size_t head_bytes = static_cast<std::size_t>(layer.head_dim) * size_of(layer.dtype);
  parallel_blocks(stream, k.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int32_t slot = slots[static_cast<std::size_t>(i)];
      if (slot < 0) continue;
      for (std::int64_t head = 0; head < layer.kv_heads; ++head) {
        const std::int64_t to = layer.offset(slot, head);
        const std::int64_t column = head * layer.head_dim;
        std::memcpy(at(layer.base, to, layer.dtype), at(k.data, i * k.stride + column, k.dtype), head_bytes);
        std::memcpy(at(layer.base, to + layer.value_offset, layer.dtype),
                    at(v.data, i * v.stride + column, v.dtype), head_bytes);
      }
    }
  });
}

void cpu::segment_attention(Stream& stream, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                            const SegmentPlan& plan, std::int64_t head_dim, float scale, Matrix out) {
  const std::span<const std::int32_t> bounds = plan.bounds();
  std::vector<RowTask> tasks;
  for (std::size_t s = 0; s + 1 < bounds.size(); ++s) {
    const std::int64_t rows = bounds[s + 1] - bounds[s];
    add_tasks({k.rows_from(bounds[s], rows), v.rows_from(bounds[s], rows)}, bounds[s], bounds[s + 1],
              q.cols / head_dim, tasks);
  }
  attend(stream, tasks, q, head_dim, scale, out);
}

void cpu::store_keys(Stream& stream, ConstMatrix k, ConstMatrix v, const PicturePlan& plan,
                     std::int64_t layer) {
  const std::size_t bytes = static_cast<std::size_t>(k.cols) * size_of(k.dtype);
  for (std::size_t p = 0; p < plan.pictures().size(); ++p) {
    const Rows of_layer = rows_of(plan.pictures()[p], layer, k.dtype, k.cols);
    const std::int32_t first = plan.bounds()[p], last = plan.bounds()[p + 1];
    parallel_blocks(stream, last - first, 256, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = first + begin; i < first + end; ++i) {
        const std::int64_t to = plan.places()[static_cast<std::size_t>(i)] * k.cols;
        std::memcpy(at(const_cast<void*>(of_layer.k.data), to, k.dtype), at(k.data, i * k.stride, k.dtype),
                    bytes);
        std::memcpy(at(const_cast<void*>(of_layer.v.data), to, k.dtype), at(v.data, i * v.stride, k.dtype),
                    bytes);
      }
    });
  }
}

void cpu::picture_attention(Stream& stream, ConstMatrix q, const PicturePlan& plan, std::int64_t layer,
                            std::int64_t head_dim, float scale, Matrix out) {
  std::vector<RowTask> tasks;
  for (std::size_t p = 0; p < plan.pictures().size(); ++p)
    add_tasks(rows_of(plan.pictures()[p], layer, q.dtype, q.cols), plan.bounds()[p], plan.bounds()[p + 1],
              q.cols / head_dim, tasks);
  attend(stream, tasks, q, head_dim, scale, out);
}

void cpu::rotated_segment_attention(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos,
                                    const float* sin, const SegmentPlan& plan, std::int64_t head_dim,
                                    float scale, Matrix out) {
  cpu::rope(stream, q, head_dim, cos, sin);
  cpu::rope(stream, k, head_dim, cos, sin);
  cpu::segment_attention(stream, q, k, v, plan, head_dim, scale, out);
}

}  // namespace vigil::kernels
