// What a source's URL may begin with: the one table of it in this room. (config/ has a list of its own, as
// the two do not know each other; a test compares them.)
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace vigil::media {

struct Scheme {
  enum class Kind : std::uint8_t { file, device, rtsp, http, other };
  /// Who speaks TLS: nobody, FFmpeg, which is told to verify (gate.h), or the tunnel, which does
  /// (tls_tunnel.h).
  enum class Tls : std::uint8_t { none, ffmpeg, tunnel };

  std::string_view name;
  Kind kind;
  Tls tls;
  /// Whether it is one TCP connection to the server that the URL names, so that Reach can ask it.
  bool asked;
  /// Where the URL names none; 0: it has to, or there is none.
  int port;
  /// What FFmpeg may use for it, under its names, with commas: protocols, also nested ones, and demuxers.
  const char* protocols;
  const char* demuxers;

  bool is_local() const { return kind == Kind::file || kind == Kind::device; }
  /// Whether FFmpeg may connect to a proxy instead, which the environment names.
  bool proxied() const { return kind == Kind::http || tls == Tls::ffmpeg; }
};

/// All of them. Thread-safe, like what follows; throws nothing.
std::span<const Scheme> schemes();

/// By its name, in lower case; null if it is not opened.
const Scheme* find_scheme(std::string_view name);

/// Of a URL; null if that has none, or one that is not opened.
const Scheme* scheme_of(std::string_view url);

}  // namespace vigil::media
