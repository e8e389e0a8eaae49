// Sees everything that FFmpeg opens for a source, and lets through what the source itself may be.
#pragma once

#include <string>

#include "media/admission.h"
#include "media/ffmpeg.h"
#include "media/interrupt.h"
#include "media/media.h"

namespace vigil::media {

/// Of one source. The source is opened as it is; after that only what a playlist names, if one is allowed,
/// and on the same server. Redirects are followed on the same server. What is refused ends the source
/// (`Interrupt::refusal`). Its address is held by FFmpeg: neither copied nor moved. Used by the thread that
/// opens and reads.
class Gate {
 public:
  /// `interrupt` has to outlive the gate.
  Gate(const ReadOptions& options, Interrupt& interrupt)
      : playlists_(options.playlists), tls_(options.tls), interrupt_(interrupt) {}
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  /// Before `format` is opened; it has to be closed before the gate goes.
  void guard(AVFormatContext& format, const Admission& admission);

  /// Of the log: FFmpeg's RTSP client is about to follow a redirect, and tells it nobody else.
  static void on_rtsp_redirect(AVFormatContext& format) noexcept;

 private:
  static int on_open(AVFormatContext* format, AVIOContext** io, const char* url, int flags,
                     AVDictionary** options);

  int open(AVFormatContext& format, AVIOContext** io, const std::string& url, int flags,
           AVDictionary** options);
  int refuse(const std::string& reason);

  /// Where FFmpeg opened the source, after redirects.
  std::string base_;
  bool playlists_;
  Tls tls_;
  Interrupt& interrupt_;
  bool opened_ = false;
  /// FFmpeg's own.
  int (*open_)(AVFormatContext*, AVIOContext**, const char*, int, AVDictionary**) = nullptr;
};

/// The options of FFmpeg's TLS that make it verify, or not; nothing for a URL without TLS.
void set_tls_options(Dictionary& options, const std::string& url, const Tls& tls);

}  // namespace vigil::media
