#include "actors/alerts/watermark.h"

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/alerts/outbox_folder.h"

namespace vigil::actors {
namespace {

// Not in one page, and not in one sector of any disk: what tears one leaves the other.
constexpr std::array<off_t, 2> kSlots = {0, 4096};
constexpr off_t kFileBytes = 8192;

}  // namespace

WatermarkFile::WatermarkFile(const std::filesystem::path& folder)
    : file_(folder / "WATERMARK"),
      descriptor_(::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {
  if (!descriptor_) fail("cannot be opened", errno);
  if (::flock(descriptor_.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) fail("cannot be locked", errno);
    throw OutboxLocked("outbox " + folder.string() + ": is locked: another process has it open");
  }
  ::fchmod(descriptor_.number(), 0600);
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) fail("cannot be read", errno);
  // All of it at once, so that a disk that is full later does not refuse it.
  if (status.st_size < kFileBytes) {
    if (const int error = ::posix_fallocate(descriptor_.number(), 0, kFileBytes))
      fail("cannot be written", error);
    if (::fsync(descriptor_.number()) != 0) fail("cannot be written", errno);
    sync_folder(folder);
  }
  read();
}

void WatermarkFile::fail(const std::string& what, int error) const {
  throw OutboxError("outbox " + file_.string() + ": " + what + ": " + std::generic_category().message(error));
}

void WatermarkFile::read() {
  bool written = false;
  for (const off_t slot : kSlots) {
    std::string bytes(kWatermarkBytes, '\0');
    if (::pread(descriptor_.number(), bytes.data(), bytes.size(), slot) < 0) fail("cannot be read", errno);
    written = written || bytes.find_first_not_of('\0') != std::string::npos;
    auto watermark = decode_watermark(bytes);
    if (watermark && (!last_ || watermark->counter > last_->counter)) last_ = std::move(watermark);
  }
  damaged_ = written && !last_;
}

bool WatermarkFile::in_place() const {
  struct stat open {};
  struct stat named {};
  return ::fstat(descriptor_.number(), &open) == 0 && ::stat(file_.c_str(), &named) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

void WatermarkFile::write(Watermark watermark) {
  watermark.counter = last_ ? last_->counter + 1 : 1;
  const std::string bytes = encode_watermark(watermark);
  const ssize_t written = ::pwrite(descriptor_.number(), bytes.data(), bytes.size(),
                                   kSlots.at(watermark.counter % kSlots.size()));
  if (written < 0) fail("cannot be written", errno);
  if (static_cast<std::size_t>(written) != bytes.size()) fail("cannot be written", ENOSPC);
  if (::fdatasync(descriptor_.number()) != 0) fail("cannot be written", errno);
  last_ = std::move(watermark);
  damaged_ = false;
}

void WatermarkFile::write_twice(const Watermark& watermark) {
  write(watermark);
  write(watermark);
}

}  // namespace vigil::actors
