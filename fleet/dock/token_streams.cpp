#include "fleet/dock/token_streams.h"

#include <utility>

namespace vigil::fleet {

const TokenStreams::Stream* TokenStreams::find(const std::string& camera) const {
  const auto found = streams_.find(camera);
  return found == streams_.end() ? nullptr : &found->second;
}

TokenStreams::Joined TokenStreams::join(const Join& join) {
  const auto here = streams_.find(join.watch->name);
  if (here == streams_.end() || here->second.device.empty()) return Joined::begins;
  if (here->second.ends) {
    here->second.next = join;
    return Joined::waits;
  }
  const bool is_same = here->second.from == join.from && here->second.session == join.session;
  return is_same ? Joined::renewed : Joined::begins;
}

void TokenStreams::begin(const Join& join, const std::string& device) {
  streams_[join.watch->name] = {join.from, join.session, device};
}

std::optional<TokenStreams::Joined> TokenStreams::renew(const std::string& from,
                                                        const actors::WatchPtr& watch) {
  const auto here = streams_.find(watch->name);
  if (here == streams_.end()) return std::nullopt;
  std::optional<Join>& next = here->second.next;
  if ((next ? next->from : here->second.from) != from) return std::nullopt;
  if (!next) return Joined::renewed;
  next->watch = watch;
  return Joined::waits;
}

std::optional<std::string> TokenStreams::end(const std::string& from, std::uint32_t session,
                                             const std::string& camera) {
  const auto here = streams_.find(camera);
  if (here == streams_.end()) return std::nullopt;
  Stream& stream = here->second;
  if (stream.next && stream.next->from == from && stream.next->session == session) {
    stream.next.reset();
    return std::nullopt;
  }
  if (stream.ends || stream.device.empty() || stream.from != from || stream.session != session)
    return std::nullopt;
  stream.ends = true;
  return stream.device;
}

bool TokenStreams::leave(const std::string& from, std::uint32_t session, const std::string& camera) {
  const auto here = streams_.find(camera);
  if (here == streams_.end() || here->second.ends || here->second.from != from ||
      here->second.session != session)
    return false;
  // None is called so.
  here->second.session = 0;
  return true;
}

std::optional<std::string> TokenStreams::end(const std::string& camera) {
  const auto here = streams_.find(camera);
  if (here == streams_.end()) return std::nullopt;
  if (here->second.device.empty()) {
    streams_.erase(here);
    return std::nullopt;
  }
  here->second.ends = true;
  here->second.next.reset();
  return here->second.device;
}

bool TokenStreams::waits(const std::string& camera) const {
  const Stream* const here = find(camera);
  return here != nullptr && here->next;
}

std::optional<TokenStreams::Join> TokenStreams::over(const std::string& camera) {
  auto stream = streams_.extract(camera);
  return stream ? std::move(stream.mapped().next) : std::nullopt;
}

std::vector<std::string> TokenStreams::come_anew(const std::string& from) {
  std::vector<std::string> cameras;
  for (auto& [camera, stream] : streams_) {
    if (stream.next && stream.next->from == from) stream.next.reset();
    if (stream.from != from) continue;
    stream.session = 0;
    cameras.push_back(camera);
  }
  return cameras;
}

void TokenStreams::device_lost(const std::string& device) {
  std::erase_if(streams_,
                [&](const auto& stream) { return stream.second.ends && stream.second.device == device; });
  for (auto& [camera, stream] : streams_)
    if (stream.device == device) stream.device.clear();
}

}  // namespace vigil::fleet
