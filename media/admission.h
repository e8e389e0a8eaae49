// What may be opened for a source: FFmpeg opens anything that a text or a file's content asks for, we do not.
#pragma once

#include <stdexcept>
#include <string>

#include "media/ffmpeg.h"

namespace vigil::media {

/// Of a source: what FFmpeg is given, and what it may use for it.
struct Admission {
  /// Under which FFmpeg opens it.
  std::string name;
  /// Null: found by the content, among `formats`.
  const AVInputFormat* demuxer = nullptr;
  /// FFmpeg's names, with commas: of protocols, also of nested ones, and of demuxers.
  std::string protocols;
  std::string formats;
  bool device = false;
  /// Not a file: what it sends is gone when it is not read.
  bool live = false;
};

/// The reason, and what would be legal, in one line without the source's name.
class Refused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A path is that of a file, and FFmpeg takes it for nothing else: what is no file (a pipe, a socket, a
/// folder, a device that is no camera) is refused before it is opened, as it might never end or never begin.
/// A URL is of a scheme that is known, and of no other protocol than that scheme is made of. `format`:
/// FFmpeg's name of the demuxer, which is the caller's own choice then, or empty. `playlists`: whether a
/// playlist may be played over HTTP. Throws Refused.
Admission admit(const std::string& url, const std::string& format, bool playlists);

/// Why a demuxer that the content asked for is not used.
std::string why_refused(const AVInputFormat& format);

}  // namespace vigil::media
