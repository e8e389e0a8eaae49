// Room in a ring of bytes, given to ranges that go in the order in which they came.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

namespace vigil::past {

/// Counts, and owns no memory. A range is contiguous: it does not go round the end. Not thread-safe.
class ByteRing {
 public:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t bytes = 0;
    std::int64_t end() const { return begin + bytes; }
    friend bool operator==(const Range&, const Range&) = default;
  };

  explicit ByteRing(std::int64_t bytes) : bytes_(bytes) {}

  /// Room of so many bytes, at least one, behind the newest range; nothing where there is none.
  std::optional<Range> take(std::int64_t bytes);
  /// Of all its ranges, and of what is free.
  std::int64_t bytes() const { return bytes_; }
  void drop_oldest() { ranges_.pop_front(); }
  void drop_newest() { ranges_.pop_back(); }

 private:
  std::int64_t bytes_;
  std::deque<Range> ranges_;
};

}  // namespace vigil::past
