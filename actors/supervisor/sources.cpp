#include "actors/supervisor/sources.h"

#include <algorithm>

#include "media/reach.h"
#include "media/schemes.h"

namespace vigil::actors {
namespace {

/// Over UDP, video and sound have a pair of sockets each beside the connection.
constexpr std::size_t kSocketsOverUdp = 5;
/// Its two ends, its thread's alarm, and the connection that leads into it.
constexpr std::size_t kDescriptorsOfTunnel = 4;

bool is_local(const std::string& url) {
  const media::Scheme* const scheme = media::scheme_of(url);
  return scheme == nullptr ? url.find("://") == std::string::npos : scheme->is_local();
}

}  // namespace

config::MaskedText address_of(const config::CameraSettings& camera, config::Role role) {
  return role == config::Role::record ? camera.record_url() : camera.url();
}

Dialer::Way way_of(const std::string& url, bool can_ask) {
  if (config::is_file(url) || is_local(url)) return Dialer::Way::file;
  return can_ask && media::Reach::can_ask(url) ? Dialer::Way::asked : Dialer::Way::blind;
}

std::size_t descriptors_of(const config::CameraSettings& camera, config::Role role) {
  const media::Scheme* const scheme = media::scheme_of(address_of(camera, role).value);
  if (scheme == nullptr || scheme->kind != media::Scheme::Kind::rtsp) return 1;
  if (scheme->tls == media::Scheme::Tls::tunnel) return kDescriptorsOfTunnel;
  return camera.stream.transport == config::Transport::udp ? kSocketsOverUdp : 1;
}

std::size_t cameras_within(std::size_t descriptors, const std::vector<CameraPtr>& cameras, bool recorded) {
  std::size_t count = 0;
  for (const CameraPtr& camera : cameras) {
    std::size_t needed = descriptors_of(*camera, config::Role::detect);
    if (recorded && camera->records_apart()) needed += descriptors_of(*camera, config::Role::record);
    if (needed > descriptors) break;
    descriptors -= needed;
    ++count;
  }
  return count;
}

}  // namespace vigil::actors
