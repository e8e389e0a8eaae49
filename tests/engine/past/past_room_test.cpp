// Where a past lies in the host's memory: what stays is what it was when its room becomes more, or less.
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/past/past_attend.h"
#include "tests/engine/past/asked_past.h"
#include "tests/kernels/on_device.h"

namespace vigil::past {
namespace {

using kernels::tests_on_gpu;
using testing::Asked;
using testing::counted;
using testing::everything;
using testing::kOff;
using testing::kPast;
using testing::off;

/// A past of blocks of four patches of ten tokens, which are the same again and again.
struct Long {
  Asked asked;
  PastOptions options = everything();
  std::unique_ptr<Past> past;
  /// Of all patches since the first.
  std::vector<std::int32_t> appended;

  explicit Long(std::int64_t host_bytes = PastOptions().host_bytes, const std::string& method = "resv") {
    options = everything(method);
    // Each token is a cluster of its own: then what is laid anew lies as it lay.
    if (options.settings) options.settings->th_hp = 0;
    options.block_patches = 4;
    options.host_bytes = host_bytes;
    past = std::make_unique<Past>(asked.streams[0], asked.model.folder->config.text,
                                  asked.model.parts[0]->pages.layout(), options);
  }
  kernels::Stream& stream() { return asked.streams[0]; }
  void append(int patches) {
    for (int i = 0; i < patches; ++i) {
      const auto first = static_cast<std::size_t>(appended.size() % kPast);
      const auto slots = asked.slots().subspan(first, 10);
      past->append(stream(), asked.model.parts[0]->pages, slots,
                   counted(static_cast<std::int32_t>(first), 10));
      appended.insert(appended.end(), slots.begin(), slots.end());
    }
    past->lay(stream());
  }
  std::vector<float> answer() {
    PastAttend attend;
    attend.add(asked.seen(), std::vector<Past*>{past.get()}, 0);
    return asked.ask({asked.seen()}, attend)[0];
  }
  /// Of full attention to what it has, which is the newest.
  std::vector<float> expected() {
    std::vector<std::int32_t> keys(appended.end() - past->tokens(), appended.end());
    keys.insert(keys.end(), asked.seen().begin(), asked.seen().end());
    return asked.ask({keys}, model::full_attention())[0];
  }
};

TEST(PastTest, WhatIsThereStaysWhereItIsWhenItsRoomGrows) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Long now;
  const std::int64_t first_room = now.past->host_bytes();
  EXPECT_LT(first_room, now.options.host_bytes / 100) << "what is not needed is not taken";
  while (now.past->host_bytes() < 8 * first_room) {
    ASSERT_LT(now.appended.size(), 100U * kPast) << "never full";
    now.append(9);
  }
  EXPECT_EQ(now.past->tokens(), static_cast<std::int64_t>(now.appended.size())) << "nothing was forgotten";
  EXPECT_LT(off(now.expected(), now.answer()), kOff);
}

TEST(PastTest, WithLessRoomTheOldestGoesAndTheRestIsWhatItWas) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Long now;
  now.append(250);
  const std::int64_t bytes = now.past->host_bytes(), tokens = now.past->tokens();
  now.past->resize(now.stream(), bytes);
  EXPECT_EQ(now.past->tokens(), tokens) << "it has no more than that";
  for (const std::int64_t part : {2, 4}) {
    now.past->resize(now.stream(), bytes / part);
    now.past->lay(now.stream());
    EXPECT_LE(now.past->host_bytes(), bytes / part);
    EXPECT_GT(now.past->tokens(), tokens / part * 3 / 4) << "no more went than had to";
    EXPECT_LT(now.past->tokens(), tokens / part + 40);
    EXPECT_EQ(now.past->patches().back(), 2) << "the newest is there";
    EXPECT_LT(off(now.expected(), now.answer()), kOff) << part;
    // And it goes on, within its room.
    now.append(1);
    EXPECT_LE(now.past->host_bytes(), bytes / part);
    EXPECT_LT(off(now.expected(), now.answer()), kOff) << part;
    now.append(79);
  }
}

// Blocks that are closed are never written again, whatever is laid, added or given back beside them.
TEST(PastTest, OfWhatStaysEachBitIsWhatItWas) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Long now, same;
  now.append(62);
  const std::int64_t bytes = now.past->host_bytes();
  now.past->resize(now.stream(), bytes / 3);
  now.past->lay(now.stream());
  const auto kept = static_cast<std::size_t>(now.past->tokens());
  ASSERT_LT(kept, now.appended.size());
  // Made of that alone, with as many blocks.
  same.appended.resize((now.appended.size() - kept) % kPast);
  const std::size_t before = same.appended.size();
  for (std::size_t i = 0; i < kept / 10; ++i) same.append(1);
  ASSERT_EQ(same.appended.size() - before, kept);
  ASSERT_EQ(same.past->patches(), now.past->patches());
  EXPECT_EQ(now.answer(), same.answer());
}

TEST(PastTest, WithMoreRoomAgainMoreIsRemembered) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Long now;
  now.append(40);
  const std::int64_t bytes = now.past->host_bytes();
  now.past->resize(now.stream(), bytes / 2);
  now.append(80);
  const std::int64_t less = now.past->tokens();
  EXPECT_LE(now.past->host_bytes(), bytes / 2);
  now.past->resize(now.stream(), 4 * bytes);
  now.append(80);
  EXPECT_EQ(now.past->tokens(), less + 800) << "nothing has gone since";
  EXPECT_LT(off(now.expected(), now.answer()), kOff);
}

TEST(PastTest, AnOpenBlockThatHasNoRoomByItselfIsGone) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Long now;
  now.append(10);
  now.past->resize(now.stream(), 1);
  EXPECT_EQ(now.past->host_bytes(), 0);
  EXPECT_THROW(now.past->lay(now.stream()), std::invalid_argument);
  EXPECT_EQ(now.past->tokens(), 0);
  EXPECT_LT(off(now.expected(), now.answer()), kOff);
  now.past->resize(now.stream(), now.options.host_bytes);
  now.append(6);
  EXPECT_EQ(now.past->tokens(), 60);
  EXPECT_LT(off(now.expected(), now.answer()), kOff);
}

TEST(PastTest, WhatIsClosedOutlivesAnOpenBlockThatIsGone) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  for (const bool resizes : {false, true}) {
    Long now;
    now.append(8);
    // A third block, which is larger than both before it.
    for (int i = 0; i < 3; ++i)
      now.past->append(now.stream(), now.asked.model.parts[0]->pages, now.asked.slots().first(kPast),
                       counted(0, kPast));
    now.past->resize(now.stream(), now.past->host_bytes());
    EXPECT_THROW(now.past->lay(now.stream()), std::invalid_argument);
    EXPECT_EQ(now.past->tokens(), 80);
    EXPECT_LT(off(now.expected(), now.answer()), kOff);
    if (resizes) {
      now.past->resize(now.stream(), now.past->host_bytes() / 2);
    } else {
      now.past->forget_block(now.stream());
    }
    now.past->lay(now.stream());
    // Whole slabs go, whichever blocks lie in them.
    EXPECT_LE(now.past->tokens(), 40);
    if (!resizes) {
      EXPECT_EQ(now.past->tokens(), 40);
    }
    EXPECT_LT(off(now.expected(), now.answer()), kOff);
    now.append(2);
    EXPECT_LT(off(now.expected(), now.answer()), kOff);
  }
}

TEST(PastTest, AControlForgetsNothingForLessRoom) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Long now(PastOptions().host_bytes, "all");
  now.append(10);
  EXPECT_THROW(now.past->resize(now.stream(), 1), std::logic_error);
}

TEST(PastTest, AllPartsOfAModelHaveLessRoomTogether) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  if (tests_on_gpu() && kernels::cuda_devices() < 2) GTEST_SKIP() << "skipped, one GPU";
  Asked asked(2);
  PastOptions options = everything();
  options.block_patches = 2;
  const auto past = asked.passes.make_past(options);
  for (int i = 0; i < 100; ++i)
    past->append(asked.slots().subspan(static_cast<std::size_t>(i % 9 * 10), 10), counted(i * 10, 10));
  past->lay();
  const std::int64_t bytes = past->host_bytes(), tokens = past->tokens();
  past->resize(bytes / 3);
  past->lay();
  EXPECT_LE(past->host_bytes(), bytes / 3);
  EXPECT_GT(past->tokens(), 0);
  EXPECT_LT(past->tokens(), tokens / 2);
  std::vector<std::int32_t> keys;
  for (auto i = static_cast<int>(100 - past->tokens() / 10); i < 100; ++i) {
    const auto slots = asked.slots().subspan(static_cast<std::size_t>(i % 9 * 10), 10);
    keys.insert(keys.end(), slots.begin(), slots.end());
  }
  keys.insert(keys.end(), asked.seen().begin(), asked.seen().end());
  EXPECT_LT(off(asked.ask({keys}, model::full_attention())[0],
                asked.ask({asked.seen()}, model::full_attention(), past.get())[0]),
            kOff);
}

}  // namespace
}  // namespace vigil::past
