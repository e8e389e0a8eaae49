// FFmpeg's log: kept off stderr, and read where its error codes alone are too vague ("moov atom not found").
#pragma once

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
  void clear() { first_error_.clear(); }

 private:
  LogCapture* outer_;
  std::string first_error_;
};

}  // namespace vigil::media
