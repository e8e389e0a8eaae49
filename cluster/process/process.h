// This process: its processor time by thread, its memory, and its descriptors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace vigil::cluster {

/// Processor time of this process's threads since the object was made, added up by the threads' names. A
/// thread that ends between two samples is known up to the last one. Not thread-safe.
class ThreadTimes {
 public:
  /// `tasks`: the folder of threads in the layout of /proc/PID/task.
  explicit ThreadTimes(std::filesystem::path tasks = "/proc/self/task");

  void sample();

  /// Seconds until the last sample.
  const std::map<std::string, double>& by_name() const { return by_name_; }

 private:
  struct Thread {
    std::string name;
    std::uint64_t nanoseconds = 0;
  };
  std::map<std::string, Thread> read() const;

  std::filesystem::path tasks_;
  std::map<std::string, Thread> last_;
  std::map<std::string, double> by_name_;
};

/// Of all threads, those that have ended included.
double process_cpu_seconds();

struct ProcessMemory {
  std::uint64_t resident_bytes = 0;
  std::uint64_t most_resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
};
/// `status`: in the layout of /proc/PID/status. What is not there is 0.
ProcessMemory process_memory(const std::filesystem::path& status = "/proc/self/status");

/// Lets this process open as many files and sockets as it is allowed to at most; returns how many. What it
/// starts later inherits that.
std::uint64_t raise_descriptor_limit();

/// How many of so many threads this process can start now: starts them, and ends them again. It may be kept
/// from more by the limits of its user, its container or its system.
std::size_t startable_threads(std::size_t wanted);

struct Descriptors {
  std::uint64_t open = 0;
  std::uint64_t most = 0;
};
/// Of this process.
Descriptors process_descriptors();

/// When this process started, in seconds since 1970; `processes`: in the layout of /proc. 0 if it is not
/// there.
double process_start_seconds(const std::filesystem::path& processes = "/proc");

/// As /proc/cpuinfo names it, or "unknown processor".
std::string processor_name();

/// The host's name as part of a topic: '-' stands for what no name has. "vigil" if there is none.
std::string host_name();
std::string host_name(std::string_view given);

/// Processes that ran or wanted to over the last minute, on average.
double load_average();

}  // namespace vigil::cluster
