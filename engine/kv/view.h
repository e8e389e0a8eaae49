// A view on pages: the live tokens of one sequence, in stream order.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/kv/page_pool.h"

namespace vigil::kv {

/// The live tokens of a window, a rule or a prompt. It appends at the back, forgets at the front, and can be
/// forked: forks share what was there and go on in pages of their own. Holds references to its pages; the
/// pool has to outlive it. Move-only, not thread-safe.
class View {
 public:
  explicit View(PagePool& pool) : pool_(&pool) {}
  ~View() { clear(); }
  View(View&& other) noexcept;
  View& operator=(View&& other) noexcept;
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  /// The slots of the live tokens, oldest first. Valid until the view changes.
  std::span<const std::int32_t> slots() const { return slots_; }
  std::int64_t size() const { return static_cast<std::int64_t>(slots_.size()); }

  /// Adds `count` tokens whose keys and values are still to be written. False, and nothing changes, if the
  /// pool has no room.
  bool append(std::int64_t count);
  /// Forgets all but the oldest `count` tokens. Pages that are left empty go back.
  void truncate(std::int64_t count);
  /// Forgets the oldest `count` tokens. Nothing moves; pages that are left empty go back.
  void drop_front(std::int64_t count);
  /// A second view on the same tokens. What either appends later, the other does not see.
  View fork();
  void clear();

 private:
  friend class Handover;
  struct Part {
    PagePool::PageId page;
    /// Live tokens in this page, and whether this view alone may fill the rest of it.
    std::int32_t begin, end;
    bool own;
  };

  PagePool* pool_;
  std::deque<Part> parts_;
  std::vector<std::int32_t> slots_;
};

}  // namespace vigil::kv
