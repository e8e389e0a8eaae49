// THE book of a cache: which pages are taken, how often, and which are promised. Tokens are counted in pages.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/kv/page_store.h"

namespace vigil::kv {

/// A page is free, or taken by as many as have a reference to it; and of the free ones some may be promised
/// to claims, which then never fail. Whoever needs pages later claims them at once, all or none, so that
/// nobody holds some while he waits for the others. Thread-safe.
class Book {
 public:
  /// Throws std::invalid_argument for a page without tokens and a negative count.
  Book(std::int64_t pages, int page_tokens);
  Book(const Book&) = delete;
  Book& operator=(const Book&) = delete;

  std::int64_t pages() const { return static_cast<std::int64_t>(references_.size()); }
  int page_tokens() const { return page_tokens_; }
  /// Tokens that all pages have room for.
  std::int64_t tokens() const { return pages() * page_tokens_; }
  /// Pages for so many tokens.
  std::int64_t pages_for(std::int64_t tokens) const { return (tokens + page_tokens_ - 1) / page_tokens_; }

  /// Neither taken nor promised.
  std::int64_t free_pages() const;
  /// Of all pages, from 0 to 1: taken or promised.
  double usage() const;

  /// Pages that are promised. Move-only; what is left of it is free again with it. The book has to outlive
  /// it.
  class Claim {
   public:
    Claim() = default;
    ~Claim() { give_back(); }
    Claim(Claim&& other) noexcept;
    Claim& operator=(Claim&& other) noexcept;
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

    std::int64_t left() const { return left_; }
    /// Takes pages with one reference each, appended to `to`. Throws std::logic_error for more than are left.
    void allocate(std::int64_t count, std::vector<PageId>& to);
    /// A part of it, for somebody else. Throws std::logic_error for more than are left.
    Claim split(std::int64_t count);
    void give_back();

   private:
    friend class Book;
    Claim(Book& book, std::int64_t pages) : book_(&book), left_(pages) {}
    Book* book_ = nullptr;
    std::int64_t left_ = 0;
  };
  /// Nothing, and nothing changes, if there are not so many free.
  std::optional<Claim> claim(std::int64_t pages);

  /// Takes `count` free pages with one reference each, appended to `to`. False, and nothing changes, if there
  /// are too few.
  bool allocate(std::int64_t count, std::vector<PageId>& to);
  /// One more reference to a page that is taken.
  void retain(PageId page);
  /// One reference less; the page is free when none is left.
  void release(PageId page);
  /// How many have this page.
  std::int32_t references(PageId page) const;
  /// How many of these have one reference.
  std::int64_t count_single(std::span<const PageId> pages) const;

  /// What happened since the book was opened.
  struct Events {
    std::uint64_t taken = 0;
    std::uint64_t freed = 0;
    /// Claims that found too few pages.
    std::uint64_t refused = 0;
  };
  Events events() const;

 private:
  void take(std::int64_t count, std::vector<PageId>& to);

  int page_tokens_;
  mutable std::mutex mutex_;
  std::vector<std::int32_t> references_;
  std::vector<PageId> free_;
  std::int64_t promised_ = 0;
  Events events_;
};

}  // namespace vigil::kv
