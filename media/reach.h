// Whether servers of cameras answer, asked of thousands at once without a thread for each.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace vigil::media {

/// Asks whether it is worth a thread to open a source. Thread-safe; forgets what is under way when it is
/// destroyed.
class Reach {
 public:
  struct Answer {
    std::uint64_t ticket = 0;
    /// Why the source could not be opened now, in the words with which opening it would fail; empty if it is
    /// worth an attempt.
    std::string failure;
    /// No file descriptor was left to ask with: this says nothing of the server.
    bool no_descriptor = false;
  };
  /// Called in a thread of Reach, for one answer after the other; must not block.
  using Told = std::function<void(const Answer&)>;

  struct Limits {
    /// For the connection, and an answer where one is asked for; names that are being resolved take longer.
    std::chrono::milliseconds time;
    /// Threads that resolve names, which cannot be done without one: a name for which the machine has none is
    /// answered as a failure. Three quarters of them, at most, are busy with one zone.
    int resolvers = 16;
  };

  /// Whether a source is reached by one TCP connection to a server that the URL names.
  static bool can_ask(const std::string& url);

  static std::unique_ptr<Reach> make(Told told, Limits limits);

  virtual ~Reach() = default;

  /// Connects to the server of `url` and, if that speaks RTSP, waits until it answers OPTIONS, with which
  /// FFmpeg begins, too: without user and password, but with the path. One answer follows, unless it is
  /// forgotten; it calls the source `shown_name`, or, if that is empty, by its URL, credentials removed.
  /// Takes a descriptor for each address of the server, four at most. `can_ask` has to be true.
  virtual void ask(std::uint64_t ticket, const std::string& url, const std::string& shown_name) = 0;
  virtual void forget(std::uint64_t ticket) = 0;
};

}  // namespace vigil::media
