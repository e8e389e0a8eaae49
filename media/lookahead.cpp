#include "media/lookahead.h"

namespace vigil::media {

void Lookahead::pop() {
  taken_.push_back(packets_.front()->pts);
  if (taken_.size() > kRemembered) taken_.pop_front();
  packets_.pop_front();
}

std::optional<std::int64_t> Lookahead::following() const {
  const std::int64_t here = front().pts;
  if (here == AV_NOPTS_VALUE) return std::nullopt;
  std::optional<std::int64_t> next;
  bool complete = true;
  const auto see = [&](std::int64_t timestamp) {
    if (timestamp == AV_NOPTS_VALUE) complete = false;
    if (timestamp > here && (!next || timestamp < *next)) next = timestamp;
  };
  for (const Packet& packet : packets_) see(packet->pts);
  for (const std::int64_t timestamp : taken_) see(timestamp);
  return complete ? next : std::nullopt;
}

}  // namespace vigil::media
