#include "engine/kv/history/part_file.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <new>
#include <system_error>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/durable.h"
#include "engine/kv/history/byte_codec.h"
#include "engine/kv/history/part_entry.h"

namespace vigil::history {
namespace {

// So much is written at once, or a little more: what was made is still in the processor's caches then.
constexpr std::size_t kWrittenAtOnce = std::size_t{1} << 20U;
// With one of the largest values behind it.
constexpr std::size_t kBufferBytes = std::size_t{6} << 20U;
constexpr std::string_view kExtension = ".part";
constexpr std::size_t kDigits = 16;

std::size_t blocks(std::size_t bytes) {
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

/// Past the system's cache, unless the file system (one in memory) does not know that.
base::Descriptor open_directly(const std::filesystem::path& file, int flags) {
  constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;
  try {
    return base::open_file(file, flags | O_DIRECT, kOwnerOnly);
  } catch (const base::FileError& error) {
    if (error.code() != EINVAL) throw;
  }
  return base::open_file(file, flags & ~O_EXCL, kOwnerOnly);
}

/// Bytes that were read; fewer than wanted at the end of the file.
std::size_t read_at(const base::Descriptor& descriptor, const std::filesystem::path& file,
                    std::span<std::byte> to, std::uint64_t offset) {
  std::size_t got = 0;
  while (got < to.size()) {
    const ssize_t count =
        ::pread(descriptor.number(), to.data() + got, to.size() - got, static_cast<off_t>(offset + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw base::FileError(file, "cannot read", errno);
    if (count == 0) break;
    got += static_cast<std::size_t>(count);
    // What is left begins within a block only at the end of the file.
    if (got % kBlock != 0) break;
  }
  return got;
}

}  // namespace

AlignedBytes::AlignedBytes(std::size_t bytes) : size_(bytes) {
  // Of large pages the system has fewer to hold while a disk reads or writes them.
  constexpr std::size_t kLargePage = std::size_t{2} << 20U;
  const std::size_t alignment = bytes >= 2 * kLargePage ? kLargePage : kBlock;
  const std::size_t room = std::max((bytes + alignment - 1) / alignment * alignment, kBlock);
  data_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, room)));
  if (!data_) throw std::bad_alloc();
  if (alignment == kLargePage) ::madvise(data_.get(), room, MADV_HUGEPAGE);
}

PartWriter::PartWriter(std::filesystem::path file, AlignedBytes& buffer)
    : file_(std::move(file)),
      descriptor_(open_directly(file_, O_WRONLY | O_CREAT | O_EXCL)),
      buffer_(buffer) {
  if (buffer_.size() < kBufferBytes) buffer_ = AlignedBytes(kBufferBytes);
}

PartWriter::~PartWriter() {
  if (finished_) return;
  std::error_code none;
  std::filesystem::remove(file_, none);
}

std::span<std::byte> PartWriter::append(std::size_t bytes) {
  if (used_ >= kWrittenAtOnce) write_blocks();
  // Only a trailer is so long.
  if (used_ + bytes > buffer_.size()) {
    AlignedBytes larger(blocks(used_ + bytes));
    std::memcpy(larger.data(), buffer_.data(), used_);
    buffer_ = std::move(larger);
  }
  const auto room = buffer_.span().subspan(used_, bytes);
  used_ += bytes;
  return room;
}

void PartWriter::write_blocks() {
  const std::size_t whole = used_ / kBlock * kBlock;
  for (std::size_t done = 0; done < whole;) {
    const ssize_t count = ::pwrite(descriptor_.number(), buffer_.data() + done, whole - done,
                                   static_cast<off_t>(written_ + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw base::FileError(file_, "cannot write", errno);
    // Part of a block is what the disk has room for; the rest will say why.
    done += static_cast<std::size_t>(count) / kBlock * kBlock;
    if (count == 0 || static_cast<std::size_t>(count) < kBlock)
      throw base::FileError(file_, "cannot write", ENOSPC);
  }
  written_ += whole;
  std::memmove(buffer_.data(), buffer_.data() + whole, used_ - whole);
  used_ -= whole;
}

void PartWriter::finish(std::string_view trailer) {
  const std::uint64_t end = bytes() + trailer.size();
  const std::size_t fill = static_cast<std::size_t>((kBlock - end % kBlock) % kBlock);
  const auto rest = append(fill + trailer.size());
  std::fill_n(rest.begin(), fill, std::byte{0});
  put(rest.subspan(fill), trailer);
  write_blocks();
  if (::fdatasync(descriptor_.number()) != 0) throw base::FileError(file_, "cannot write", errno);
  descriptor_ = base::Descriptor();
  finished_ = true;
}

PartFiles::PartFiles(std::filesystem::path folder, std::size_t most_open)
    : folder_(std::move(folder)), most_open_(std::max<std::size_t>(most_open, 1)) {}

std::filesystem::path PartFiles::path_of(std::uint64_t part) const {
  std::string digits(kDigits, '0');
  for (std::size_t i = kDigits; i-- > 0; part >>= 4U) digits[i] = "0123456789abcdef"[part & 0xFU];
  return folder_ / (digits + std::string(kExtension));
}

std::map<std::uint64_t, std::uint64_t> PartFiles::list() const {
  std::map<std::uint64_t, std::uint64_t> result;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (name.size() != kDigits + kExtension.size() || !name.ends_with(kExtension)) continue;
    std::uint64_t part = 0;
    const char* const end_of_digits = name.data() + kDigits;
    if (std::from_chars(name.data(), end_of_digits, part, 16).ptr != end_of_digits) continue;
    std::error_code none;
    const std::uintmax_t bytes = entry->file_size(none);
    result.emplace(part, none ? 0 : bytes);
  }
  if (error) throw base::FileError(folder_, "cannot list", error.value());
  return result;
}

PartFiles::Opened PartFiles::open(std::uint64_t part) const {
  std::uint64_t removed = 0;
  {
    const std::lock_guard lock(mutex_);
    removed = removed_;
    if (const auto place = places_.find(part); place != places_.end()) {
      opened_.splice(opened_.begin(), opened_, place->second);
      return place->second->second;
    }
  }
  const auto opened = std::make_shared<const base::Descriptor>(open_directly(path_of(part), O_RDONLY));
  const std::lock_guard lock(mutex_);
  // What was removed meanwhile must not be held: its bytes would stay on the disk.
  if (places_.contains(part) || removed_ != removed) return opened;
  opened_.emplace_front(part, opened);
  places_.emplace(part, opened_.begin());
  if (opened_.size() > most_open_) {
    places_.erase(opened_.back().first);
    opened_.pop_back();
  }
  return opened;
}

std::optional<Stretch> PartFiles::read(std::uint64_t part, std::uint64_t offset, std::size_t bytes) const {
  const Opened opened = open(part);
  const std::size_t before = offset % kBlock;
  Stretch result{AlignedBytes(blocks(before + bytes)), {}};
  if (read_at(*opened, path_of(part), result.memory.span(), offset - before) < before + bytes)
    return std::nullopt;
  result.bytes = result.memory.span().subspan(before, bytes);
  return result;
}

std::optional<std::string> PartFiles::trailer(std::uint64_t part, std::uint64_t file_bytes) const {
  if (file_bytes < kFooterBytes) return std::nullopt;
  const auto footer = read(part, file_bytes - kFooterBytes, kFooterBytes);
  if (!footer) return std::nullopt;
  const auto bytes = trailer_bytes(text_of(footer->bytes));
  if (!bytes || *bytes > file_bytes) return std::nullopt;
  const auto trailer = read(part, file_bytes - *bytes, *bytes);
  if (!trailer) return std::nullopt;
  return std::string(text_of(trailer->bytes));
}

void PartFiles::remove(std::uint64_t part) {
  std::error_code error;
  std::filesystem::remove(path_of(part), error);
  {
    const std::lock_guard lock(mutex_);
    ++removed_;
    if (const auto place = places_.find(part); place != places_.end()) {
      opened_.erase(place->second);
      places_.erase(place);
    }
  }
  if (error) throw base::FileError(path_of(part), "cannot remove", error.value());
}

std::size_t PartFiles::open_files() const {
  const std::lock_guard lock(mutex_);
  return opened_.size();
}

}  // namespace vigil::history
