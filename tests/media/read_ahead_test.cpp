// Reading ahead changes when frames are read and nothing else.
#include "media/read_ahead.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/clip.h"

namespace vigil::media {
namespace {

constexpr std::chrono::seconds kDeadline{20};

/// Yields frames 0, 1, 2, … and then nothing, or what `fail_at` says.
class Counter final : public VideoReader {
 public:
  struct Calls {
    std::mutex mutex;
    std::condition_variable changed;
    int made = 0;
    bool gone = false;

    bool reach(int count) {
      std::unique_lock lock(mutex);
      return changed.wait_for(lock, kDeadline, [&] { return made >= count; });
    }
  };

  Counter(Calls& calls, int frames, int fail_at = -1) : calls_(calls), frames_(frames), fail_at_(fail_at) {
    info_.name = "counter";
  }
  ~Counter() override { calls_.gone = true; }

  const SourceInfo& info() const override { return info_; }
  const ReadStats& stats() const override { return stats_; }
  const std::vector<FrameMotion>& rest() const override { return rest_; }

  std::optional<SampledFrame> next() override {
    const int frame = static_cast<int>(stats_.sampled_frames);
    {
      const std::lock_guard lock(calls_.mutex);
      ++calls_.made;
    }
    calls_.changed.notify_all();
    if (frame == fail_at_) throw Error("counter: broken", Error::Kind::timeout);
    if (frame == frames_) {
      rest_.resize(3);
      return std::nullopt;
    }
    ++stats_.sampled_frames;
    SampledFrame sample;
    sample.sequence = static_cast<std::uint64_t>(frame);
    return sample;
  }

 private:
  Calls& calls_;
  int frames_;
  int fail_at_;
  SourceInfo info_;
  ReadStats stats_;
  std::vector<FrameMotion> rest_;
};

TEST(ReadAhead, YieldsWhatTheReaderYields) {
  const Scratch scratch;
  Clip clip;
  clip.b_frames = 2;
  write_clip(scratch / "a.mp4", clip);
  ReadOptions options;
  options.fps = 12.5;
  options.size = [](Size) { return Size{64, 48}; };
  const auto plain = VideoReader::open(scratch / "a.mp4", options);
  const auto ahead = std::make_unique<ReadAhead>(VideoReader::open(scratch / "a.mp4", options), 4);
  EXPECT_EQ(ahead->info().codec, plain->info().codec);
  int frames = 0;
  while (const auto expected = plain->next()) {
    const auto frame = ahead->next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->sequence, expected->sequence);
    EXPECT_EQ(frame->seconds, expected->seconds);
    EXPECT_EQ(frame->image->rgb, expected->image->rgb);
    EXPECT_EQ(frame->motion->frames.size(), expected->motion->frames.size());
    EXPECT_EQ(ahead->stats().decoded_frames, plain->stats().decoded_frames);
    EXPECT_EQ(ahead->stats().sampled_frames, plain->stats().sampled_frames);
    ++frames;
  }
  EXPECT_EQ(frames, 25);
  EXPECT_FALSE(ahead->next());
  EXPECT_EQ(ahead->stats().packets, plain->stats().packets);
  EXPECT_EQ(ahead->rest().size(), plain->rest().size());
}

TEST(ReadAhead, ReadsAsFarAsItMayAndNoFurther) {
  Counter::Calls calls;
  ReadAhead reader(std::make_unique<Counter>(calls, 20), 3);
  // Three in store and one in hand.
  ASSERT_TRUE(calls.reach(4));
  EXPECT_TRUE(reader.ready());
  for (int taken = 1; taken <= 20; ++taken) {
    const auto frame = reader.next();
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->sequence, static_cast<std::uint64_t>(taken - 1));
    EXPECT_EQ(reader.stats().sampled_frames, static_cast<std::uint64_t>(taken));
    EXPECT_TRUE(reader.rest().empty());
    ASSERT_TRUE(calls.reach(std::min(taken + 4, 21)));
    const std::lock_guard lock(calls.mutex);
    EXPECT_LE(calls.made, taken + 4);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(reader.rest().size(), 3u);
  EXPECT_TRUE(reader.ready());
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(calls.made, 21);
}

TEST(ReadAhead, TellsAnErrorAfterTheFramesBeforeIt) {
  Counter::Calls calls;
  ReadAhead reader(std::make_unique<Counter>(calls, 20, 2), 8);
  ASSERT_TRUE(calls.reach(3));
  EXPECT_EQ(reader.next()->sequence, 0u);
  EXPECT_EQ(reader.next()->sequence, 1u);
  try {
    reader.next();
    FAIL() << "the error is lost";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "counter: broken");
    EXPECT_EQ(error.kind(), Error::Kind::timeout);
  }
  EXPECT_FALSE(reader.next());
  EXPECT_EQ(calls.made, 3);
}

TEST(ReadAhead, StopsWithFramesLeft) {
  Counter::Calls calls;
  {
    ReadAhead reader(std::make_unique<Counter>(calls, 1000), 2);
    ASSERT_TRUE(calls.reach(3));
  }
  EXPECT_TRUE(calls.gone);
  EXPECT_EQ(calls.made, 3);
}

TEST(ReadAhead, RefusesToReadNothingAhead) {
  Counter::Calls calls;
  EXPECT_THROW(ReadAhead(std::make_unique<Counter>(calls, 1), 0), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::media
