#include "cluster/process/file_watch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

namespace vigil::cluster {
namespace {

constexpr std::uint32_t kEvents =
    IN_CLOSE_WRITE | IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;
// As many as the kernel follows.
constexpr int kMaxLinks = 40;

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

FileWatch::FileWatch(const std::filesystem::path& file, Options options)
    : file_(std::filesystem::absolute(file)),
      options_(options),
      changes_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)),
      poked_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      closed_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)),
      look_at_(Clock::now() + options_.look) {
  if (poked_ < 0 || closed_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch " + file_.string());
  }
  // Before it is read, so that no change is missed in between.
  watch_folders();
  print_ = print();
  content_ = content();
}

FileWatch::~FileWatch() {
  for (const int descriptor : {changes_, poked_, closed_}) {
    if (descriptor >= 0) ::close(descriptor);
  }
}

FileWatch::Event FileWatch::wait(std::optional<std::chrono::milliseconds> timeout) {
  const Clock::time_point started = Clock::now();
  for (;;) {
    Clock::time_point until = look_at_;
    if (settled_at_) until = std::min(until, *settled_at_);
    if (timeout) until = std::min(until, started + *timeout);
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    // poll leaves out what has a negative descriptor.
    std::array<pollfd, 3> wanted = {{{closed_, POLLIN, 0}, {poked_, POLLIN, 0}, {changes_, POLLIN, 0}}};
    const auto milliseconds = std::clamp<std::int64_t>(left.count(), 0, 3'600'000);
    if (::poll(wanted.data(), wanted.size(), static_cast<int>(milliseconds)) < 0 && errno != EINTR) {
      throw std::system_error(errno, std::generic_category(), "cannot watch " + file_.string());
    }
    if ((wanted[0].revents & POLLIN) != 0) return Event::closed;
    if ((wanted[1].revents & POLLIN) != 0) {
      std::uint64_t count = 0;
      if (read(poked_, &count, sizeof count) == sizeof count) {
        settled_at_.reset();
        has_other_content();
        return Event::poked;
      }
    }
    const Clock::time_point now = Clock::now();
    const bool told = (wanted[2].revents & POLLIN) != 0;
    if (told) drain();
    if (told || now >= look_at_) {
      // A link may lead elsewhere now.
      watch_folders();
      look_at_ = now + options_.look;
      // Much may happen in its folder that is none of the file's business.
      if (const auto current = print(); current != print_) {
        print_ = current;
        settled_at_ = now + options_.settle;
      }
    }
    if (settled_at_ && now >= *settled_at_) {
      settled_at_.reset();
      if (has_other_content()) return Event::changed;
    }
    if (timeout && now >= started + *timeout) return Event::timeout;
  }
}

void FileWatch::poke() noexcept {
  signal(poked_);
}

void FileWatch::close() noexcept {
  signal(closed_);
}

void FileWatch::signal(int descriptor) noexcept {
  const std::uint64_t one = 1;
  // It fails only when it has been signalled 2^64 times and not been read.
  [[maybe_unused]] const auto written = write(descriptor, &one, sizeof one);
}

std::optional<FileWatch::Print> FileWatch::print() const {
  struct stat status {};
  if (stat(file_.c_str(), &status) != 0) return std::nullopt;
  return Print(status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim),
               nanoseconds(status.st_ctim));
}

std::optional<std::string> FileWatch::content() const {
  // What a pipe holds can be read once only, and is not meant for the watch.
  std::error_code error;
  if (!std::filesystem::is_regular_file(file_, error)) return std::nullopt;
  std::ifstream stream(file_, std::ios::binary);
  if (!stream) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

bool FileWatch::has_other_content() {
  auto current = content();
  if (current == content_) return false;
  content_ = std::move(current);
  return true;
}

// The folder of the file, and of each link on the way to where it really is.
void FileWatch::watch_folders() const {
  if (changes_ < 0) return;
  std::filesystem::path at = file_;
  for (int links = 0; links < kMaxLinks; ++links) {
    inotify_add_watch(changes_, at.parent_path().c_str(), kEvents);
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(at, error);
    if (error) break;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
}

void FileWatch::drain() const {
  std::array<char, 4096> buffer;
  while (read(changes_, buffer.data(), buffer.size()) > 0) {
  }
}

}  // namespace vigil::cluster
