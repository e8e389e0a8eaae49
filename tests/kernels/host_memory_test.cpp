// The host's memory as devices copy it, and places in their order.
#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/buffer.h"
#include "kernels/device/host_buffer.h"
#include "kernels/device/mark.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20U;

TEST(HostMemoryTest, CountsWhatIsOutAndGivesNoMore) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  HostMemory memory(test_stream(), 4 * kMebi);
  HostBytes first = memory.take(3 * kMebi);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.get()) % 64, 0U);
  EXPECT_EQ(memory.used(), 3 * kMebi);
  EXPECT_EQ(memory.take(3 * kMebi), nullptr);
  const HostBytes other = first;
  first = nullptr;
  EXPECT_EQ(memory.used(), 3 * kMebi) << "somebody has it still";
  const HostBytes second = memory.take(kMebi);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(memory.take(1), nullptr);
}

TEST(HostMemoryTest, WhatComesBackIsGivenOutAgain) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  HostMemory memory(test_stream(), 4 * kMebi);
  const std::byte* before = memory.take(2 * kMebi).get();
  EXPECT_EQ(memory.used(), 0U);
  HostBytes again = memory.take(2 * kMebi - 100);
  EXPECT_EQ(again.get(), before);
  again = nullptr;
  // What waits in another size makes room.
  EXPECT_NE(memory.take(4 * kMebi), nullptr);
  HostBytes outlives;
  {
    HostMemory brief(test_stream(), kMebi);
    outlives = brief.take(1000);
  }
  std::fill_n(outlives.get(), 1000, std::byte{7});
}

TEST(HostMemoryTest, LittleIsLostByRounding) {
  for (std::size_t bytes = 1; bytes < (std::size_t{1} << 26U); bytes += 1 + bytes / 97) {
    const std::size_t rounded = HostMemory::rounded(bytes);
    ASSERT_GE(rounded, bytes);
    ASSERT_LE(rounded, std::max<std::size_t>(4096, bytes + bytes / 8 + 1)) << bytes;
    ASSERT_EQ(rounded % 64, 0U);
  }
}

TEST(HostMemoryTest, ManyMayAskAtOnce) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  HostMemory memory(test_stream(), 64 * kMebi);
  std::vector<std::thread> threads;
  for (std::uint32_t seed = 0; seed < 4; ++seed)
    threads.emplace_back([&memory, seed] {
      std::uint32_t random = seed;
      std::vector<HostBytes> held;
      for (int i = 0; i < 2000; ++i) {
        random = random * 1664525U + 1013904223U;
        if (held.size() > 8) held.erase(held.begin());
        const std::size_t bytes = 1 + random % (3 * kMebi);
        if (HostBytes taken = memory.take(bytes)) {
          taken[0] = taken[static_cast<std::ptrdiff_t>(bytes) - 1] = std::byte{1};
          held.push_back(std::move(taken));
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.used(), 0U);
}

// A copy beside the stream that made what is copied, and a host that waits for it alone.
TEST(MarkTest, TellsWhenWhatWasSubmittedIsDone) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stream work = test_stream(), copies = test_stream();
  HostMemory memory(work, 64 * kMebi);
  constexpr std::size_t kBytes = 16 * kMebi;
  std::vector<std::uint8_t> sent(kBytes);
  for (std::size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<std::uint8_t>(i * 13 + i / 509);
  const Buffer first(work, kBytes), second(work, kBytes);
  const HostBytes to = memory.take(kBytes);
  Mark none;
  EXPECT_TRUE(none.is_reached());
  none.wait();
  for (int round = 0; round < 5; ++round) {
    upload(work, first.data(), sent.data(), kBytes);
    copy(work, second.data(), first.data(), kBytes);
    follow(copies, work);
    copy(copies, to.get(), second.data(), kBytes);
    Mark done(copies);
    std::thread other([&done] { done.wait(); });
    other.join();
    EXPECT_TRUE(done.is_reached());
    none = std::move(done);
    ASSERT_TRUE(std::equal(sent.begin(), sent.end(), reinterpret_cast<const std::uint8_t*>(to.get())));
    std::rotate(sent.begin(), sent.begin() + 1, sent.end());
    // What is written next has to wait for what is read, and for nothing else.
    if (round % 2 == 0) {
      none.hold(work);
    } else {
      follow(work, copies);
    }
  }
  copies.synchronize();
  work.synchronize();
}

}  // namespace
}  // namespace vigil::kernels
