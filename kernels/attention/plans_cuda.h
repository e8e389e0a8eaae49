// What the GPU needs to know of a pass: PagedPlan and SegmentPlan as arrays in its memory.
#pragma once

#include <cstdint>

#include "kernels/attention/attention.h"
#include "kernels/attention/indexed_attention_cuda.h"
#include "kernels/attention/picture_attention.h"
#include "kernels/device/buffer.h"
#include "kernels/device/device_table.h"

namespace vigil::kernels {

/// Where one query's keys are: `keys[first .. first + count)`; none for a row of no segment.
struct RowKeys {
  std::int64_t first;
  std::int64_t count;
};

/// Either `by_pages` (bf16 on matrix units) or `keys` and `row_keys` (anything). Its arrays lie in `table`.
struct CudaPagedPlan {
  DeviceTable table;
  std::int64_t rows = 0;
  bool by_pages = false;
  /// Every segment asks with one token: `decode_attention` takes it.
  bool decode = false;
  std::int32_t segments = 0;
  /// The pages of all segments' lists, one segment after the other, and each page's live keys.
  const std::int32_t* page_ids = nullptr;
  const std::uint64_t* live = nullptr;
  /// Of each row of the plan: the place of its key in its segment's list, 64 a page.
  const std::int32_t* position = nullptr;
  /// decode: where each row's list begins.
  const std::int32_t* first_page = nullptr;
  /// not decode: longest first.
  const cuda::QueryTile* tiles = nullptr;
  std::int32_t tile_count = 0;
  /// Each row's segment, as the plan counts them; -1 for a row of none.
  const std::int32_t* row_segment = nullptr;
  /// Each row's own slot, -1 for a row of no segment.
  const std::int32_t* slots = nullptr;
  /// The slots of all segments' keys, one segment after the other.
  const std::int32_t* keys = nullptr;
  const RowKeys* row_keys = nullptr;
};

/// Queries: rows [row, row + kSegmentTileRows) up to row_end. They see the rows [begin, end) of the pass, or
/// those of a picture.
struct SegmentTile {
  std::int32_t begin, end, row, row_end;
  std::int32_t picture = 0;
};

constexpr std::int32_t kSegmentTileRows = 64;

struct CudaSegmentPlan {
  std::int64_t tiles = 0;
  /// Rows of the longest segment.
  std::int64_t longest = 0;
  DeviceArray<SegmentTile> tile;
};

/// Its arrays lie in `table`.
struct CudaPicturePlan {
  DeviceTable table;
  std::int64_t tile_count = 0;

  const PictureKeys* pictures() const { return table.at<PictureKeys>(0); }
  const SegmentTile* tiles() const { return table.at<SegmentTile>(1); }
  /// Of each row the picture, and its place there.
  const std::int32_t* owners() const { return table.at<std::int32_t>(2); }
  const std::int32_t* places() const { return table.at<std::int32_t>(3); }
};

}  // namespace vigil::kernels
