// One opened source: its container, its video stream, and reads that can be cancelled and that end in time.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "media/admission.h"
#include "media/ffmpeg.h"
#include "media/gate.h"
#include "media/interrupt.h"
#include "media/media.h"
#include "media/tls_tunnel.h"

namespace vigil::media {

/// Demuxes the best video stream of a source and nothing else. Not thread-safe.
class Input {
 public:
  enum class Read { packet, damaged, end };

  /// Throws `Error`.
  Input(const std::string& url, const ReadOptions& options);

  const std::string& name() const { return name_; }
  const AVFormatContext& format() const { return *format_; }
  const AVStream& stream() const { return *format_->streams[stream_]; }
  const AVCodec& codec() const { return *codec_; }
  /// Whether reading can go back and ahead: a file, not a camera.
  bool seekable() const { return seekable_; }

  /// Reads the stream's next packet. `damaged`: one was lost, read on; `packet` may still be marked as
  /// corrupt by the demuxer. At `damaged`, and at an `end` that came too early, `damage()` says why: it is
  /// empty at any other end. Throws `Error` on a timeout and when cancelled.
  Read read(AVPacket& packet);
  const std::string& damage() const { return damage_; }

  /// Goes to a key frame at or before `timestamp` (in the stream's time base); false if the container cannot.
  bool seek(std::int64_t timestamp);

 private:
  void open(const std::string& url, const ReadOptions& options);
  Admission admitted(const std::string& url, const ReadOptions& options) const;
  /// Leads an rtsps source through a tunnel; the URL that FFmpeg is given then.
  std::string tunnelled(const std::string& url, const ReadOptions& options);
  void find_stream_info();
  std::string hidden(std::string text) const;
  /// Whether the packet shows that the video goes on as a stream that was not there before.
  bool is_successor(const AVPacket& packet) const;
  void choose_stream();
  [[noreturn]] void fail(const std::string& reason, Error::Kind kind = Error::Kind::source) const;
  /// Throws if the last call was, or the next one would be, interrupted.
  void check_interrupt(std::chrono::milliseconds allowed) const;
  /// How long the container says that the stream is; 0: it does not.
  double announced_seconds() const;
  std::string early_end(int code, const std::string& logged) const;

  std::string url_;
  std::string name_;
  Interrupt interrupt_;
  Gate gate_;
  // Before the format, which closes its connection first.
  std::optional<TlsTunnel> tunnel_;
  std::chrono::milliseconds read_timeout_;
  std::function<void(const PacketInfo&)> on_packet_;
  std::shared_ptr<PacketHistory> history_;
  InputContext format_;
  unsigned stream_ = 0;
  /// Streams there were when it was chosen.
  unsigned streams_ = 0;
  const AVCodec* codec_ = nullptr;
  bool seekable_ = false;
  std::string damage_;
  int failures_in_a_row_ = 0;
  /// End of the last packet read, in the stream's time base.
  std::optional<std::int64_t> reached_;
};

}  // namespace vigil::media
