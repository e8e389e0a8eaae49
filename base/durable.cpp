#include "base/durable.h"

#include <cerrno>
#include <string>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

namespace vigil::base {
namespace {

void write_all(const Descriptor& file, const std::filesystem::path& path,
               std::span<const unsigned char> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file.number(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw FileError(path, "cannot write", errno);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void sync(const Descriptor& opened, const std::filesystem::path& path) {
  if (::fsync(opened.number()) != 0 && errno != EINVAL) throw FileError(path, "cannot write", errno);
}

std::span<const unsigned char> bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

}  // namespace

FileError::FileError(const std::filesystem::path& path, std::string_view what, int code)
    : std::runtime_error(path.string() + ": " + std::string(what) + ": " +
                         std::generic_category().message(code)),
      code_(code) {}

Descriptor open_file(const std::filesystem::path& path, int flags, mode_t mode) {
  for (;;) {
    Descriptor descriptor(::open(path.c_str(), flags | O_CLOEXEC, mode));
    if (descriptor) return descriptor;
    if (errno != EINTR) throw FileError(path, "cannot open", errno);
  }
}

void sync(const std::filesystem::path& path) {
  const std::filesystem::path named = path.empty() ? "." : path;
  sync(open_file(named, O_RDONLY), named);
}

// A folder is kept by the one above it: what is synced within it is lost with its name.
void make_folders(const std::filesystem::path& folder) {
  std::filesystem::path made;
  for (const std::filesystem::path& name : std::filesystem::absolute(folder)) {
    const std::filesystem::path above = made;
    made /= name;
    std::error_code error;
    const bool is_new = std::filesystem::create_directory(made, error);
    if (error) throw FileError(made, "cannot make the folder", error.value());
    if (!is_new) continue;
    try {
      sync(above);
    } catch (const FileError& unlisted) {
      if (unlisted.code() != EACCES) throw;
    }
  }
}

void write_first(const std::filesystem::path& path, std::string_view text, mode_t mode) {
  {
    const Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_EXCL, mode);
    write_all(file, path, bytes_of(text));
    sync(file, path);
  }
  sync(path.parent_path());
}

NewFile::NewFile(std::filesystem::path path)
    : path_(std::move(path)),
      unfinished_(path_.parent_path() / (std::string(kUnfinished) + path_.filename().string())) {}

NewFile::~NewFile() {
  std::error_code none;
  std::filesystem::remove(unfinished_, none);
}

void NewFile::write(std::span<const unsigned char> bytes) const {
  // 0666: the process's umask decides.
  write_all(open_file(unfinished_, O_WRONLY | O_CREAT | O_TRUNC, 0666), unfinished_, bytes);
}

void NewFile::write(std::string_view text) const {
  write(bytes_of(text));
}

void NewFile::commit() {
  sync(unfinished_);
  std::error_code error;
  std::filesystem::rename(unfinished_, path_, error);
  if (error) throw FileError(path_, "cannot rename", error.value());
  sync(path_.parent_path());
}

}  // namespace vigil::base
