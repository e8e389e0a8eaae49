#include "kernels/attention/plans_cuda.h"

#include <algorithm>
#include <vector>

#include "kernels/attention/attention_backends.h"
#include "kernels/attention/decode_attention_cuda.h"
#include "kernels/device/slow_path.h"

namespace vigil::kernels {
namespace {

constexpr std::int32_t kPageTokens = 64;

/// Whether the kernels for pages of 64 tokens can take the shape.
bool fits_pages(const PagedPlan& plan) {
  constexpr std::int64_t kMostGroup = 128;
  static SlowPath type{"paged_attention", "keys are f32: on matrix units are bf16 ones only; a warp a query"};
  static SlowPath page{"paged_attention", "pages are not of 64 tokens; a warp a query"};
  static SlowPath head{"paged_attention", "heads are not of 64 or 128 elements; a warp a query"};
  static SlowPath group{"paged_attention", "more than 128 query heads share a key head; a warp a query"};
  const KvLayer& shape = plan.shape();
  SlowPath* const slow = shape.dtype != DType::bf16                      ? &type
                         : shape.page_tokens != kPageTokens              ? &page
                         : shape.head_dim != 64 && shape.head_dim != 128 ? &head
                         : plan.heads() / shape.kv_heads > kMostGroup    ? &group
                                                                         : nullptr;
  if (slow != nullptr) slow->taken();
  return slow == nullptr;
}

/// Whether the kernel for one query a segment can take the pass, each in a row of its own from the first on.
bool fits_decode(const PagedPlan& plan) {
  const auto segments = plan.segments();
  if (plan.rows() != static_cast<std::int64_t>(segments.size()) ||
      !std::all_of(segments.begin(), segments.end(),
                   [](const AttentionSegment& segment) { return segment.own.size() == 1; }))
    return false;
  static SlowPath slow{
      "paged_attention",
      "one query a segment, but of more than 16 heads a key head, or 1,024 segments: tiles that stay empty"};
  const bool fits =
      plan.heads() / plan.shape().kv_heads <= cuda::kDecodeGroup && segments.size() <= cuda::kDecodeSequences;
  if (!fits) slow.taken();
  return fits;
}

/// Whether values count up by one.
bool consecutive(std::span<const std::int32_t> values) {
  int differences = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    differences |= values[i] - values[0] - static_cast<std::int32_t>(i);
  return differences == 0;
}

/// The keys of segments as pages: a page again for every run of ascending slots in it.
struct PageLists {
  std::vector<std::int32_t> ids;
  std::vector<std::uint64_t> live;

  /// Adds a segment's keys; `position[i]` becomes the place of key `own[i]` in its list.
  void add(std::span<const std::int32_t> keys, std::span<const std::int32_t> own,
           std::span<std::int32_t> position) {
    const auto first = static_cast<std::int32_t>(ids.size());
    std::int32_t before = -1;
    std::size_t asked = 0;
    for (std::size_t j = 0; j < keys.size();) {
      const std::int32_t page = keys[j] / kPageTokens;
      const std::int32_t within = keys[j] % kPageTokens;
      if (before < 0 || page != ids.back() || keys[j] <= before) {
        ids.push_back(page);
        live.push_back(0);
      }
      // To the end of the page at once, where nothing is missing.
      std::size_t run = std::min(keys.size() - j, static_cast<std::size_t>(kPageTokens - within));
      if (!consecutive(keys.subspan(j, run))) run = 1;
      live.back() |= (~std::uint64_t{0} >> (64U - run)) << static_cast<unsigned>(within);
      const std::int32_t place = (static_cast<std::int32_t>(ids.size()) - 1 - first) * kPageTokens + within -
                                 static_cast<std::int32_t>(j);
      for (; asked < own.size() && static_cast<std::size_t>(own[asked]) < j + run; ++asked)
        position[asked] = place + own[asked];
      j += run;
      before = keys[j - 1];
    }
  }
};

/// What a plan's arrays hold, on the host.
struct Lists {
  PageLists pages;
  std::vector<std::int32_t> position, first_page, row_segment;
  std::vector<cuda::QueryTile> tiles;
  std::vector<std::int32_t> keys;
  std::vector<RowKeys> row_keys;
};

void by_pages(const PagedPlan& plan, CudaPagedPlan& to, Lists& lists) {
  const auto segments = plan.segments();
  to.decode = fits_decode(plan);
  const auto most_rows = static_cast<std::size_t>(
      cuda::tile_rows(static_cast<int>(plan.heads()), static_cast<int>(plan.shape().kv_heads)));

  lists.position.assign(static_cast<std::size_t>(plan.rows()), -1);
  lists.first_page.assign(static_cast<std::size_t>(plan.rows()), 0);
  for (const AttentionSegment& segment : segments) {
    const auto first = static_cast<std::int32_t>(lists.pages.ids.size());
    const auto row = static_cast<std::size_t>(segment.first_row);
    const std::size_t count = segment.own.size();
    lists.pages.add(segment.keys, segment.own, std::span(lists.position).subspan(row, count));
    std::fill_n(lists.first_page.begin() + segment.first_row, count, first);
    for (std::size_t begin = 0; begin < count && !to.decode; begin += most_rows) {
      const std::size_t rows = std::min(most_rows, count - begin);
      lists.tiles.push_back({static_cast<std::int32_t>(row + begin), static_cast<std::int32_t>(rows), first,
                             lists.position[row + begin + rows - 1] / kPageTokens + 1});
    }
  }
  std::stable_sort(lists.tiles.begin(), lists.tiles.end(),
                   [](const cuda::QueryTile& a, const cuda::QueryTile& b) { return a.pages > b.pages; });
  to.segments = static_cast<std::int32_t>(segments.size());
  to.tile_count = static_cast<std::int32_t>(lists.tiles.size());
}

void by_keys(const PagedPlan& plan, Lists& lists) {
  lists.row_keys.assign(static_cast<std::size_t>(plan.rows()), RowKeys{0, 0});
  for (const AttentionSegment& segment : plan.segments()) {
    const auto first = static_cast<std::int64_t>(lists.keys.size());
    lists.keys.insert(lists.keys.end(), segment.keys.begin(), segment.keys.end());
    for (std::size_t i = 0; i < segment.own.size(); ++i)
      lists.row_keys[static_cast<std::size_t>(segment.first_row) + i] = {first, segment.own[i] + 1};
  }
}

template <typename T>
std::span<const T> all(const std::vector<T>& values) {
  return values;
}

}  // namespace

void cuda::lay_out(const Stream& stream, const PagedPlan& plan, CudaPagedPlan& to) {
  to.rows = plan.rows();
  to.by_pages = fits_pages(plan);
  to.decode = false;
  Lists lists;
  lists.row_segment.assign(static_cast<std::size_t>(plan.rows()), -1);
  for (std::size_t s = 0; s < plan.segments().size(); ++s)
    std::fill_n(lists.row_segment.begin() + plan.segments()[s].first_row, plan.segments()[s].own.size(),
                static_cast<std::int32_t>(s));
  if (to.by_pages) {
    by_pages(plan, to, lists);
  } else {
    by_keys(plan, lists);
  }
  DeviceTable& table = to.table;
  table.clear();
  table.add(plan.slots());
  table.add(all(lists.position));
  table.add(all(lists.first_page));
  table.add(all(lists.pages.ids));
  table.add(all(lists.pages.live));
  table.add(all(lists.tiles));
  table.add(all(lists.keys));
  table.add(all(lists.row_keys));
  table.add(all(lists.row_segment));
  table.send(stream);
  to.slots = table.at<std::int32_t>(0);
  to.position = table.at<std::int32_t>(1);
  to.first_page = table.at<std::int32_t>(2);
  to.page_ids = table.at<std::int32_t>(3);
  to.live = table.at<std::uint64_t>(4);
  to.tiles = table.at<QueryTile>(5);
  to.keys = table.at<std::int32_t>(6);
  to.row_keys = table.at<RowKeys>(7);
  to.row_segment = table.at<std::int32_t>(8);
}

std::shared_ptr<CudaPagedPlan> cuda::paged_plan() {
  return std::make_shared<CudaPagedPlan>();
}

std::shared_ptr<const CudaSegmentPlan> cuda::segment_plan(const Stream& stream, const SegmentPlan& plan) {
  std::vector<SegmentTile> tiles;
  auto made = std::make_shared<CudaSegmentPlan>();
  const auto bounds = plan.bounds();
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    made->longest = std::max<std::int64_t>(made->longest, bounds[i + 1] - bounds[i]);
    for (std::int32_t row = bounds[i]; row < bounds[i + 1]; row += kSegmentTileRows)
      tiles.push_back({bounds[i], bounds[i + 1], row, bounds[i + 1]});
  }
  made->tiles = static_cast<std::int64_t>(tiles.size());
  made->tile.assign(stream, tiles);
  return made;
}

std::shared_ptr<const CudaPicturePlan> cuda::picture_plan(const Stream& stream, const PicturePlan& plan) {
  std::vector<SegmentTile> tiles;
  std::vector<std::int32_t> owners;
  const auto bounds = plan.bounds();
  for (std::size_t p = 0; p < plan.pictures().size(); ++p) {
    const auto picture = static_cast<std::int32_t>(p);
    owners.insert(owners.end(), static_cast<std::size_t>(bounds[p + 1] - bounds[p]), picture);
    for (std::int32_t row = bounds[p]; row < bounds[p + 1]; row += kSegmentTileRows)
      tiles.push_back({0, static_cast<std::int32_t>(plan.pictures()[p].rows), row, bounds[p + 1], picture});
  }
  auto made = std::make_shared<CudaPicturePlan>();
  made->tile_count = static_cast<std::int64_t>(tiles.size());
  made->table.add(plan.pictures());
  made->table.add(std::span<const SegmentTile>(tiles));
  made->table.add(std::span<const std::int32_t>(owners));
  made->table.add(plan.places());
  made->table.send(stream);
  return made;
}

}  // namespace vigil::kernels
