#include "kernels/attention/plans_cuda.h"

#include <algorithm>
#include <vector>

#include "kernels/attention/attention_backends.h"
#include "kernels/attention/decode_attention_cuda.h"

namespace vigil::kernels {
namespace {

constexpr std::int32_t kPageTokens = 64;

/// Whether the kernels for pages of 64 tokens can take the shape.
bool fits_pages(const PagedPlan& plan) {
  const KvLayer& shape = plan.shape();
  constexpr std::int64_t kMostGroup = 128;
  return shape.dtype == DType::bf16 && shape.page_tokens == kPageTokens &&
         (shape.head_dim == 64 || shape.head_dim == 128) && plan.heads() / shape.kv_heads <= kMostGroup;
}

/// The keys of segments as pages: a page again for every run of ascending slots in it.
struct PageLists {
  std::vector<std::int32_t> ids;
  std::vector<std::uint64_t> live;

  /// Adds a segment's keys; `place[j]` becomes the place of key j in its list.
  void add(std::span<const std::int32_t> keys, std::vector<std::int32_t>& place) {
    place.resize(keys.size());
    const auto first = static_cast<std::int32_t>(ids.size());
    std::int32_t before = -1;
    for (std::size_t j = 0; j < keys.size(); ++j) {
      const std::int32_t page = keys[j] / kPageTokens;
      const std::int32_t within = keys[j] % kPageTokens;
      if (before < 0 || page != ids.back() || keys[j] <= before) {
        ids.push_back(page);
        live.push_back(0);
      }
      live.back() |= std::uint64_t{1} << static_cast<unsigned>(within);
      place[j] = (static_cast<std::int32_t>(ids.size()) - 1 - first) * kPageTokens + within;
      before = keys[j];
    }
  }
};

void by_pages(const Stream& stream, const PagedPlan& plan, CudaPagedPlan& to) {
  const auto segments = plan.segments();
  const std::int64_t group = plan.heads() / plan.shape().kv_heads;
  // One query a segment, each in a row of its own from the first on.
  to.decode = group <= cuda::kDecodeGroup && segments.size() <= cuda::kDecodeSequences &&
              plan.rows() == static_cast<std::int64_t>(segments.size()) &&
              std::all_of(segments.begin(), segments.end(),
                          [](const AttentionSegment& segment) { return segment.own.size() == 1; });
  const auto most_rows = static_cast<std::size_t>(
      cuda::tile_rows(static_cast<int>(plan.heads()), static_cast<int>(plan.shape().kv_heads)));

  PageLists lists;
  std::vector<std::int32_t> place;
  std::vector<std::int32_t> position(static_cast<std::size_t>(plan.rows()), -1);
  std::vector<std::int32_t> first_page(static_cast<std::size_t>(plan.rows()), 0);
  std::vector<cuda::QueryTile> tiles;
  for (const AttentionSegment& segment : segments) {
    const auto first = static_cast<std::int32_t>(lists.ids.size());
    lists.add(segment.keys, place);
    const auto row = static_cast<std::size_t>(segment.first_row);
    for (std::size_t i = 0; i < segment.own.size(); ++i) {
      position[row + i] = place[static_cast<std::size_t>(segment.own[i])];
      first_page[row + i] = first;
    }
    for (std::size_t begin = 0; begin < segment.own.size(); begin += most_rows) {
      const std::size_t rows = std::min(most_rows, segment.own.size() - begin);
      tiles.push_back({static_cast<std::int32_t>(row + begin), static_cast<std::int32_t>(rows), first,
                       position[row + begin + rows - 1] / kPageTokens + 1});
    }
  }
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const cuda::QueryTile& a, const cuda::QueryTile& b) { return a.pages > b.pages; });
  to.segments = static_cast<std::int32_t>(segments.size());
  to.page_ids.assign(stream, lists.ids);
  to.live.assign(stream, lists.live);
  to.position.assign(stream, position);
  if (to.decode) {
    to.first_page.assign(stream, first_page);
  } else {
    to.tiles.assign(stream, tiles);
    to.tile_count = static_cast<std::int32_t>(tiles.size());
  }
}

void by_keys(const Stream& stream, const PagedPlan& plan, CudaPagedPlan& to) {
  std::vector<std::int32_t> keys;
  std::vector<RowKeys> row_keys(static_cast<std::size_t>(plan.rows()), RowKeys{0, 0});
  for (const AttentionSegment& segment : plan.segments()) {
    const auto first = static_cast<std::int64_t>(keys.size());
    keys.insert(keys.end(), segment.keys.begin(), segment.keys.end());
    for (std::size_t i = 0; i < segment.own.size(); ++i)
      row_keys[static_cast<std::size_t>(segment.first_row) + i] = {first, segment.own[i] + 1};
  }
  to.keys.assign(stream, keys);
  to.row_keys.assign(stream, row_keys);
}

}  // namespace

std::shared_ptr<const CudaPagedPlan> cuda::paged_plan(const Stream& stream, const PagedPlan& plan) {
  auto made = std::make_shared<CudaPagedPlan>();
  made->rows = plan.rows();
  made->slots.assign(stream, plan.slots());
  made->by_pages = fits_pages(plan);
  if (made->by_pages) {
    by_pages(stream, plan, *made);
  } else {
    by_keys(stream, plan, *made);
  }
  return made;
}

std::shared_ptr<const CudaSegmentPlan> cuda::segment_plan(const Stream& stream, const SegmentPlan& plan) {
  std::vector<SegmentTile> tiles;
  const auto bounds = plan.bounds();
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i)
    for (std::int32_t row = bounds[i]; row < bounds[i + 1]; row += kSegmentTileRows)
      tiles.push_back({bounds[i], bounds[i + 1], row});
  auto made = std::make_shared<CudaSegmentPlan>();
  made->tiles = static_cast<std::int64_t>(tiles.size());
  made->tile.assign(stream, tiles);
  return made;
}

}  // namespace vigil::kernels
