// A view on its way to another process's book of pages of the same size.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/kv/book.h"
#include "engine/kv/view.h"

namespace vigil::kv {

/// Which tokens of which pages a view has. Its pages go along beside it, by number.
struct CarriedView {
  struct Part {
    /// The how manieth page that goes along.
    std::int32_t page = 0;
    /// Live tokens in it, and whether the view may fill the rest of it.
    std::int32_t begin = 0, end = 0;
    bool fills = false;
    friend bool operator==(const Part&, const Part&) = default;
  };
  std::int32_t pages = 0;
  std::vector<Part> parts;

  std::int64_t tokens() const;
  /// Whether a view in pages of this size can be like that: each page has tokens of it, and it may fill the
  /// last one alone, which nothing else of it is in.
  bool is_sound(int page_tokens) const;
  /// Pages that appending `count` tokens would take. Of a sound one.
  std::int64_t pages_to_append(std::int64_t count, int page_tokens) const;

  /// The pages of a view are appended to `pages`, each once; it has to hold them until they are read.
  static CarriedView of(const View& view, std::vector<PageId>& pages);
  /// A view of the same tokens in pages out of a claim, which are appended to `pages`, in their order, and
  /// whose contents are still to be written. Throws std::invalid_argument for one that is not sound, and
  /// std::logic_error for a claim that has too few pages.
  View in(Book& book, Book::Claim& claim, std::vector<PageId>& pages) const;

  friend bool operator==(const CarriedView&, const CarriedView&) = default;
};

}  // namespace vigil::kv
