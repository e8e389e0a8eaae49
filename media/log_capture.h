// FFmpeg's log: kept off stderr, and read where its error codes alone are too vague ("moov atom not found").
#pragma once

#include <cstdint>
#include <mutex>
#include <string>

namespace vigil::media {

/// From construction to destruction, remembers the first error that FFmpeg logs *on this thread*.
/// Constructing the first one of the process turns FFmpeg's printing off for good. Captures nest.
class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  /// One line without its end; empty if nothing was logged.
  const std::string& first_error() const { return first_error_; }

  /// `reason`, and in brackets what was logged if that says more.
  std::string explain(const std::string& reason) const;

  void add(const std::string& line);

  /// Where the last HTTP answer on this thread said that the source has moved; empty if it did not. Forgets
  /// it. FFmpeg tells that nobody else.
  static std::string take_location();

  /// Why the demuxer that the content asked for was not used, in words for people; empty if it was.
  const std::string& refused_format() const { return refused_format_; }
  void refuse_format(const std::string& reason) { refused_format_ = reason; }

 private:
  LogCapture* outer_;
  std::string first_error_;
  std::string refused_format_;
};

/// What one decoder logs, from whichever of its threads. Set as `AVCodecContext::opaque`, which all of them
/// share. Thread-safe. It is the only way to hear of every concealed frame: with frame threads the frame's
/// own error flags get lost when it is output by another thread than the one that decoded it.
class DecoderLog {
 public:
  DecoderLog();

  /// Frames that were damaged and completed by guessing.
  std::uint64_t concealed() const;
  /// The last error, as one line.
  std::string last_error() const;

  void add_concealed();
  void add_error(const std::string& line);

 private:
  mutable std::mutex mutex_;
  std::uint64_t concealed_ = 0;
  std::string last_error_;
};

}  // namespace vigil::media
