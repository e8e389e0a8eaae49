#include "cluster/process/process.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <future>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

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
    if (key == "VmSize:") memory.virtual_bytes = kibibytes * 1024;
    if (key == "VmHWM:") memory.most_resident_bytes = kibibytes * 1024;
  }
  return memory;
}

std::uint64_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  const rlim_t now = std::exchange(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : now;
}

std::size_t startable_threads(std::size_t wanted) {
  std::promise<void> enough;
  const std::shared_future<void> waits = enough.get_future().share();
  std::vector<std::thread> threads;
  threads.reserve(wanted);
  try {
    while (threads.size() < wanted) threads.emplace_back([waits] { waits.wait(); });
  } catch (const std::exception&) {
    // No thread, or no memory for one: those that were started are the answer.
  }
  enough.set_value();
  for (std::thread& thread : threads) thread.join();
  return threads.size();
}

Descriptors process_descriptors() {
  Descriptors descriptors;
  std::error_code gone;
  for (std::filesystem::directory_iterator each("/proc/self/fd", gone), end; each != end;
       each.increment(gone))
    ++descriptors.open;
  // The one that counts.
  if (descriptors.open > 0) --descriptors.open;
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) descriptors.most = limit.rlim_cur;
  return descriptors;
}

double process_start_seconds(const std::filesystem::path& processes) {
  std::ifstream process(processes / "self" / "stat");
  std::string line;
  std::getline(process, line);
  // The name in parentheses may hold anything; the start is the 20th field behind it.
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string field;
  for (int i = 0; i < 20; ++i) fields >> field;
  std::ifstream machine(processes / "stat");
  for (std::string boot; std::getline(machine, boot);)
    if (boot.starts_with("btime ") && fields)
      return std::strtod(boot.c_str() + 6, nullptr) +
             std::strtod(field.c_str(), nullptr) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return 0;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown processor";
}

std::string host_name(std::string_view given) {
  constexpr std::size_t kLongest = 128;
  std::string name(given.substr(0, kLongest));
  const auto of_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  std::replace_if(
      name.begin(), name.end(), [&](char c) { return !of_word(c) && c != '.' && c != '_' && c != '-'; }, '-');
  name.erase(name.begin(), std::find_if(name.begin(), name.end(), of_word));
  return name.empty() ? "vigil" : name;
}

std::string host_name() {
  std::array<char, 256> name{};
  // One byte less: a name that is cut need not end in NUL.
  return host_name(::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "");
}

double load_average() {
  std::array<double, 1> load{};
  return getloadavg(load.data(), 1) == 1 ? load[0] : 0;
}

}  // namespace vigil::cluster
