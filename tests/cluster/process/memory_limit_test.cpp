#include "cluster/process/memory_limit.h"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "tests/temporary_folder.h"

namespace vigil::cluster {
namespace {

namespace fs = std::filesystem;

class MemoryLimitTest : public ::testing::Test {
 protected:
  void write(const fs::path& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  void machine(const std::string& text = "MemTotal:       16384 kB\nMemFree:         1000 kB\n") {
    write("proc/meminfo", text);
  }
  std::optional<std::uint64_t> limit() const { return memory_limit(root_); }

  const TemporaryFolder scratch_;
  const fs::path& root_ = scratch_.path();
};

constexpr std::uint64_t kMachine = std::uint64_t{16384} << 10U;

TEST_F(MemoryLimitTest, WithoutAGroupIsThatOfTheMachine) {
  machine();
  EXPECT_EQ(limit(), kMachine);
  write("proc/self/cgroup", "0::/system.slice/vigil.service\n");
  EXPECT_EQ(limit(), kMachine) << "a group that cannot be seen";
  write("sys/fs/cgroup/system.slice/vigil.service/memory.max", "max\n");
  EXPECT_EQ(limit(), kMachine);
}

TEST_F(MemoryLimitTest, IsTheLeastOfItsGroupAndThoseAbove) {
  machine();
  write("proc/self/cgroup", "0::/a/b\n");
  write("sys/fs/cgroup/a/b/memory.max", "9000000\n");
  EXPECT_EQ(limit(), 9000000U);
  write("sys/fs/cgroup/a/memory.max", "8000000\n");
  EXPECT_EQ(limit(), 8000000U);
  write("sys/fs/cgroup/memory.max", "7000000\n");
  EXPECT_EQ(limit(), 7000000U) << "that of a container, which sees itself as the root";
  write("sys/fs/cgroup/a/b/memory.max", "6000000\n");
  EXPECT_EQ(limit(), 6000000U);
  write("sys/fs/cgroup/other/memory.max", "5\n");
  EXPECT_EQ(limit(), 6000000U) << "another group's";
}

TEST_F(MemoryLimitTest, AContainerAtTheRootOfItsGroups) {
  machine();
  write("proc/self/cgroup", "0::/\n");
  write("sys/fs/cgroup/memory.max", "4194304\n");
  EXPECT_EQ(limit(), 4194304U);
  write("sys/fs/cgroup/memory.max", "99999999999999\n");
  EXPECT_EQ(limit(), kMachine) << "there is no more than the machine has";
}

TEST_F(MemoryLimitTest, OfTheFirstVersionToo) {
  machine();
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/a/b\n0::/\n");
  write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "1\n");
  EXPECT_EQ(limit(), kMachine) << "that is of its processors' group";
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(limit(), kMachine);
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3000000\n");
  EXPECT_EQ(limit(), 3000000U);
}

TEST_F(MemoryLimitTest, WhatMakesNoSenseSaysNothing) {
  EXPECT_EQ(limit(), std::nullopt) << "nothing is there";
  machine("MemTotal:\nMemTotal\nnonsense");
  write("proc/self/cgroup", "nonsense\n0:\n::\n");
  write("sys/fs/cgroup/memory.max", "");
  EXPECT_EQ(limit(), std::nullopt);
  machine("MemTotal: 99999999999999999 kB\n");
  EXPECT_EQ(limit(), std::nullopt) << "more than can be";
  write("sys/fs/cgroup/memory.max", "77\n");
  EXPECT_EQ(limit(), 77U);
  write("sys/fs/cgroup/memory.max", "0\n");
  EXPECT_EQ(limit(), 0U) << "that says something";
}

TEST(MemoryLimit, IsThatOfThisMachine) {
  EXPECT_GT(memory_limit().value_or(0), std::uint64_t{1} << 26U);
}

}  // namespace
}  // namespace vigil::cluster
