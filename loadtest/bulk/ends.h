// What the benches of two processes have in common: how these tell each other where they are, and wait.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <string>

#include <unistd.h>

namespace vigil::loadtest {

[[noreturn]] inline void fail(const char* what) {
  throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
}

inline void write_all(int to, const void* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::write(to, static_cast<const char*>(bytes) + done, size - done);
    if (count <= 0) fail("write");
    done += static_cast<std::size_t>(count);
  }
}

inline void read_all(int from, void* bytes, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::read(from, static_cast<char*>(bytes) + done, size - done);
    if (count <= 0) fail("read");
    done += static_cast<std::size_t>(count);
  }
}

/// Two pipes: one way each.
struct Ends {
  std::array<int, 2> to_parent{};
  std::array<int, 2> to_child{};

  Ends() {
    if (::pipe(to_parent.data()) != 0 || ::pipe(to_child.data()) != 0) fail("pipe");
  }
  ~Ends() {
    for (const int end : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) ::close(end);
  }
  Ends(const Ends&) = delete;
  Ends& operator=(const Ends&) = delete;
};

/// Tells the other side a text of at most 63 bytes, and returns its.
inline std::string exchange(const std::string& own, int to, int from) {
  std::array<char, 64> text{};
  std::copy(own.begin(), own.end(), text.begin());
  write_all(to, text.data(), text.size());
  read_all(from, text.data(), text.size());
  return text.data();
}

/// Waits for what another thread does.
class Signal {
 public:
  void give() {
    const std::lock_guard lock(mutex_);
    given_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(60), [&] { return given_; }))
      throw std::runtime_error("nothing moves");
    given_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool given_ = false;
};

}  // namespace vigil::loadtest
