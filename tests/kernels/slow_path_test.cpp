#include "kernels/device/slow_path.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/gather/gather.h"
#include "kernels/linear/linear.h"
#include "kernels/quantize/quantize.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

using Lines = std::vector<std::string>;

TEST(SlowPathListTest, TellsEachLineOnceAndAListenerThatComesLaterToo) {
  SlowPathList list;
  list.tell("rope", "odd rows");
  list.tell("rope", "odd rows");
  Lines first, second;
  list.listen([&](const std::string& line) { first.push_back(line); });
  EXPECT_EQ(first, (Lines{"rope: odd rows"}));
  list.tell("rope", "odd rows");
  list.tell("linear", "odd rows");
  EXPECT_EQ(first, (Lines{"rope: odd rows", "linear: odd rows"}));
  list.listen([&](const std::string& line) { second.push_back(line); });
  list.tell("linear", "no room");
  list.listen({});
  list.tell("linear", "nobody hears");
  EXPECT_EQ(first.size(), 2U);
  EXPECT_EQ(second, (Lines{"rope: odd rows", "linear: odd rows", "linear: no room"}));
  EXPECT_EQ(list.told().size(), 4U);
}

TEST(SlowPathListTest, KeepsABoundedNumberAndSaysSo) {
  SlowPathList list;
  Lines heard;
  list.listen([&](const std::string& line) { heard.push_back(line); });
  for (int i = 0; i < 1000; ++i) list.tell("linear", std::to_string(i));
  EXPECT_EQ(heard.size(), SlowPathList::kMost);
  EXPECT_EQ(heard[heard.size() - 2], "linear: " + std::to_string(SlowPathList::kMost - 2));
  EXPECT_EQ(heard.back(), "more operations take slower ways than are told");
  EXPECT_EQ(list.told(), heard);
}

TEST(SlowPathListTest, AListenerThatFailsStopsNothing) {
  SlowPathList list;
  int calls = 0;
  list.listen([&](const std::string&) {
    ++calls;
    throw std::runtime_error("no log");
  });
  list.tell("rope", "one");
  list.tell("rope", "two");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(list.told(), (Lines{"rope: one", "rope: two"}));
}

TEST(SlowPathListTest, ManyThreadsTellOnce) {
  SlowPathList list;
  Lines heard;
  list.listen([&](const std::string& line) { heard.push_back(line); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i)
    threads.emplace_back([&] {
      for (int j = 0; j < 200; ++j) list.tell("linear", std::to_string(j % 20));
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(heard.size(), 20U);
}

/// How often the process's list has this line.
std::ptrdiff_t told(const std::string& line) {
  const Lines lines = slow_paths().told();
  return std::count(lines.begin(), lines.end(), line);
}

TEST(SlowPathTest, IsTakenOftenAndToldOnce) {
  static SlowPath slow{"test", "taken"};
  static SlowPath same{"test", "taken"};
  EXPECT_EQ(told("test: taken"), 0);
  int heard = 0;
  set_slow_path_listener([&](const std::string& line) { heard += line == "test: taken" ? 1 : 0; });
  for (int i = 0; i < 3; ++i) {
    slow.taken();
    same.taken();
  }
  set_slow_path_listener({});
  EXPECT_EQ(told("test: taken"), 1);
  EXPECT_EQ(heard, 1);
}

TEST(SlowPathTest, ProductsOfE4m3OnTheCpuAreOne) {
  Stream stream = Stream::cpu(1);
  Random random(1);
  const TestMatrix x = TestMatrix::random(DType::f32, 2, 20, random),
                   w = TestMatrix::random(DType::f32, 3, 20, random);
  TestMatrix out(DType::f32, 2, 3);
  const Buffer memory(stream, e4m3_bytes(3, 20));
  const Matrix rounded = e4m3_matrix(memory.data(), 3, 20);
  quantize_rows(stream, w.view(), rounded);
  for (int i = 0; i < 2; ++i) linear(stream, x.view(), rounded, out.view());
  EXPECT_EQ(told("linear: the CPU has no products of e4m3: computed in f32"), 1);
}

TEST(SlowPathTest, OddRowsOnAGpuAreOne) {
  if (!tests_on_gpu()) GTEST_SKIP() << "of GPUs only";
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream();
  const std::vector<std::int32_t> rows{1, 0};
  const DeviceArray<std::int32_t> order(stream, rows);
  const auto gather = [&](std::int64_t cols) {
    Random random(2);
    const TestMatrix from = TestMatrix::random(DType::f32, 2, cols, random);
    TestMatrix to(DType::f32, 2, cols);
    gather_rows(stream, OnDevice(stream, from), order.data(), OnDevice(stream, to));
    stream.synchronize();
  };
  const std::string line = std::string("gather_rows: ").append(kOddRows);
  const std::ptrdiff_t before = told(line);
  gather(8);
  EXPECT_EQ(told(line), before) << "whole packs are the fast way";
  gather(3);
  gather(3);
  EXPECT_EQ(told(line), 1);
}

}  // namespace
}  // namespace vigil::kernels
