// Whatever happens to a camera, what the model has of it stays what it would have if it began now: within
// what the policy takes for no change, or else for no longer than a window.
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema/fields.h"
#include "tests/actors/camera/cameras.h"
#include "tests/engine/prune/street.h"

namespace vigil::actors {
namespace {

using namespace testing;
using config::Pruning;
using prune::testing::Street;
using prune::testing::Take;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Ge;
using ::testing::Le;

constexpr double kSeconds = 30;
/// Of 255, what noise and edges make of a group that is as it was: a part that is missing makes 20 and more.
constexpr double kSame = 8;

/// What a codec tells of the frames.
enum class Vectors { true_ones, none, lies };

/// What happens to a camera.
struct Story {
  /// Of the source, which says nothing of what a camera is set to.
  std::function<double(double)> interval = [](double) { return 0.5; };
  double fps = 2;
  base::Duration window = 4s;
  Vectors vectors = Vectors::true_ones;
  /// Light that drifts, in levels a second.
  double drift = 0;
  /// Groups along the edge of the picture.
  std::function<int(double)> groups = [](double) { return 4; };
  config::Pace pace = config::Pace::fast;
  /// What becomes of a patch; absent: it hears of it later, and then that it was encoded.
  std::function<std::optional<PatchOutcome>(double)> outcome = [](double) { return PatchOutcome::encoded; };
  /// Before a patch of this time the model forgets everything.
  double device_lost = -1;
  /// The camera's settings from a patch of half the time on.
  std::function<void(config::CameraSettings&)> alter = nullptr;
};

/// Somebody walks by, a car stops in front at 7 s and stays, a bag is left at 21 s.
Take take_at(const Story& story, double seconds) {
  Take take;
  take.offset = static_cast<int>(story.drift * seconds);
  take.things.push_back({static_cast<int>(12 * seconds) % 140 - 20, 30, 20, 40, {210, 210, 200}});
  if (seconds >= 7) take.things.push_back({0, 76, 50, 36, {40, 40, 60}});
  if (seconds >= 21) take.things.push_back({84, 80, 20, 20, {220, 40, 40}});
  return take;
}

/// A frame of a story, and how it is without noise.
struct Shot {
  media::SampledFrame frame;
  std::vector<std::uint8_t> clean;
};

bool is_as_before(const Shot& before, const Shot& now, int x, int y) {
  for (int line = y; line < y + 4; ++line) {
    const auto at = static_cast<std::ptrdiff_t>(3 * (line * now.frame.image->size.width + x));
    if (!std::equal(now.clean.begin() + at, now.clean.begin() + at + 12, before.clean.begin() + at))
      return false;
  }
  return true;
}

/// Blocks that look as before have vectors that say so, the others none. Of the first frame of a size nothing
/// is known.
media::FrameMotion motion(Vectors vectors, const Shot* before, const Shot& now) {
  media::FrameMotion motion;
  const media::Size size = now.frame.image->size;
  motion.width = size.width;
  motion.height = size.height;
  motion.intra = before == nullptr || before->frame.image->size != size;
  if (motion.intra || vectors == Vectors::none) return motion;
  for (int y = 0; y < size.height; y += 4)
    for (int x = 0; x < size.width; x += 4)
      if (vectors == Vectors::lies || is_as_before(*before, now, x, y))
        motion.vectors.push_back(
            {static_cast<std::int16_t>(x), static_cast<std::int16_t>(y), 4, 4, -1, 0, 0, 4});
  return motion;
}

std::vector<Shot> film(const Story& story) {
  std::vector<Shot> shots;
  std::mt19937 random(7);
  for (double seconds = 0; seconds < kSeconds; seconds += story.interval(seconds)) {
    const Street street(1, story.groups(seconds), 40);
    Take take = take_at(story, seconds);
    const prune::testing::Canvas picture = street.film(take, random);
    take.noise = 0;
    Shot shot{{}, street.film(take, random).rgb};
    auto image = std::make_shared<media::Image>();
    image->size = {picture.width, picture.height};
    image->rgb = picture.rgb;
    shot.frame.image = image;
    shot.frame.seconds = seconds;
    auto field = std::make_shared<media::MotionField>();
    field->available = story.vectors != Vectors::none;
    field->frames = {motion(story.vectors, shots.empty() ? nullptr : &shots.back(), shot)};
    shot.frame.motion = field;
    shots.push_back(std::move(shot));
  }
  return shots;
}

/// Plays what was filmed.
class Playing final : public media::VideoReader {
 public:
  explicit Playing(const std::vector<Shot>& shots) : shots_(shots) {}

  const media::SourceInfo& info() const override { return info_; }
  const media::ReadStats& stats() const override { return stats_; }
  const std::vector<media::FrameMotion>& rest() const override { return rest_; }
  std::optional<media::SampledFrame> next() override {
    return next_ < shots_.size() ? std::optional(shots_[next_++].frame) : std::nullopt;
  }

 private:
  const std::vector<Shot>& shots_;
  std::size_t next_ = 0;
  media::SourceInfo info_;
  media::ReadStats stats_;
  std::vector<media::FrameMotion> rest_;
};

/// What a model has seen of a camera, of each group as it last got it.
class Model {
 public:
  void take(const FramePatch& patch) {
    const media::Image& image = *patch.frames.back().image;
    if (image.size != size_) {
      size_ = image.size;
      seen_.assign(image.rgb.size(), 0);
    }
    const int columns = size_.width / 28;
    const base::GridMask groups = patch.encoded.value_or(base::GridMask::all(size_.height / 28, columns));
    for (const std::int32_t group : groups.list())
      for (int y = group / columns * 28; y < group / columns * 28 + 28; ++y) {
        const auto at = static_cast<std::ptrdiff_t>(3 * (y * size_.width + group % columns * 28));
        std::copy_n(image.rgb.begin() + at, 3 * 28, seen_.begin() + at);
      }
  }
  void forget() { size_ = {}; }

  /// The largest mean difference of a group from what was filmed, from 0 to 255.
  double stale(const std::vector<std::uint8_t>& now) const {
    double most = 0;
    for (int top = 0; top < size_.height; top += 28)
      for (int left = 0; left < size_.width; left += 28) {
        int sum = 0;
        for (int y = top; y < top + 28; ++y)
          for (auto i = static_cast<std::size_t>(3 * (y * size_.width + left)), end = i + 3 * 28; i < end;
               ++i)
            sum += std::abs(now[i] - seen_[i]);
        most = std::max(most, sum / (3.0 * 28 * 28));
      }
    return most;
  }

 private:
  media::Size size_;
  std::vector<std::uint8_t> seen_;
};

class OpenEndsTest : public CameraTest {
 protected:
  struct Seen {
    int patches = 0, whole = 0;
    /// The most that any group was off.
    double stale = 0;
    /// When a whole picture came.
    std::vector<double> whole_at;
    /// What was sent of each patch.
    std::vector<std::optional<base::GridMask>> groups;
  };

  /// What comes of it under each policy. No window is without a whole picture, whatever happens.
  std::map<Pruning, Seen> tell(const Story& story) {
    const std::vector<Shot> shots = film(story);
    std::map<Pruning, Seen> seen;
    for (const auto& [name, policy] : config::kPruningNames)
      if (policy != Pruning::none) seen[policy] = tell(story, shots, policy);
    return seen;
  }

 private:
  Seen tell(const Story& story, const std::vector<Shot>& shots, Pruning policy) {
    SCOPED_TRACE(std::string(config::name_of(policy)));
    settings_ = camera("gate", story.pace);
    settings_->stream.fps = story.fps;
    settings_->stream.window = {story.window, 2s};
    settings_->stream.pruning.policy = policy;
    ManualClock clock;
    Pulse pulse;
    Camera gate(
        {settings_, watched(*settings_), {2, {}, {14, 2}}, true, 0, 7},
        [&](const std::string&, const media::ReadOptions&) { return std::make_unique<Playing>(shots); },
        clock, pulse, recorder_);
    Seen seen;
    Model model;
    std::vector<FramePatchPtr> waiting;
    const auto encode = [&] {
      for (const FramePatchPtr& patch : std::exchange(waiting, {})) {
        model.take(*patch);
        note(story, shots, *patch, model, seen);
        gate.acknowledge(ack_of(*patch, PatchOutcome::encoded));
      }
    };
    bool is_lost = false, is_altered = false;
    gate.grant(4);
    for (CameraStep step; step.next != Next::finished;) {
      step = gate.step();
      if (step.patch) {
        const double seconds = step.patch->seconds;
        if (!is_lost && story.device_lost >= 0 && seconds >= story.device_lost) {
          model.forget();
          is_lost = true;
        }
        const std::optional<PatchOutcome> outcome = story.outcome(seconds);
        if (!outcome || *outcome == PatchOutcome::encoded) {
          waiting.push_back(step.patch);
        } else {
          gate.acknowledge(ack_of(*step.patch, *outcome, "a reason"));
          if (*outcome == PatchOutcome::lost) gate.grant(1);
        }
        if (story.alter && !is_altered && seconds >= kSeconds / 2) {
          auto altered = std::make_shared<OwnCamera>(*settings_);
          story.alter(*altered);
          gate.alter(altered, watched(*altered, 2));
          is_altered = true;
        }
      }
      if (step.next == Next::wait) clock.advance(std::chrono::ceil<base::Duration>(step.until - clock.now()));
      const double now = story.pace == config::Pace::fast
                             ? step.patch ? step.patch->seconds : 0
                             : std::chrono::duration<double>(clock.now() - ManualClock().now()).count();
      if (story.outcome(now)) encode();
    }
    return seen;
  }

  static void note(const Story& story, const std::vector<Shot>& shots, const FramePatch& patch,
                   const Model& model, Seen& seen) {
    const auto shot = std::find_if(shots.begin(), shots.end(), [&](const Shot& each) {
      return each.frame.image == patch.frames.back().image;
    });
    seen.stale = std::max(seen.stale, model.stale(shot->clean));
    ++seen.patches;
    seen.groups.push_back(patch.encoded);
    if (!patch.encoded && (!patch.kept || patch.kept->has_all())) {
      ++seen.whole;
      seen.whole_at.push_back(patch.seconds);
    }
    ASSERT_FALSE(seen.whole_at.empty());
    EXPECT_LE(patch.seconds - seen.whole_at.back(),
              std::chrono::duration<double>(story.window).count() + 1e-6)
        << "a window without a whole picture";
  }
};

TEST_F(OpenEndsTest, WhatHappensIsSeenAndWhatStaysIsNotSent) {
  for (const auto& [policy, seen] : tell({})) {
    EXPECT_LT(seen.stale, kSame) << config::name_of(policy);
    EXPECT_LT(seen.whole, seen.patches / 2) << config::name_of(policy);
  }
}

// Codecs of single pictures, hardware decoders.
TEST_F(OpenEndsTest, WithoutVectorsNothingIsTakenToStandStill) {
  for (const auto& [policy, seen] : tell({.vectors = Vectors::none})) {
    EXPECT_LT(seen.stale, kSame) << config::name_of(policy);
    EXPECT_EQ(seen.whole == seen.patches, policy == Pruning::codecsight) << config::name_of(policy);
  }
}

TEST_F(OpenEndsTest, VectorsThatSayThatNothingMovesAreBelievedForAWindowAtMost) {
  for (const auto& [policy, seen] : tell({.vectors = Vectors::lies})) {
    // That no window is without a whole picture, `tell` says.
    EXPECT_EQ(seen.stale > kSame, policy == Pruning::codecsight) << config::name_of(policy);
    EXPECT_LT(seen.whole, seen.patches / 2) << config::name_of(policy);
  }
}

// Seventeen levels in a window; a codec says so in residuals, and not in vectors.
TEST_F(OpenEndsTest, LightThatDriftsIsSentWhenItHasGoneAsFarAsThePolicySays) {
  const std::map<Pruning, double> most{{Pruning::codecsight, 100},
                                       {Pruning::dtd, 24},
                                       {Pruning::reference, 12},
                                       {Pruning::scene, 20},
                                       {Pruning::changes, 20}};
  for (const auto& [policy, seen] : tell({.window = 14s, .vectors = Vectors::lies, .drift = 1.2})) {
    EXPECT_LT(seen.stale, most.at(policy)) << config::name_of(policy);
    EXPECT_LT(seen.whole, seen.patches / 2) << config::name_of(policy);
  }
}

TEST_F(OpenEndsTest, SourcesKeepTheirOwnTime) {
  const Story slow{.interval = [](double) { return 1.0; }, .fps = 4},
      fast{.interval = [](double) { return 0.2; }, .fps = 5}, changing{.interval = [](double t) {
        return t < 10 ? 0.5 : t < 20 ? 1.7 : 0.3;
      }};
  for (const Story* story : {&slow, &fast, &changing})
    for (const auto& [policy, seen] : tell(*story)) EXPECT_LT(seen.stale, kSame) << config::name_of(policy);
}

TEST_F(OpenEndsTest, AnotherSizeBeginsWithAWholePicture) {
  for (const auto& [policy, seen] : tell({.groups = [](double t) {
         return t < 12 ? 4 : t < 13 ? 6 : t < 24 ? 3 : 4;
       }})) {
    EXPECT_LT(seen.stale, kSame) << config::name_of(policy);
    for (const double change : {12.0, 13.0, 24.0})
      EXPECT_THAT(seen.whole_at, Contains(change)) << config::name_of(policy);
  }
}

TEST_F(OpenEndsTest, WhatCouldNotBeEncodedComesAgain) {
  const auto outcome = [](double t) {
    return t > 9 && t < 12 ? PatchOutcome::dropped : PatchOutcome::encoded;
  };
  for (const auto& [policy, seen] : tell({.window = 60s, .outcome = outcome}))
    EXPECT_LT(seen.stale, kSame) << config::name_of(policy);
}

TEST_F(OpenEndsTest, ADeviceThatKnowsNothingGetsAWholePicture) {
  const auto outcome = [](double t) { return t > 9 && t < 12 ? PatchOutcome::lost : PatchOutcome::encoded; };
  for (const auto& [policy, seen] : tell({.window = 60s, .outcome = outcome, .device_lost = 12})) {
    EXPECT_LT(seen.stale, kSame) << config::name_of(policy);
    EXPECT_THAT(seen.whole_at, Contains(12)) << config::name_of(policy);
  }
}

// Frames that were decoded and came into no patch: what moved in them is of no patch's motion.
TEST_F(OpenEndsTest, AfterFramesThatWereDroppedThePictureIsWhole) {
  const auto outcome = [](double t) {
    return t > 9 && t < 16 ? std::nullopt : std::optional(PatchOutcome::encoded);
  };
  for (const auto& [policy, seen] :
       tell({.window = 60s, .pace = config::Pace::realtime, .outcome = outcome})) {
    EXPECT_GT(recorder_.dropped["no_credit"], 0U);
    EXPECT_LT(seen.stale, kSame) << config::name_of(policy);
    EXPECT_THAT(seen.whole_at, Contains(AllOf(Ge(16), Le(19)))) << config::name_of(policy);
  }
}

TEST_F(OpenEndsTest, AnotherStrideOrAnotherRuleChangesNothingOfWhatIsSent) {
  const auto plain = tell({});
  const auto altered = tell({.alter = [](config::CameraSettings& settings) {
    settings.stream.window.stride = 3s;
    settings.rules.push_back(settings.rules[0]);
    settings.rules[1].name = "another";
  }});
  for (const auto& [policy, seen] : altered)
    EXPECT_EQ(seen.groups, plain.at(policy).groups) << config::name_of(policy);
}

}  // namespace
}  // namespace vigil::actors
