// A view on pages: tokens of one sequence, in stream order.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "engine/kv/book.h"

namespace vigil::kv {

/// A page whose contents are to be copied to another one, of the same store or of another's.
struct PageCopy {
  PageId from = 0;
  PageId to = 0;
  friend bool operator==(const PageCopy&, const PageCopy&) = default;
};

/// Some tokens of a view, counted from its first.
struct TokenRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
  friend bool operator==(const TokenRange&, const TokenRange&) = default;
};

/// The live tokens of a stream, a window, a question or a prompt. It appends at the back, forgets at the
/// front, shows what others have, and lets others see what it has. Holds references to its pages; the book
/// has to outlive it. Move-only, not thread-safe.
///
/// Whoever appends to a page goes on there alone: who sees a part of the page, sees no more of it. Tokens
/// that are computed anew keep their slots as long as nobody else sees them (`own`).
class View {
 public:
  explicit View(Book& book) : book_(&book) {}
  ~View() { clear(); }
  View(View&& other) noexcept;
  View& operator=(View&& other) noexcept;
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  /// The slots of the live tokens, oldest first. Valid until the view changes.
  std::span<const std::int32_t> slots() const { return slots_; }
  std::int64_t size() const { return static_cast<std::int64_t>(slots_.size()); }

  /// Adds `count` tokens whose keys and values are still to be written. False, and nothing changes, if the
  /// book has no page for them.
  bool append(std::int64_t count);
  /// The same with pages of a claim. Throws std::logic_error if it has too few.
  void append(std::int64_t count, Book::Claim& claim);
  /// Pages that appending `count` tokens would take.
  std::int64_t pages_to_append(std::int64_t count) const;

  /// Adds the tokens [first, first + count) of another view of this book, which has them, too, from then on.
  void extend(const View& other, std::int64_t first, std::int64_t count);
  /// A second view on some tokens.
  View part(std::int64_t first, std::int64_t count) const;
  /// A second view on all tokens.
  View fork() const;

  /// Gives the tokens of these ranges, which ascend and do not overlap, slots that nobody else sees, so that
  /// they may be written anew. Pages that hold other tokens of this view, too, are to be copied: they are
  /// appended to `copies`. Throws std::logic_error if the claim has too few pages.
  void own(std::span<const TokenRange> ranges, Book::Claim& claim, std::vector<PageCopy>& copies);
  /// Pages that `own` would take.
  std::int64_t pages_to_own(std::span<const TokenRange> ranges) const;

  /// Pages that it has a part of.
  std::int64_t pages() const { return static_cast<std::int64_t>(parts_.size()); }
  /// Pages that nobody else has.
  std::int64_t own_pages() const;

  /// Forgets the oldest `count` tokens. Nothing moves; pages that are left empty go back.
  void drop_front(std::int64_t count);
  /// Forgets the newest `count` tokens, which it has appended itself: what follows takes their slots. Pages
  /// that are left empty go back to the claim. Throws std::logic_error, and nothing changes, for tokens that
  /// it does not have, or of pages that it does not fill or others see, and for a claim of another book.
  void drop_back(std::int64_t count, Book::Claim& claim);
  void clear();

 private:
  friend class Handover;
  friend struct CarriedView;
  struct Part {
    PageId page;
    /// Live tokens in this page, and whether this view may fill the rest of it.
    std::int32_t begin, end;
    bool fills;
  };

  std::int64_t room_in_last() const;
  /// Calls visit(part, first token, tokens of it in the ranges) for each part that others see, too, and of
  /// which there is any.
  template <typename Parts, typename Visit>
  static void visit_shared(Parts& parts, const Book& book, std::span<const TokenRange> ranges, Visit visit);
  void fill(std::int64_t count, std::span<const PageId> fresh);

  Book* book_;
  std::deque<Part> parts_;
  std::vector<std::int32_t> slots_;
};

}  // namespace vigil::kv
