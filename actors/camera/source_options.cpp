#include "actors/camera/source_options.h"

namespace vigil::actors {
namespace {

constexpr std::chrono::seconds kOpenTimeout{10};
/// Smart codecs send a key frame a minute, and nothing can be decoded before one.
constexpr std::chrono::minutes kFrameTimeout{3};

}  // namespace

media::ReadOptions source_options(const config::CameraSettings& camera, const Pulse& pulse) {
  media::ReadOptions options;
  options.stop = pulse.cancelled();
  if (camera.is_file()) return options;
  options.transport =
      camera.stream.transport == config::Transport::udp ? media::Transport::udp : media::Transport::tcp;
  options.frame_timeout = kFrameTimeout;
  options.open_timeout = kOpenTimeout;
  // Long after it is seen as stalled, the connection is given up, and made again from scratch.
  options.read_timeout = 3 * camera.stream.stall_after;
  return options;
}

}  // namespace vigil::actors
