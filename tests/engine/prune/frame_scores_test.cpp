#include "engine/prune/frame_scores.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/draft_golden.h"
#include "tests/kernels/test_matrix.h"

namespace vigil::prune {
namespace {

using kernels::DType;
using kernels::Random;
using kernels::TestMatrix;

kernels::Stream cpu() {
  return kernels::Stream::cpu(1);
}

base::GridMask mask(std::int64_t rows, std::int64_t columns, const std::vector<std::int32_t>& places) {
  base::GridMask mask = base::GridMask::none(rows, columns);
  for (const std::int32_t place : places) mask.add(place);
  return mask;
}

std::vector<float> copied(std::span<const float> values) {
  return {values.begin(), values.end()};
}

/// A frame's, NaN as -9.
std::vector<float> told(std::span<const float> values) {
  std::vector<float> all = copied(values);
  for (float& each : all)
    if (std::isnan(each)) each = -9;
  return all;
}

bool is_compared(const ScoredFrame& frame) {
  for (const float each : frame.to_before)
    if (!std::isnan(each)) return true;
  return false;
}

class FrameScoresTest : public ::testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, FrameScoresTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

// From embeddings on, of windows that begin anywhere in the stream.
TEST_P(FrameScoresTest, WhatIsKeptIsWhatNumpyKeeps) {
  int compared = 0;
  for (const DraftGolden& now : DraftGoldenFile::read()) {
    FrameScores scores(cpu(), std::make_shared<WaitingFrames>(1U << 20U));
    for (const DraftGolden::Frame& frame : now.frames) {
      TestMatrix embeddings(GetParam(), static_cast<std::int64_t>(frame.places.size()), now.width);
      for (std::int64_t i = 0; i < embeddings.rows(); ++i)
        for (std::int64_t j = 0; j < now.width; ++j)
          embeddings.set(i, j, frame.embeddings[static_cast<std::size_t>(i * now.width + j)]);
      scores.add(mask(now.rows, now.columns, frame.places), embeddings.view());
    }
    for (const DraftGolden::Kept& each : now.kept) {
      const bool is_early = each.selection == "early";
      std::vector<ScoredFrame> window = scores.window(each.first, each.frames);
      for (std::size_t f = 0; f < window.size() && !is_early; ++f)
        window[f].attention = now.frames[each.first + f].attention;
      EXPECT_EQ(draft_tokens(is_early ? "hippo" : each.selection, window, {each.share, 0}), each.tokens)
          << now.name << ' ' << each.selection << " from " << each.first << ", " << each.frames << " at "
          << each.share;
      ++compared;
    }
  }
  EXPECT_GT(compared, 1000);
}

/// Frames of 4 x 5 places, of which some are there.
class Film {
 public:
  static constexpr std::int64_t kRows = 4, kColumns = 5, kWidth = 12;
  struct Frame {
    base::GridMask places;
    TestMatrix embeddings;
  };

  explicit Film(DType dtype) : dtype_(dtype) {}
  Frame next(std::int64_t count = -1) {
    std::vector<std::int32_t> places;
    for (std::int32_t place = 0; place < kRows * kColumns; ++place)
      if (count < 0 ? random_.below(4) != 0 : place < count) places.push_back(place);
    return {mask(kRows, kColumns, places),
            TestMatrix::random(dtype_, static_cast<std::int64_t>(places.size()), kWidth, random_)};
  }
  /// That one with all places waits in.
  std::uint64_t bytes() const {
    return static_cast<std::uint64_t>(kRows * kColumns) * (kWidth * size_of(dtype_) + sizeof(std::int32_t));
  }

 private:
  DType dtype_;
  Random random_{3};
};

void add(FrameScores& to, const Film::Frame& frame) {
  to.add(frame.places, frame.embeddings.view());
}

TEST_P(FrameScoresTest, AWindowThatSlidesHasTheScoresOfOneThatIsMadeAnew) {
  Film film(GetParam());
  FrameScores sliding(cpu(), std::make_shared<WaitingFrames>(1U << 20U));
  std::vector<Film::Frame> frames;
  std::vector<std::vector<float>> first_told;
  for (std::size_t now = 0; now < 9; ++now) {
    frames.push_back(film.next());
    add(sliding, frames.back());
    if (sliding.frames() > 4) sliding.drop(1);
    const std::vector<ScoredFrame> window = sliding.window(0, sliding.frames());
    first_told.push_back(told(window.back().to_before));
    FrameScores anew(cpu(), std::make_shared<WaitingFrames>(1U << 20U));
    const std::size_t begin = frames.size() - window.size();
    for (std::size_t f = begin; f < frames.size(); ++f) add(anew, frames[f]);
    const std::vector<ScoredFrame> expected = anew.window(0, window.size());
    EXPECT_EQ(draft_scores("hippo", window), draft_scores("hippo", expected)) << now;
    EXPECT_EQ(draft_scores("change", window), draft_scores("change", expected)) << now;
    for (std::size_t f = 0; f < window.size(); ++f) {
      EXPECT_EQ(told(window[f].spread), told(expected[f].spread));
      EXPECT_EQ(told(window[f].to_before), first_told[begin + f]) << "once told, it stays";
      EXPECT_EQ(std::vector<std::int32_t>(window[f].places.begin(), window[f].places.end()),
                frames[begin + f].places.list());
    }
  }
}

TEST_P(FrameScoresTest, FramesWaitWithinTheirBytesAndTheLongestGoes) {
  Film film(GetParam());
  const auto waiting = std::make_shared<WaitingFrames>(2 * film.bytes() + 1);
  FrameScores a(cpu(), waiting), b(cpu(), waiting), c(cpu(), waiting);
  const auto all = [&] { return film.next(Film::kRows * Film::kColumns); };
  add(a, all());
  EXPECT_EQ(waiting->bytes(), film.bytes());
  add(b, all());
  add(a, all());
  EXPECT_EQ(waiting->bytes(), 2 * film.bytes());
  EXPECT_TRUE(is_compared(a.window(1, 1)[0]));
  EXPECT_EQ(waiting->gone(), 0U);
  // b has waited longest.
  add(c, all());
  EXPECT_EQ(waiting->bytes(), 2 * film.bytes());
  EXPECT_EQ(waiting->gone(), 1U);
  add(a, all());
  EXPECT_TRUE(is_compared(a.window(2, 1)[0]));
  add(b, all());
  EXPECT_FALSE(is_compared(b.window(1, 1)[0]));
  EXPECT_EQ(waiting->gone(), 2U) << "c's";
  add(b, all());
  EXPECT_TRUE(is_compared(b.window(2, 1)[0]));
  EXPECT_LE(waiting->bytes(), 2 * film.bytes());
  // Neither frame lacks its other scores.
  for (const ScoredFrame& frame : b.window(0, 3))
    for (const float each : frame.spread) EXPECT_TRUE(std::isfinite(each));
}

TEST_P(FrameScoresTest, WhereThereIsNoRoomNothingWaits) {
  Film film(GetParam());
  for (const std::uint64_t most : {std::uint64_t{0}, film.bytes() - 1}) {
    const auto waiting = std::make_shared<WaitingFrames>(most);
    FrameScores large(cpu(), waiting), small(cpu(), waiting);
    add(small, film.next(0));
    for (int f = 0; f < 3; ++f) add(large, film.next(Film::kRows * Film::kColumns));
    EXPECT_EQ(waiting->bytes(), 0U);
    EXPECT_EQ(waiting->gone(), 3U) << "what is too large sends nobody away";
    for (const ScoredFrame& frame : large.window(0, 3)) EXPECT_FALSE(is_compared(frame));
  }
}

TEST_P(FrameScoresTest, WhoGoesGivesItsBytesBack) {
  Film film(GetParam());
  const auto waiting = std::make_shared<WaitingFrames>(1U << 20U);
  {
    FrameScores one(cpu(), waiting), other(cpu(), waiting);
    add(one, film.next());
    add(other, film.next());
    add(other, film.next());
    one.interrupt();
    one.interrupt();
    EXPECT_GT(waiting->bytes(), 0U);
  }
  EXPECT_EQ(waiting->bytes(), 0U);
  EXPECT_EQ(waiting->gone(), 0U);
}

TEST_P(FrameScoresTest, OnlyWhatFollowsIsCompared) {
  Film film(GetParam());
  const auto waiting = std::make_shared<WaitingFrames>(1U << 20U);
  FrameScores scores(cpu(), waiting);
  const auto last_is_compared = [&] { return is_compared(scores.window(scores.frames() - 1, 1)[0]); };
  const auto some = [&] { return film.next(12); };
  add(scores, some());
  EXPECT_FALSE(last_is_compared());
  add(scores, some());
  EXPECT_TRUE(last_is_compared());
  scores.interrupt();
  add(scores, some());
  EXPECT_FALSE(last_is_compared()) << "something is missing between";
  add(scores, some());
  EXPECT_TRUE(last_is_compared());
  // A higher grid, and a wider one; another width; another type; and back each time.
  Random random(5);
  const TestMatrix embeddings = TestMatrix::random(GetParam(), 12, Film::kWidth, random);
  const TestMatrix narrow = TestMatrix::random(GetParam(), 12, 7, random);
  const TestMatrix other =
      TestMatrix::random(GetParam() == DType::f32 ? DType::bf16 : DType::f32, 12, Film::kWidth, random);
  const base::GridMask places = film.next(12).places;
  const base::GridMask higher = mask(Film::kRows + 1, Film::kColumns, places.list());
  const base::GridMask wider = mask(Film::kRows, Film::kColumns + 1, places.list());
  for (const auto& each : {std::pair(&wider, &embeddings), std::pair(&higher, &embeddings),
                           std::pair(&places, &narrow), std::pair(&places, &other)}) {
    scores.add(*each.first, each.second->view());
    EXPECT_FALSE(last_is_compared());
    scores.add(*each.first, each.second->view());
    EXPECT_TRUE(last_is_compared());
    add(scores, some());
    EXPECT_FALSE(last_is_compared());
  }
  // A frame of which all was pruned is there, and is nobody's neighbour.
  add(scores, film.next(0));
  EXPECT_EQ(scores.window(scores.frames() - 1, 1)[0].places.size(), 0U);
  add(scores, some());
  EXPECT_FALSE(last_is_compared());
}

TEST_P(FrameScoresTest, WhatDoesNotFitIsRefusedAndIsNotThere) {
  Film film(GetParam());
  const auto waiting = std::make_shared<WaitingFrames>(1U << 20U);
  FrameScores scores(cpu(), waiting);
  add(scores, film.next(6));
  const Film::Frame six = film.next(6), seven = film.next(7);
  EXPECT_THROW(scores.add(six.places, seven.embeddings.view()), std::invalid_argument);
  EXPECT_EQ(scores.frames(), 1U);
  EXPECT_EQ(waiting->bytes(), 0U);
  add(scores, six);
  EXPECT_FALSE(is_compared(scores.window(1, 1)[0])) << "what came between is not there";
  const TestMatrix gaps(GetParam(), 6, Film::kWidth, 1);
  EXPECT_THROW(scores.add(six.places, gaps.view()), std::invalid_argument);
  kernels::ConstMatrix integers = six.embeddings.view();
  integers.dtype = DType::i32;
  EXPECT_THROW(scores.add(six.places, integers), std::invalid_argument);
  EXPECT_THROW(scores.window(0, 3), std::out_of_range);
  EXPECT_THROW(scores.window(3, 0), std::out_of_range);
  EXPECT_THROW(scores.drop(3), std::out_of_range);
  EXPECT_EQ(scores.window(2, 0).size(), 0U);
  scores.drop(2);
  EXPECT_EQ(scores.frames(), 0U);
}

}  // namespace
}  // namespace vigil::prune
