// Servers that are not ours, as processes of their own: started, told what to do, stopped, killed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace vigil::testing {

/// A child process with its stdin and stdout. It does not survive the object.
class Process {
 public:
  explicit Process(const std::vector<std::string>& command);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(const std::string& line) const;
  /// The next line that it prints; nothing at its end, or when nothing came for 20 s.
  std::optional<std::string> line();
  void signal(int number) const;

 private:
  pid_t child_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string read_;
};

/// GStreamer's RTSP server: server.py tells what it serves and obeys.
class GStreamer {
 public:
  /// Why it cannot be started here; empty if it can.
  static std::string missing();

  /// `port` 0: a free one. Returns when it serves.
  explicit GStreamer(int port = 0, const std::vector<std::string>& options = {});

  int port() const { return port_; }
  /// rtsp://[`credentials`@]127.0.0.1:PORT/`stream`
  std::string url(const std::string& stream, const std::string& credentials = "") const;
  /// Returns when it is done.
  void tell(const std::string& command);
  void signal(int number) const { process_.signal(number); }

 private:
  Process process_;
  int port_ = 0;
};

/// VLC as a server, which plays a file for ever.
class Vlc {
 public:
  static std::string missing();

  /// `output`: VLC's words for where the stream goes, with PORT in the place of a free port.
  explicit Vlc(const std::string& file, std::string output);

  int port() const { return port_; }

 private:
  int port_;
  Process process_;
};

/// Python's web server over a folder.
class WebServer {
 public:
  explicit WebServer(const std::string& folder);
  std::string url(const std::string& file) const {
    return "http://127.0.0.1:" + std::to_string(port_) + '/' + file;
  }

 private:
  int port_;
  Process process_;
};

/// A port of this machine that nobody listens on at the moment.
int free_port();

}  // namespace vigil::testing
