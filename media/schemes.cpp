#include "media/schemes.h"

#include <algorithm>
#include <array>

namespace vigil::media {
namespace {

// Containers and elementary streams that hold video, and pictures alone. None of them opens anything else: no
// playlists, sequences, edit lists or scripts, no captions and no text, which FFmpeg would play as the screen
// of a terminal. Sound is named so that it gets its own error, of a file without video.
constexpr const char* kContainers =
    "mov,matroska,avi,mpegts,mpeg,mpegvideo,flv,live_flv,asf,ogg,mxf,mxg,nut,ivf,wtv,gxf,pva,rm,dv,swf,dhav,"
    "ifv,h261,h263,h264,hevc,m4v,av1,obu,vc1,vc1test,cavsvideo,avs2,avs3,dirac,mjpeg,mpjpeg,mjpeg_2000,"
    "ingenient,yuv4mpegpipe,gif,apng,image2,jpeg_pipe,png_pipe,bmp_pipe,webp_pipe,tiff_pipe,"
    "wav,mp3,flac,aac,ac3,w64,aiff";

// FFmpeg's rtsps verifies nothing, so it is opened as rtsp through a tunnel. Its TLS goes through a proxy
// where the environment names one.
constexpr std::array<Scheme, 14> all_schemes() {
  using enum Scheme::Kind;
  using enum Scheme::Tls;
  return {{{"rtsp", rtsp, none, true, 554, "tcp,udp,rtp", "rtsp"},
           {"rtsps", rtsp, tunnel, true, 322, "tcp", "rtsp"},
           {"http", http, none, true, 80, "http,tcp", kContainers},
           {"https", http, ffmpeg, true, 443, "https,tls,tcp,httpproxy", kContainers},
           {"rtmp", other, none, true, 1935, "rtmp,tcp", "flv,live_flv"},
           {"rtmps", other, ffmpeg, true, 443, "rtmps,tls,tcp,httpproxy", "flv,live_flv"},
           {"srt", other, none, false, 0, "srt", kContainers},
           {"udp", other, none, false, 0, "udp", kContainers},
           {"rtp", other, none, false, 0, "rtp,udp", "rtp"},
           {"tcp", other, none, true, 0, "tcp", kContainers},
           {"tls", other, ffmpeg, true, 0, "tls,tcp,httpproxy", kContainers},
           {"file", file, none, false, 0, "file", kContainers},
           {"v4l2", device, none, false, 0, "", "v4l2"},
           {"video4linux2", device, none, false, 0, "", "v4l2"}}};
}
constexpr std::array<Scheme, 14> kSchemes = all_schemes();

}  // namespace

std::span<const Scheme> schemes() {
  return kSchemes;
}

const Scheme* find_scheme(std::string_view name) {
  const auto* const found =
      std::find_if(kSchemes.begin(), kSchemes.end(), [&](const Scheme& each) { return each.name == name; });
  return found == kSchemes.end() ? nullptr : found;
}

const Scheme* scheme_of(std::string_view url) {
  const std::size_t end = url.find("://");
  return end == std::string_view::npos ? nullptr : find_scheme(url.substr(0, end));
}

}  // namespace vigil::media
