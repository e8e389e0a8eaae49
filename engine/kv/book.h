// THE book of a cache: which pages are taken, how often, which are promised, and who may keep how many.
// Tokens are counted in pages.
#pragma once

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engine/kv/page_store.h"

namespace vigil::kv {

/// A page is free, or taken by as many as have a reference to it; and of the free ones some may be promised
/// to claims, which then never fail. Whoever needs pages later claims them at once, all or none, so that
/// nobody holds some while he waits for the others.
///
/// Whoever keeps pages although nothing is computed with them has an account. Some pages may be in reserve:
/// accounts together keep no others, so that as many are free as soon as what is being computed ends.
/// Thread-safe.
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
    bool is_of(const Book& book) const { return book_ == &book; }
    /// Takes pages with one reference each, appended to `to`. Throws std::logic_error for more than are left.
    void allocate(std::int64_t count, std::vector<PageId>& to);
    /// A part of it, for somebody else. Throws std::logic_error for more than are left.
    Claim split(std::int64_t count);
    /// A page that was taken, and that nobody else has, is promised again. Throws std::logic_error, and
    /// nothing changes, where others have it, and for a claim of no book.
    void put_back(PageId page);
    void give_back();

   private:
    friend class Book;
    Claim(Book& book, std::int64_t pages) : book_(&book), left_(pages) {}
    Book* book_ = nullptr;
    std::int64_t left_ = 0;
  };
  /// Nothing, and nothing changes, if there are not so many free.
  std::optional<Claim> claim(std::int64_t pages);

  /// How many pages somebody keeps, and may keep: what he said, and no statement about which. Move-only; with
  /// it goes what it counted. One owner at a time; the book has to outlive it.
  class Account {
   public:
    static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();

    explicit Account(Book& book, std::int64_t limit = kUnlimited) : book_(&book), limit_(limit) {}
    ~Account() { keep(0); }
    Account(Account&& other) noexcept;
    Account& operator=(Account&&) = delete;
    Account(const Account&) = delete;
    Account& operator=(const Account&) = delete;

    std::int64_t kept() const { return kept_; }
    std::int64_t limit() const { return limit_; }
    /// What it keeps already is looked at with the next `keep`.
    void set_limit(std::int64_t pages) { limit_ = pages; }

    /// Keeps so many pages instead of those before. False, and nothing changes, if they are more than its
    /// limit, or more than before and all accounts would go into the reserve.
    bool keep(std::int64_t pages);

   private:
    Book* book_;
    std::int64_t limit_;
    std::int64_t kept_ = 0;
  };
  /// So many pages accounts may not keep from now on; what they keep already, they do. Throws
  /// std::invalid_argument for a negative number.
  void set_reserve(std::int64_t pages);
  std::int64_t reserve() const;
  /// Pages that all accounts keep.
  std::int64_t kept() const;

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
    /// Of accounts: what they were not to keep.
    std::uint64_t not_kept = 0;
  };
  Events events() const;

 private:
  void take(std::int64_t count, std::vector<PageId>& to);

  int page_tokens_;
  mutable std::mutex mutex_;
  std::vector<std::int32_t> references_;
  std::vector<PageId> free_;
  std::int64_t promised_ = 0;
  std::int64_t reserve_ = 0;
  std::int64_t kept_ = 0;
  Events events_;
};

}  // namespace vigil::kv
