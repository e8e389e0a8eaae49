#include "actors/camera/source_options.h"

#include <cstddef>

namespace vigil::actors {
namespace {

/// Smart codecs send a key frame a minute, and nothing can be decoded before one.
constexpr std::chrono::minutes kFrameTimeout{3};

constexpr std::chrono::seconds kDescriptorRest{1};

}  // namespace

media::ReadOptions source_options(const config::CameraSettings& camera, const config::MaskedText& url,
                                  const Pulse& pulse) {
  media::ReadOptions options;
  options.stop = pulse.cancelled();
  options.shown_name = url.shown;
  options.decoder_memory = static_cast<std::size_t>(camera.stream.decoder_memory.bytes);
  if (camera.is_file()) return options;
  options.transport =
      camera.stream.transport == config::Transport::udp ? media::Transport::udp : media::Transport::tcp;
  options.playlists = camera.stream.playlists;
  options.tls = {camera.stream.tls.ca_file.string(), camera.stream.tls.insecure};
  options.frame_timeout = kFrameTimeout;
  options.open_timeout = kOpenTimeout;
  // Long after it is seen as stalled, the connection is given up, and made again from scratch.
  options.read_timeout = 3 * camera.stream.stall_after;
  return options;
}

base::Clock::TimePoint next_attempt(Backoff& backoff, media::Error::Kind kind, base::Clock::TimePoint now) {
  // Nothing is known of the camera.
  if (kind == media::Error::Kind::no_descriptor) return now + kDescriptorRest;
  // A camera locks a user out after some attempts with a wrong password.
  return now + (kind == media::Error::Kind::unauthorized ? backoff.longest() : backoff.next());
}

}  // namespace vigil::actors
