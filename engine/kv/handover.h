// From one book to another: the pages of views that go on elsewhere.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "engine/kv/book.h"
#include "engine/kv/view.h"

namespace vigil::kv {

/// What became of pages that several views of one book share, in another book of pages of the same size: they
/// share them there, too. Holds a reference to each; the book has to outlive it. Not thread-safe.
class Handover {
 public:
  explicit Handover(Book& to) : to_(&to) {}
  ~Handover();
  Handover(const Handover&) = delete;
  Handover& operator=(const Handover&) = delete;

  /// A view of the same tokens in the other book; the pages whose contents are still to be copied are
  /// appended to `copies`. `view` stays as it is, and has to hold its pages as long as other views that share
  /// them may come here. Absent, and nothing changes, if the other book has no room.
  std::optional<View> take(const View& view, std::vector<PageCopy>& copies);

 private:
  Book* to_;
  std::map<PageId, PageId> shared_;
};

}  // namespace vigil::kv
