#include "tests/rtsp/server.h"

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <random>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace vigil::testing {
namespace {

constexpr int kPatienceMilliseconds = 20'000;

/// Debian's own, which is the one that its package of GStreamer's bindings serves.
constexpr const char* kPython = "/usr/bin/python3";

std::vector<std::string> server_command(int port, const std::vector<std::string>& options) {
  std::vector<std::string> command = {kPython, std::string(VIGIL_SOURCE_DIR) + "/tests/rtsp/server.py",
                                      "--port", std::to_string(port)};
  command.insert(command.end(), options.begin(), options.end());
  return command;
}

std::vector<std::string> vlc_command(const std::vector<std::string>& arguments) {
  std::vector<std::string> command;
  // VLC refuses to run as root.
  if (geteuid() == 0)
    command = {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "HOME=/nonexistent"};
  command.insert(command.end(), {"vlc", "-I", "dummy", "-q", "--no-audio"});
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::string with_port(std::string text, int port) {
  return text.replace(text.find("PORT"), 4, std::to_string(port));
}

}  // namespace

Process::Process(const std::vector<std::string>& command) {
  int to_child[2];
  int from_child[2];
  if (pipe2(to_child, O_CLOEXEC) != 0 || pipe2(from_child, O_CLOEXEC) != 0)
    throw std::runtime_error("no pipe");
  in_ = to_child[1];
  out_ = from_child[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to_child[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from_child[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const int error = posix_spawnp(&child_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(to_child[0]);
  close(from_child[1]);
  if (error != 0) throw std::runtime_error("cannot start " + command.front());
}

Process::~Process() {
  signal(SIGKILL);
  waitpid(child_, nullptr, 0);
  close(in_);
  close(out_);
}

void Process::signal(int number) const {
  kill(child_, number);
}

void Process::send(const std::string& line) const {
  const std::string text = line + '\n';
  if (write(in_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error("a server does not listen: " + line);
  }
}

std::optional<std::string> Process::line() {
  while (true) {
    if (const std::size_t end = read_.find('\n'); end != std::string::npos) {
      std::string first = read_.substr(0, end);
      read_.erase(0, end + 1);
      return first;
    }
    pollfd ready{out_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMilliseconds) <= 0) return std::nullopt;
    char bytes[4096];
    const ssize_t count = read(out_, bytes, sizeof bytes);
    if (count <= 0) return std::nullopt;
    read_.append(bytes, static_cast<std::size_t>(count));
  }
}

std::string GStreamer::missing() {
  Process probe(
      {kPython, "-c",
       "import gi; gi.require_version('GstRtspServer', '1.0'); gi.require_version('Gst', '1.0'); from "
       "gi.repository import Gst, GstRtspServer;"
       "Gst.init(None); print(*[e for e in ('x264enc', 'rtph264pay', 'videotestsrc', 'vp8enc') if not "
       "Gst.ElementFactory.find(e)])"});
  const auto line = probe.line();
  if (!line) return "GStreamer's RTSP server is not installed (gir1.2-gst-rtsp-server-1.0, python3-gi)";
  return line->empty() ? "" : "GStreamer's plugins are not all installed: " + *line;
}

GStreamer::GStreamer(int port, const std::vector<std::string>& options)
    : process_(server_command(port, options)) {
  const auto line = process_.line();
  if (!line || !line->starts_with("port "))
    throw std::runtime_error("GStreamer's RTSP server does not start");
  port_ = std::stoi(line->substr(5));
}

std::string GStreamer::url(const std::string& stream, const std::string& credentials) const {
  return "rtsp://" + credentials + (credentials.empty() ? "" : "@") + "127.0.0.1:" + std::to_string(port_) +
         '/' + stream;
}

void GStreamer::tell(const std::string& command) {
  process_.send(command);
  if (process_.line() != "done") throw std::runtime_error("GStreamer's RTSP server did not obey: " + command);
}

std::string Vlc::missing() {
  Process probe({"sh", "-c", "command -v vlc"});
  return probe.line() ? "" : "VLC is not installed (vlc-bin, vlc-plugin-base)";
}

Vlc::Vlc(const std::string& file, std::string output)
    : port_(free_port()),
      process_(vlc_command({"--loop", file, "--sout", with_port(std::move(output), port_), "--sout-keep"})) {}

WebServer::WebServer(const std::string& folder)
    : port_(free_port()),
      process_({kPython, "-m", "http.server", "--bind", "127.0.0.1", "--directory", folder,
                std::to_string(port_)}) {}

int free_port() {
  // Below those that the system gives to whoever asks for any: a test beside this one could be given it
  // before the program takes it.
  constexpr int kFirst = 20'000, kEnd = 32'768;
  static std::mt19937 random{std::random_device{}()};
  for (int tries = 0; tries < 1'000; ++tries) {
    const int port = std::uniform_int_distribution(kFirst, kEnd - 1)(random);
    const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool bound = bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    close(socket);
    if (bound) return port;
  }
  throw std::runtime_error("no free port");
}

}  // namespace vigil::testing
