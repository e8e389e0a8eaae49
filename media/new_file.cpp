#include "media/new_file.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "media/media.h"

namespace vigil::media {
namespace {

/// An open file or folder, with its name for errors.
class Opened {
 public:
  Opened(const std::filesystem::path& path, int flags) : path_(path) {
    // 0666: the process's umask decides.
    do {
      descriptor_ = base::Descriptor(::open(path.c_str(), flags | O_CLOEXEC, 0666));
    } while (!descriptor_ && errno == EINTR);
    if (!descriptor_) fail("cannot open");
  }

  int number() const { return descriptor_.number(); }
  [[noreturn]] void fail(const char* what) const {
    const int code = errno;
    throw Error(path_.string() + ": " + what + ": " + std::generic_category().message(code));
  }
  void sync() const {
    if (::fsync(number()) != 0) fail("cannot write");
  }

 private:
  std::filesystem::path path_;
  base::Descriptor descriptor_;
};

}  // namespace

// A folder is kept by the one above it: what is synced within it is lost with its name.
void make_folders(const std::filesystem::path& folder) {
  const std::filesystem::path path = std::filesystem::absolute(folder).lexically_normal();
  std::filesystem::path made;
  for (const std::filesystem::path& name : path) {
    const std::filesystem::path above = made;
    made /= name;
    std::error_code error;
    const bool is_new = std::filesystem::create_directory(made, error);
    if (error) throw Error(folder.string() + ": cannot make the folder: " + error.message());
    if (is_new) Opened(above, O_RDONLY | O_DIRECTORY).sync();
  }
}

NewFile::NewFile(std::filesystem::path path)
    : path_(std::move(path)),
      unfinished_(path_.parent_path() / (std::string(kUnfinished) + path_.filename().string())) {}

NewFile::~NewFile() {
  std::error_code none;
  std::filesystem::remove(unfinished_, none);
}

void NewFile::write(std::span<const unsigned char> bytes) const {
  const Opened file(unfinished_, O_WRONLY | O_CREAT | O_TRUNC);
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) file.fail("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void NewFile::commit() {
  Opened(unfinished_, O_RDONLY).sync();
  std::error_code error;
  std::filesystem::rename(unfinished_, path_, error);
  if (error) throw Error(path_.string() + ": cannot rename: " + error.message());
  Opened(path_.parent_path(), O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace vigil::media
