#include "media/admission.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "media/devices.h"
#include "media/schemes.h"

namespace vigil::media {
namespace {

// Of a playlist, and of the segments that it names: no other protocol, and the same server (gate.h).
constexpr const char* kPlaylistProtocols = "http,https,tls,tcp,crypto,httpproxy";

/// Of Linux' video devices, cameras among them.
constexpr unsigned kVideoMajor = 81;

std::string legal() {
  std::string text = "a file";
  for (const Scheme& scheme : schemes()) {
    if (!scheme.is_local()) text += ", " + std::string(scheme.name) + "://";
  }
  return text + " or v4l2:///dev/videoN";
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISBLK(mode) ? "a disk" : "a device that is no camera";
}

/// What FFmpeg would take for a protocol if it were not told that it is a file.
bool looks_like_a_protocol(const std::string& path) {
  const std::size_t end = path.find_first_of(":,/");
  if (end == std::string::npos || path[end] == '/') return false;
  const std::string name = path.substr(0, end);
  void* position = nullptr;
  for (const char* each = avio_enum_protocols(&position, 0); each != nullptr;
       each = avio_enum_protocols(&position, 0)) {
    if (name == each) return true;
  }
  return false;
}

/// One end of a pipe that this process was started with, say by `cat clip.mp4 | vigil ask /dev/stdin`. A pipe
/// with a name of its own would not even be opened before somebody writes to it.
bool is_handed_over(const std::string& path, const struct stat& status) {
  return S_ISFIFO(status.st_mode) &&
         (path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/"));
}

bool is_camera(const struct stat& status) {
  return S_ISCHR(status.st_mode) && major(status.st_rdev) == kVideoMajor;
}

/// FFmpeg's demuxer, devices among them, of which the plain ones come first.
const AVInputFormat* demuxer_of(const std::string& format) {
  if (const AVInputFormat* const plain = av_find_input_format(format.c_str())) return plain;
  const std::string& missing = know_devices();
  const AVInputFormat* const found = av_find_input_format(format.c_str());
  if (found == nullptr) {
    throw Refused("unknown input format " + format +
                  (missing.empty() ? "" : " (FFmpeg's devices: " + missing + ')'));
  }
  return found;
}

Admission device(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) throw Refused(std::generic_category().message(errno));
  if (!is_camera(status)) {
    throw Refused("is " + (S_ISREG(status.st_mode) ? std::string("a file") : kind_of(status.st_mode)) +
                  ", not a camera of Video4Linux");
  }
  const Scheme& scheme = *find_scheme("v4l2");
  return {path, demuxer_of(scheme.demuxers), scheme.protocols, scheme.demuxers, true, true};
}

Admission file(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    const std::string reason = std::generic_category().message(error);
    if (error == ENOENT && path.starts_with("/dev/video")) throw Refused(reason + " (no such camera)");
    throw Refused(reason + (looks_like_a_protocol(path) ? " (what is opened: " + legal() + ')' : ""));
  }
  if (is_camera(status)) return device(path);
  const Scheme& scheme = *find_scheme("file");
  Admission admission{"file:" + path, nullptr, scheme.protocols, scheme.demuxers, false, false};
  if (is_handed_over(path, status)) return admission;
  if (!S_ISREG(status.st_mode)) {
    throw Refused("is " + kind_of(status.st_mode) + ", not a video (what is opened: " + legal() + ')');
  }
  // Among them those of /proc, of which some wait when they are read.
  if (status.st_size == 0) throw Refused("Invalid data found when processing input: the file is empty");
  return admission;
}

}  // namespace

Admission admit(const std::string& url, const std::string& format, bool playlists) {
  const AVInputFormat* demuxer = nullptr;
  if (!format.empty()) {
    demuxer = demuxer_of(format);
    if ((demuxer->flags & AVFMT_NOFILE) != 0) return {url, demuxer, "", demuxer->name, true, true};
  }
  const auto chosen = [&](Admission admission) {
    if (demuxer != nullptr) {
      admission.demuxer = demuxer;
      admission.formats = demuxer->name;
    }
    return admission;
  };
  const std::size_t colon = url.find("://");
  if (colon == std::string::npos) return chosen(file(url));
  const Scheme* const scheme = scheme_of(url);
  if (scheme == nullptr) {
    // A file may be called like anything.
    if (struct stat status{}; ::stat(url.c_str(), &status) == 0) return chosen(file(url));
    throw Refused("`" + url.substr(0, colon) + ":` is not opened; what is: " + legal());
  }
  if (scheme->kind == Scheme::Kind::file) return chosen(file(url.substr(colon + 3)));
  if (scheme->kind == Scheme::Kind::device) return device(url.substr(colon + 3));
  Admission admission{url, nullptr, scheme->protocols, scheme->demuxers, false, true};
  if (playlists && scheme->kind == Scheme::Kind::http) {
    admission.protocols = kPlaylistProtocols;
    admission.formats += ",hls";
  }
  return chosen(std::move(admission));
}

std::string why_refused(const AVInputFormat& format) {
  const std::string_view name = format.name;
  static constexpr std::array<std::string_view, 5> kTextArt = {"tty", "bin", "xbin", "adf", "idf"};
  if (std::find(kTextArt.begin(), kTextArt.end(), name) != kTextArt.end()) {
    return reason_of(AVERROR_INVALIDDATA) + " (a text file)";
  }
  if (name == "hls" || name == "applehttp") {
    return "it is a playlist, which names others to be fetched: a camera of the configuration plays one of "
           "http:// or https:// with `playlists: true`";
  }
  return "no video stream: FFmpeg's `" + std::string(name) + "` is none of the formats that are opened";
}

}  // namespace vigil::media
