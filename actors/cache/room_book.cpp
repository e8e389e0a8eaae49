#include "actors/cache/room_book.h"

#include <algorithm>

namespace vigil::actors {

void RoomBook::reserve(std::uint64_t id, std::int64_t tokens) {
  waiting_.push_back({id, std::clamp<std::int64_t>(tokens, 0, capacity_)});
}

void RoomBook::release(std::int64_t tokens) {
  used_ = std::max<std::int64_t>(0, used_ - tokens);
}

std::vector<std::uint64_t> RoomBook::grant() {
  std::vector<std::uint64_t> granted;
  while (!waiting_.empty() && waiting_.front().tokens <= capacity_ - used_) {
    used_ += waiting_.front().tokens;
    granted.push_back(waiting_.front().id);
    waiting_.pop_front();
  }
  return granted;
}

}  // namespace vigil::actors
