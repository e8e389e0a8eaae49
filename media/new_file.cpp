#include "media/new_file.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "media/media.h"

namespace vigil::media {
namespace {

/// A file descriptor that is closed.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags) : path_(path) {
    // 0666: the process's umask decides.
    do {
      number_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    } while (number_ < 0 && errno == EINTR);
    if (number_ < 0) fail("cannot open");
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }
  [[noreturn]] void fail(const char* what) const {
    const int code = errno;
    throw Error(path_.string() + ": " + what + ": " + std::generic_category().message(code));
  }
  void sync() const {
    if (::fsync(number_) != 0) fail("cannot write");
  }

 private:
  std::filesystem::path path_;
  int number_ = -1;
};

}  // namespace

NewFile::NewFile(std::filesystem::path path)
    : path_(std::move(path)),
      unfinished_(path_.parent_path() / (std::string(kUnfinished) + path_.filename().string())) {}

NewFile::~NewFile() {
  std::error_code none;
  std::filesystem::remove(unfinished_, none);
}

void NewFile::write(std::span<const unsigned char> bytes) const {
  const Descriptor file(unfinished_, O_WRONLY | O_CREAT | O_TRUNC);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) file.fail("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void NewFile::commit() {
  Descriptor(unfinished_, O_RDONLY).sync();
  std::error_code error;
  std::filesystem::rename(unfinished_, path_, error);
  if (error) throw Error(path_.string() + ": cannot rename: " + error.message());
  Descriptor(path_.parent_path(), O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace vigil::media
