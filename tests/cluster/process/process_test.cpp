#include "cluster/process/process.h"

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>
#include <pthread.h>

#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

namespace fs = std::filesystem;

class ThreadTimesTest : public ::testing::Test {
 protected:
  void thread(const std::string& id, const std::string& name, double seconds) {
    fs::create_directories(folder_ / id);
    std::ofstream(folder_ / id / "comm") << name << '\n';
    std::ofstream(folder_ / id / "schedstat") << static_cast<std::uint64_t>(seconds * 1e9) << " 17 3\n";
  }

  const TemporaryFolder scratch_;
  const fs::path& folder_ = scratch_.path();
};

TEST_F(ThreadTimesTest, AddsUpWhatThreadsOfANameSpentSinceTheBegin) {
  thread("1", "vigil", 5);
  thread("2", "vision", 1);
  thread("3", "vision", 2);
  ThreadTimes times(folder_);
  EXPECT_TRUE(times.by_name().empty());
  thread("1", "vigil", 5.5);
  thread("2", "vision", 2);
  thread("3", "vision", 4);
  times.sample();
  EXPECT_NEAR(times.by_name().at("vigil"), 0.5, 1e-9);
  EXPECT_NEAR(times.by_name().at("vision"), 3, 1e-9);
}

TEST_F(ThreadTimesTest, ThreadsThatEndCountUpToTheirLastSampleAndNewOnesFromZero) {
  thread("2", "camera", 1);
  ThreadTimes times(folder_);
  thread("2", "camera", 4);
  times.sample();
  fs::remove_all(folder_ / "2");
  thread("9", "camera", 0.5);
  times.sample();
  EXPECT_NEAR(times.by_name().at("camera"), 3.5, 1e-9);
  thread("9", "camera", 0.25);  // another thread with the same id
  times.sample();
  EXPECT_NEAR(times.by_name().at("camera"), 3.75, 1e-9);
}

TEST_F(ThreadTimesTest, AThreadThatEndsWhileItIsLookedAtIsPassedOver) {
  thread("2", "camera", 1);
  fs::create_directories(folder_ / "3");
  std::ofstream(folder_ / "4");
  ThreadTimes times(folder_);
  thread("2", "camera", 2);
  times.sample();
  EXPECT_EQ(times.by_name().size(), 1U);
  ThreadTimes nowhere(folder_ / "none");
  nowhere.sample();
  EXPECT_TRUE(nowhere.by_name().empty());
}

TEST(Process, ItsOwnThreadsAreSeenByName) {
  std::atomic<bool> go{false};
  std::atomic<bool> worked{false};
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    pthread_setname_np(pthread_self(), "worker-of-test");
    while (!go) std::this_thread::yield();
    const double begin = process_cpu_seconds();
    while (process_cpu_seconds() - begin < 0.02) {
    }
    worked = true;
    while (!stop) std::this_thread::yield();
  });
  ThreadTimes times;
  go = true;
  while (!worked) std::this_thread::yield();
  times.sample();
  stop = true;
  worker.join();
  EXPECT_GT(times.by_name().at("worker-of-test"), 0.005);
}

TEST(Process, CountsTheThreadsThatItCanStart) {
  EXPECT_EQ(startable_threads(0), 0U);
  EXPECT_EQ(startable_threads(5), 5U) << "a test that is kept from more, tests/services/threads_test.py is";
}

TEST(Process, ReadsWhatTheKernelSaysOfMemory) {
  const TemporaryFolder folder;
  const fs::path status = folder / "status";
  std::ofstream(status) << "Name:\tvigil\nVmHWM:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t3\n";
  EXPECT_EQ(process_memory(status).resident_bytes, 1U << 20U);
  EXPECT_EQ(process_memory(status).most_resident_bytes, 2U << 20U);
  fs::remove(status);
  EXPECT_EQ(process_memory(status).resident_bytes, 0U);
  const ProcessMemory own = process_memory();
  EXPECT_GT(own.resident_bytes, 1U << 20U);
  EXPECT_GE(own.most_resident_bytes, own.resident_bytes);
}

TEST(Process, AHostsNameIsPartOfATopic) {
  EXPECT_EQ(host_name("gate-7.example"), "gate-7.example");
  EXPECT_EQ(host_name("a/b c"), "a-b-c");
  EXPECT_EQ(host_name("..-x"), "x");
  EXPECT_EQ(host_name(""), "vigil");
  EXPECT_EQ(host_name("/"), "vigil");
  EXPECT_EQ(host_name(std::string(300, 'n')).size(), 128U);
  EXPECT_FALSE(host_name().empty());
}

}  // namespace
}  // namespace vigil::cluster
