// From one pool to another: the pages of views that go on elsewhere.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/kv/page_pool.h"
#include "engine/kv/view.h"

namespace vigil::kv {

/// A page whose contents are to be copied from one pool into another.
struct PageCopy {
  PagePool::PageId from = 0;
  PagePool::PageId to = 0;
};

/// What became of pages that several views of one pool share, in another pool of the same layout: they share
/// them there, too. Holds a reference to each; the pool has to outlive it. Not thread-safe.
class Handover {
 public:
  explicit Handover(PagePool& to) : to_(&to) {}
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  /// A view of the same tokens in the other pool; the pages whose contents are still to be copied are
  /// appended to `copies`. `view` stays as it is, and has to hold its pages as long as other views that share
  /// them may come here. Absent, and nothing changes, if the other pool has no room.
  std::optional<View> take(const View& view, std::vector<PageCopy>& copies);

 private:
  PagePool* to_;
  std::map<PagePool::PageId, PagePool::PageId> shared_;
};

}  // namespace vigil::kv
