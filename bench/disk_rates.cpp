#include "bench/disk_rates.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/durable.h"

namespace vigil::bench {
namespace {

namespace fs = std::filesystem;

struct FreeBytes {
  void operator()(std::byte* bytes) const { std::free(bytes); }
};
using DirectBuffer = std::unique_ptr<std::byte, FreeBytes>;

/// As direct I/O wants it.
DirectBuffer direct_buffer(std::size_t bytes) {
  constexpr std::size_t kDirectBlock = 4096;
  DirectBuffer buffer(static_cast<std::byte*>(std::aligned_alloc(kDirectBlock, bytes)));
  if (!buffer) throw std::bad_alloc();
  return buffer;
}

fs::path plain_file(const DiskLayout& layout, std::size_t file) {
  return layout.folder / (std::to_string(file) + ".plain");
}

void require_whole(ssize_t did, std::size_t bytes, const fs::path& path, const char* what) {
  if (did != static_cast<ssize_t>(bytes)) throw base::FileError(path, what, did < 0 ? errno : EIO);
}

/// Runs `fio` to its end, whatever it prints in `to`; its status, nothing if it cannot be started.
std::optional<int> run_fio(std::vector<std::string> arguments, const fs::path& to) {
  arguments.insert(arguments.begin(), "fio");
  std::vector<char*> words;
  words.reserve(arguments.size() + 1);
  for (std::string& each : arguments) words.push_back(each.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, to.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int code = ::posix_spawnp(&child, words.front(), &actions, nullptr, words.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (code != 0) return std::nullopt;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Its report.
double fio(const DiskLayout& layout, const std::vector<std::string>& job, const char* direction) {
  std::vector<std::string> arguments{"--output-format=json",
                                     "--name=bench",
                                     "--ioengine=psync",
                                     "--direct=1",
                                     "--invalidate=1",
                                     "--group_reporting",
                                     "--bs=" + std::to_string(layout.value_bytes),
                                     "--directory=" + layout.folder.string()};
  arguments.insert(arguments.end(), job.begin(), job.end());
  const fs::path told = layout.folder / "fio.json";
  if (!run_fio(arguments, told)) throw std::runtime_error("fio cannot be started");
  std::ifstream stream(told);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  const auto report = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded() || !report.contains("jobs"))
    throw std::runtime_error("fio says: " + text.substr(0, text.find('\n')));
  return report["jobs"][0][direction]["bw_bytes"].get<double>();
}

}  // namespace

std::vector<std::size_t> order_of(const DiskLayout& layout, std::size_t file) {
  std::vector<std::size_t> order(layout.values());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::mt19937 random(static_cast<unsigned>(file));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

double rate_of(const DiskLayout& layout, const base::Clock& clock, const std::function<void()>& work) {
  const auto begin = clock.now();
  work();
  return layout.bytes() / std::chrono::duration<double>(clock.now() - begin).count();
}

double read_rate(const DiskLayout& layout, int threads, const base::Clock& clock,
                 const std::function<void(std::size_t file)>& read) {
  std::vector<std::exception_ptr> failures(static_cast<std::size_t>(threads));
  const double rate = rate_of(layout, clock, [&] {
    std::vector<std::jthread> all;
    all.reserve(failures.size());
    for (std::size_t thread = 0; thread < failures.size(); ++thread) {
      all.emplace_back([&, thread] {
        try {
          for (std::size_t file = thread; file < layout.files; file += failures.size()) read(file);
        } catch (...) {
          failures[thread] = std::current_exception();
        }
      });
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
  return rate;
}

double write_plain(const DiskLayout& layout, std::span<const std::byte> value, const base::Clock& clock) {
  const DirectBuffer buffer = direct_buffer(value.size());
  std::memcpy(buffer.get(), value.data(), value.size());
  return rate_of(layout, clock, [&] {
    for (std::size_t file = 0; file < layout.files; ++file) {
      const fs::path path = plain_file(layout, file);
      const base::Descriptor opened = base::open_file(path, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
      for (std::size_t i = 0; i < layout.values(); ++i) {
        const auto at = static_cast<off_t>(i * value.size());
        require_whole(::pwrite(opened.number(), buffer.get(), value.size(), at), value.size(), path,
                      "cannot be written");
      }
      require_whole(::fdatasync(opened.number()), 0, path, "cannot be synced");
    }
  });
}

double read_plain(const DiskLayout& layout, int threads, const base::Clock& clock) {
  return read_rate(layout, threads, clock, [&](std::size_t file) {
    const DirectBuffer buffer = direct_buffer(layout.value_bytes);
    const fs::path path = plain_file(layout, file);
    const base::Descriptor opened = base::open_file(path, O_RDONLY | O_DIRECT);
    for (const std::size_t i : order_of(layout, file)) {
      const auto at = static_cast<off_t>(i * layout.value_bytes);
      require_whole(::pread(opened.number(), buffer.get(), layout.value_bytes, at), layout.value_bytes, path,
                    "cannot be read");
    }
  });
}

bool has_fio() {
  return run_fio({"--version"}, "/dev/null") == 0;
}

double write_fio(const DiskLayout& layout) {
  return fio(
      layout,
      {"--rw=write", "--end_fsync=1", "--fallocate=none", "--file_service_type=sequential", "--openfiles=1",
       "--nrfiles=" + std::to_string(layout.files), "--filesize=" + std::to_string(layout.file_bytes)},
      "write");
}

double read_fio(const DiskLayout& layout, int threads) {
  std::string names;
  for (std::size_t file = 0; file < layout.files; ++file)
    names += (file > 0 ? ":bench.0." : "bench.0.") + std::to_string(file);
  const std::size_t bytes = layout.files * layout.file_bytes;
  return fio(layout,
             {"--rw=randread", "--thread", "--filename=" + names, "--size=" + std::to_string(bytes),
              "--io_size=" + std::to_string(bytes / static_cast<std::size_t>(threads)),
              "--numjobs=" + std::to_string(threads)},
             "read");
}

WrittenBytes written_bytes(const fs::path& io) {
  std::ifstream stream(io);
  WrittenBytes bytes;
  std::uint64_t cancelled = 0;
  int known = 0;
  std::string name;
  for (std::uint64_t value = 0; stream >> name >> value;) {
    if (name == "wchar:") bytes.calls = value;
    if (name == "write_bytes:") bytes.storage = value;
    // Of files that went before their bytes had come to the disk.
    if (name == "cancelled_write_bytes:") cancelled = value;
    known += name == "wchar:" || name == "write_bytes:" ? 1 : 0;
  }
  if (known != 2) throw std::runtime_error(io.string() + " does not tell how many bytes were written");
  bytes.storage -= std::min(bytes.storage, cancelled);
  return bytes;
}

void drop_cache(const fs::path& folder) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const base::Descriptor opened = base::open_file(entry.path(), O_RDONLY);
    // What was not written yet cannot go.
    require_whole(::fdatasync(opened.number()), 0, entry.path(), "cannot be synced");
    if (const int code = ::posix_fadvise(opened.number(), 0, 0, POSIX_FADV_DONTNEED))
      throw base::FileError(entry.path(), "cannot be dropped from the cache", code);
  }
}

std::uint64_t folder_bytes(const fs::path& folder) {
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) bytes += entry.file_size();
  return bytes;
}

}  // namespace vigil::bench
