// Waits until a file has other content, however it comes about: written in place, replaced by a rename as
// editors do, or by another target of a symbolic link as Kubernetes does with mounted ConfigMaps.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <tuple>

namespace vigil::cluster {

/// One thread waits; every thread may call `poke` and `close`.
class FileWatch {
 public:
  struct Options {
    /// Content counts when the file has been left alone for so long.
    std::chrono::milliseconds settle{300};
    /// How often it is looked at without being told: file systems of other machines do not tell, nor does a
    /// change of a folder further up.
    std::chrono::milliseconds look{30'000};
  };

  /// Changes count from now on. The file need not be there.
  explicit FileWatch(const std::filesystem::path& file) : FileWatch(file, Options()) {}
  FileWatch(const std::filesystem::path& file, Options options);
  ~FileWatch();
  FileWatch(const FileWatch&) = delete;
  FileWatch& operator=(const FileWatch&) = delete;

  enum class Event : std::uint8_t {
    changed,  ///< the file has other content than when this was told last; or is gone, or back
    poked,
    closed,  ///< now and for ever
    timeout,
  };

  /// The next event.
  Event wait(std::optional<std::chrono::milliseconds> timeout = std::nullopt);

  /// Lets `wait` return although nothing has changed.
  void poke() noexcept;
  void close() noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  /// Device, inode, size, and the times of the last change of content and of state in nanoseconds.
  using Print = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;

  std::optional<Print> print() const;
  std::optional<std::string> content() const;
  bool has_other_content();
  void watch_folders() const;
  void drain() const;
  void signal(int descriptor) noexcept;

  std::filesystem::path file_;
  Options options_;
  /// Of inotify; -1 if the system has none left, which leaves the looking.
  int changes_;
  int poked_;
  int closed_;
  std::optional<Print> print_;
  std::optional<std::string> content_;
  std::optional<Clock::time_point> settled_at_;
  Clock::time_point look_at_;
};

}  // namespace vigil::cluster
