// Who may put how much into the KV cache, and when.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace vigil::actors {

/// Counts tokens that are reserved; requests are served in the order in which they came, so that a large one
/// is never starved by small ones. Not thread-safe.
class RoomBook {
 public:
  /// Tokens that the cache has room for.
  explicit RoomBook(std::int64_t capacity) : capacity_(capacity) {}

  /// Asker `id` wants room for so many tokens; more than there are is all that there are.
  void reserve(std::uint64_t id, std::int64_t tokens);

  /// So many tokens are free again.
  void release(std::int64_t tokens);

  /// The askers whose turn has come, in order; each is named once.
  std::vector<std::uint64_t> grant();

  std::int64_t used() const { return used_; }
  /// Of the capacity, from 0 to 1.
  double usage() const {
    return capacity_ > 0 ? static_cast<double>(used_) / static_cast<double>(capacity_) : 0;
  }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  struct Request {
    std::uint64_t id;
    std::int64_t tokens;
  };

  std::int64_t capacity_;
  std::int64_t used_ = 0;
  std::deque<Request> waiting_;
};

}  // namespace vigil::actors
