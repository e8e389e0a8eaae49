#include "cluster/process.h"

#include <array>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <system_error>

namespace vigil::cluster {

ThreadTimes::ThreadTimes(std::filesystem::path tasks) : tasks_(std::move(tasks)), last_(read()) {}

std::map<std::string, ThreadTimes::Thread> ThreadTimes::read() const {
  std::map<std::string, Thread> threads;
  std::error_code gone;
  for (const auto& task : std::filesystem::directory_iterator(tasks_, gone)) {
    Thread thread;
    // A thread may end while it is looked at: then its files are empty or missing.
    std::ifstream name(task.path() / "comm");
    std::ifstream time(task.path() / "schedstat");
    if (std::getline(name, thread.name) && time >> thread.nanoseconds)
      threads.emplace(task.path().filename().string(), std::move(thread));
  }
  return threads;
}

void ThreadTimes::sample() {
  std::map<std::string, Thread> now = read();
  for (const auto& [id, thread] : now) {
    const auto before = last_.find(id);
    // The kernel gives ids again; a thread that has done less than its predecessor is another.
    const bool same = before != last_.end() && before->second.nanoseconds <= thread.nanoseconds;
    const std::uint64_t known = same ? before->second.nanoseconds : 0;
    by_name_[thread.name] += static_cast<double>(thread.nanoseconds - known) * 1e-9;
  }
  last_ = std::move(now);
}

double process_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

ProcessMemory process_memory(const std::filesystem::path& status) {
  ProcessMemory memory;
  std::ifstream file(status);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string key;
    std::uint64_t kibibytes = 0;
    if (!(words >> key >> kibibytes)) continue;
    if (key == "VmRSS:") memory.resident_bytes = kibibytes * 1024;
    if (key == "VmHWM:") memory.most_resident_bytes = kibibytes * 1024;
  }
  return memory;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

double load_average() {
  std::array<double, 1> load{};
  return getloadavg(load.data(), 1) == 1 ? load[0] : 0;
}

}  // namespace vigil::cluster
