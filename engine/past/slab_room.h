// Room in slabs of bytes, given and given back in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace vigil::past {

/// Counts, and owns no memory. Nothing that has a place is ever moved: where there is no room, a slab is
/// added. Not thread-safe.
class SlabRoom {
 public:
  struct Range {
    std::int64_t slab = 0;
    std::int64_t begin = 0;
    std::int64_t bytes = 0;
    friend bool operator==(const Range&, const Range&) = default;
  };

  /// A slab of so many bytes. Returns its number, which none had before.
  std::int64_t add(std::int64_t bytes);
  /// The first room of `least` bytes, at least one: as much of it as there is in one piece, up to `most`;
  /// nothing where there is none. `most` is not below `least`.
  std::optional<Range> take(std::int64_t least, std::int64_t most);
  /// Of a range that was taken, its first `bytes` remain, at most all; 0: nothing does. Throws
  /// std::out_of_range for one that was not.
  void shorten(const Range& range, std::int64_t bytes);
  /// Slabs of which nothing is taken go, until no more than `most` bytes are left, or none of them: their
  /// numbers.
  std::vector<std::int64_t> drop_empty(std::int64_t most);

  /// Of all slabs.
  std::int64_t bytes() const { return bytes_; }

 private:
  struct Slab {
    std::int64_t bytes = 0;
    /// Where what is taken begins, and ends.
    std::map<std::int64_t, std::int64_t> taken;
  };
  std::map<std::int64_t, Slab> slabs_;
  std::int64_t added_ = 0;
  std::int64_t bytes_ = 0;
};

}  // namespace vigil::past
