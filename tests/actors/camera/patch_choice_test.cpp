#include "actors/camera/patch_choice.h"

#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "config/schema/fields.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;

/// Pictures of 4 x 2 pixels have two groups.
constexpr prune::PatchGrid kGrid{2, 1};

/// Of no concern.
const prune::AnchorClock kRare(1e9, 0);

class PatchChoiceTest : public ::testing::Test {
 protected:
  static std::shared_ptr<OwnCamera> pruned(config::Pruning policy, const std::string& name = "gate") {
    auto settings = camera(name);
    settings->stream.pruning.policy = policy;
    // Anchors after the first are of no concern but to one test.
    settings->stream.window.length = 1000s;
    return settings;
  }

  /// A patch of two frames whose pixels have this value.
  FramePatchPtr send(PatchChoice& choice, std::uint8_t value) {
    auto patch = std::make_shared<FramePatch>();
    patch->watch = watch()->ref();
    patch->sequence = sequence_++;
    patch->seconds = spacing_ * static_cast<double>(patch->sequence);
    for (int i = 0; i < 2; ++i) {
      media::SampledFrame frame;
      frame.image = image(value);
      auto motion = std::make_shared<media::MotionField>();
      media::FrameMotion& still = motion->frames.emplace_back();
      still.intra = sequence_ == 1 || intra_;
      still.width = 4;
      still.height = 2;
      still.vectors.push_back({0, 0, 4, 4, -1, 0, 0, 4});
      frame.motion = std::move(motion);
      patch->frames.push_back(std::move(frame));
    }
    return choice.choose(patch);
  }
  static std::int64_t kept(const FramePatchPtr& patch) {
    return patch->encoded ? patch->encoded->count() : 2;
  }

  std::uint64_t sequence_ = 0;
  /// Whether it is an I-frame.
  bool intra_ = false;
  /// Between two patches, in seconds.
  double spacing_ = 1;
  PatchChoice choice_{pruning_of(*pruned(config::Pruning::reference), kGrid, 1), kGrid, 1000, kRare};
};

TEST_F(PatchChoiceTest, WithoutAPolicyAllIsSent) {
  EXPECT_EQ(pruning_of(*pruned(config::Pruning::none), kGrid, 1), nullptr);
  PatchChoice choice(nullptr, kGrid, 1000, kRare);
  EXPECT_FALSE(choice.wants_motion());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(send(choice, 100)->encoded, std::nullopt);
  choice.missed();
  choice.hear(ack_of(*send(choice, 100), PatchOutcome::lost));
  EXPECT_EQ(send(choice, 100)->encoded, std::nullopt);
  EXPECT_EQ(choice.counts().sent, 5U);
  EXPECT_EQ(choice.counts().lost, 1U);
}

TEST_F(PatchChoiceTest, OfACameraThatIsRememberedItIsSaidWhatStandsOut) {
  for (const config::Pruning policy : {config::Pruning::none, config::Pruning::reference}) {
    sequence_ = 0;
    PatchChoice choice(pruning_of(*pruned(policy), kGrid, 1), kGrid, 1000, kRare);
    EXPECT_EQ(send(choice, 100)->standing_out, std::nullopt) << "nobody remembers it";
    choice.remember(true);
    EXPECT_EQ(send(choice, 100)->standing_out, base::GridMask::none(1, 2));
    // So many that three of these patches are not a fiftieth of them.
    for (int i = 0; i < 300; ++i) send(choice, 100);
    EXPECT_EQ(send(choice, 160)->standing_out, base::GridMask::all(1, 2));
    choice.remember(true);
    EXPECT_GT(send(choice, 160)->standing_out.value().count(), 0) << "it goes on";
    choice.change(nullptr, 1000, kRare);
    EXPECT_GT(send(choice, 160)->standing_out.value().count(), 0) << "whatever is chosen";
    choice.remember(false);
    EXPECT_EQ(send(choice, 100)->standing_out, std::nullopt);
    choice.remember(true);
    EXPECT_EQ(send(choice, 160)->standing_out, base::GridMask::none(1, 2)) << "it begins";
  }
}

TEST_F(PatchChoiceTest, AfterOneOfWhichTheDeviceKnewTooLittleTheNextIsWhole) {
  send(choice_, 100);
  const FramePatchPtr part = send(choice_, 100);
  ASSERT_EQ(part->encoded, base::GridMask::none(1, 2));
  choice_.hear(ack_of(*part, PatchOutcome::unknown, "unknown"));
  EXPECT_EQ(send(choice_, 100)->encoded, std::nullopt);
  EXPECT_EQ(send(choice_, 100)->encoded, base::GridMask::none(1, 2)) << "and that is enough";
}

TEST_F(PatchChoiceTest, WithOneItIsWhatThatSays) {
  EXPECT_EQ(send(choice_, 100)->encoded, std::nullopt) << "all, which is not said";
  EXPECT_EQ(send(choice_, 100)->encoded, base::GridMask::none(1, 2));
  EXPECT_EQ(kept(send(choice_, 150)), 2);
  EXPECT_EQ(kept(send(choice_, 150)), 0);
}

TEST_F(PatchChoiceTest, WhatWasNotEncodedIsSentAgain) {
  send(choice_, 100);
  const FramePatchPtr dropped = send(choice_, 150);
  const FramePatchPtr nothing = send(choice_, 150);
  ASSERT_EQ(kept(nothing), 0);
  choice_.hear(ack_of(*nothing, PatchOutcome::encoded));
  choice_.hear(ack_of(*dropped, PatchOutcome::dropped));
  EXPECT_EQ(kept(send(choice_, 150)), 2);
  EXPECT_EQ(kept(send(choice_, 150)), 0);
  choice_.hear(ack_of(*dropped, PatchOutcome::dropped));
  EXPECT_EQ(kept(send(choice_, 150)), 0) << "it was heard of before";
}

TEST_F(PatchChoiceTest, AfterWhatWasMissedAPatchIsWhole) {
  choice_.missed();
  send(choice_, 100);
  EXPECT_EQ(kept(send(choice_, 100)), 0);
  choice_.missed();
  EXPECT_EQ(kept(send(choice_, 100)), 2);
  EXPECT_EQ(kept(send(choice_, 100)), 0);
}

TEST_F(PatchChoiceTest, AnotherPolicyBeginsAndIsNotToldOfWhatTheLastOneSent) {
  send(choice_, 100);
  const FramePatchPtr of_the_last = send(choice_, 150);
  choice_.change(pruning_of(*pruned(config::Pruning::dtd), kGrid, 1), 1000, kRare);
  EXPECT_EQ(kept(send(choice_, 150)), 2);
  choice_.hear(ack_of(*of_the_last, PatchOutcome::dropped));
  EXPECT_EQ(kept(send(choice_, 150)), 0);
}

/// Tells what it was bound to.
class Bound final : public prune::PruningPolicy {
 public:
  explicit Bound(double& share, bool* spares = nullptr) : share_(share), spares_(spares) {}
  bool wants_motion() const override { return false; }
  prune::Choice choose(double, std::span<const prune::SampledPicture>) override {
    return {base::GridMask::all(1, 2)};
  }
  void lost(const base::GridMask&) override {}
  void bound(double share) override { share_ = share; }
  void spare(bool is_behind) override {
    if (spares_ != nullptr) *spares_ = is_behind;
  }

 private:
  double& share_;
  bool* spares_;
};

TEST_F(PatchChoiceTest, ThePolicyHearsWhatTheBudgetAllowsAndSoDoesTheNextOne) {
  double share = -1, next = -1;
  PatchChoice choice(std::make_unique<Bound>(share), kGrid, 1000, kRare);
  const auto hear = [&](PatchOutcome outcome, double told) {
    PatchAck ack = ack_of(*send(choice, 100), outcome);
    ack.advice.share = told;
    choice.hear(ack);
  };
  hear(PatchOutcome::encoded, 0.25);
  EXPECT_EQ(share, 0.25);
  // Who did not take it knows nothing of the budget.
  hear(PatchOutcome::dropped, 1);
  hear(PatchOutcome::lost, 1);
  EXPECT_EQ(share, 0.25);
  choice.change(std::make_unique<Bound>(next), 1000, kRare);
  EXPECT_EQ(next, 0.25);
  hear(PatchOutcome::encoded, 1);
  EXPECT_EQ(next, 1);
  // Whatever has no policy is sent as it is.
  PatchChoice all(nullptr, kGrid, 1000, kRare);
  PatchAck ack = ack_of(*send(all, 100), PatchOutcome::encoded);
  ack.advice.share = 0;
  all.hear(ack);
  EXPECT_EQ(kept(send(all, 100)), 2);
}

TEST_F(PatchChoiceTest, NoMoreIsKeptThanTheSettingsAndTheBudgetAllow) {
  double share = -1, next = -1;
  PatchChoice choice(std::make_unique<Bound>(share), kGrid, 1000, kRare);
  choice.keep(0.5);
  EXPECT_EQ(share, 0.5) << "before anything was heard";
  PatchAck ack = ack_of(*send(choice, 100), PatchOutcome::encoded);
  ack.advice.share = 0.25;
  choice.hear(ack);
  EXPECT_EQ(share, 0.25);
  ack.advice.share = 1;
  choice.hear(ack);
  EXPECT_EQ(share, 0.5);
  choice.change(std::make_unique<Bound>(next), 1000, kRare);
  EXPECT_EQ(next, 0.5);
  choice.keep(1);
  EXPECT_EQ(next, 1);
}

TEST_F(PatchChoiceTest, ThePolicyHearsWhetherTheDeviceIsBehindAndSoDoesTheNextOne) {
  double share = 0;
  bool spares = false, next = false;
  PatchChoice choice(std::make_unique<Bound>(share, &spares), kGrid, 1000, kRare);
  const auto hear = [&](PatchOutcome outcome, bool is_behind) {
    PatchAck ack = ack_of(*send(choice, 100), outcome);
    ack.advice.is_behind = is_behind;
    choice.hear(ack);
  };
  hear(PatchOutcome::encoded, true);
  EXPECT_TRUE(spares);
  // Who did not take it says nothing of the device.
  hear(PatchOutcome::dropped, false);
  hear(PatchOutcome::lost, false);
  EXPECT_TRUE(spares);
  choice.change(std::make_unique<Bound>(share, &next), 1000, kRare);
  EXPECT_TRUE(next);
  hear(PatchOutcome::encoded, false);
  EXPECT_FALSE(next);
}

TEST_F(PatchChoiceTest, EveryNameOfTheConfigurationIsAPolicy) {
  std::vector<std::string_view> names;
  for (const auto& [name, policy] : config::kPruningNames) {
    names.push_back(name);
    PatchChoice choice(pruning_of(*pruned(policy), kGrid, 1), kGrid, 1000, kRare);
    EXPECT_EQ(choice.wants_motion(), policy == config::Pruning::codecsight) << name;
    EXPECT_FALSE(choice.wants_residual()) << name;
    EXPECT_EQ(kept(send(choice, 100)), 2) << name;
  }
  EXPECT_EQ(names,
            std::vector<std::string_view>(prune::kPruningPolicies.begin(), prune::kPruningPolicies.end()));
}

// Of the picture's two patches the right one moved by three pixels and the left one differs from its
// prediction by 80 levels.
TEST_F(PatchChoiceTest, WhatCodecsightCountsIsMotionAndResidualAsTheSettingsWeighThem) {
  const auto kept = [this](double threshold, double weight, bool measured = true) {
    const auto settings = pruned(config::Pruning::codecsight);
    settings->stream.pruning.motion_threshold = threshold;
    settings->stream.pruning.residual_weight = weight;
    PatchChoice choice(pruning_of(*settings, kGrid, 1), kGrid, 1000, kRare);
    EXPECT_TRUE(choice.wants_motion());
    EXPECT_EQ(choice.wants_residual(), weight > 0);
    sequence_ = 0;
    send(choice, 100);
    auto patch = std::make_shared<FramePatch>();
    patch->watch = watch()->ref();
    patch->sequence = sequence_++;
    patch->seconds = 1;
    media::SampledFrame frame;
    frame.image = image(100);
    auto motion = std::make_shared<media::MotionField>();
    media::FrameMotion& inter = motion->frames.emplace_back();
    inter.width = 8;
    inter.height = 4;
    inter.vectors = {{0, 0, 4, 4, -1, 0, 0, 4}, {4, 0, 4, 4, -1, 12, 0, 4}};
    inter.measured = measured;
    if (measured) inter.residual = {{0, 0, 4, 4, 80}, {4, 0, 4, 4, 0}};
    frame.motion = std::move(motion);
    patch->frames.push_back(std::move(frame));
    const FramePatchPtr sent = choice.choose(patch);
    return sent->encoded ? sent->encoded->list() : std::vector<std::int32_t>{0, 1};
  };
  using Groups = std::vector<std::int32_t>;
  EXPECT_EQ(kept(0.25, 0), (Groups{1}));
  EXPECT_EQ(kept(3, 0), Groups{}) << "it has to be exceeded";
  EXPECT_EQ(kept(0.25, 0.01), (Groups{0, 1}));
  EXPECT_EQ(kept(1, 0.01), (Groups{1})) << "80 levels are 0.8 of a pixel";
  EXPECT_EQ(kept(3, 0.04), (Groups{0}));
  EXPECT_EQ(kept(3, 0.04, /*measured=*/false), (Groups{0, 1})) << "nobody knows what changed";
}

TEST_F(PatchChoiceTest, ALostPatchMayMeanALostDeviceAndTheNextOneIsWhole) {
  send(choice_, 100);
  const FramePatchPtr nothing = send(choice_, 100);
  ASSERT_EQ(kept(nothing), 0);
  choice_.hear(ack_of(*nothing, PatchOutcome::lost));
  EXPECT_EQ(kept(send(choice_, 100)), 2);
  EXPECT_EQ(kept(send(choice_, 100)), 0);
}

// Windows of 4 s; patches of a second, and of a source that is slower than it is set to.
TEST_F(PatchChoiceTest, EveryWindowHoldsAWholePatchWhateverThePolicyAndTheRate) {
  for (const double spacing : {1.0, 1.7, 2.2, 3.5}) {
    for (const config::Pruning policy : {config::Pruning::reference, config::Pruning::dtd,
                                         config::Pruning::codecsight, config::Pruning::scene}) {
      for (int camera = 0; camera < 20; ++camera) {
        const auto settings = pruned(policy, "gate-" + std::to_string(camera));
        settings->stream.window.length = 4s;
        PatchChoice choice(pruning_of(*settings, kGrid, 1), kGrid, 4, anchors_of(*settings, 1));
        sequence_ = 0;
        spacing_ = spacing;
        double last_whole = 0;
        int whole = 0;
        for (int i = 0; i < 60; ++i) {
          const FramePatchPtr patch = send(choice, 100);
          if (kept(patch) < 2) continue;
          ASSERT_LE(patch->seconds - last_whole, 4 + 1e-9) << "patch " << i << " of camera " << camera;
          last_whole = patch->seconds;
          ++whole;
        }
        EXPECT_LE(59 * spacing - last_whole, 4) << "the last ones";
        if (spacing > 1) continue;
        EXPECT_LT(whole, 25) << "they are not all whole";
      }
    }
  }
}

// It came at ten seconds, and nothing has changed since.
TEST_F(PatchChoiceTest, ACarThatHasStoodForTenMinutesIsInEveryWindow) {
  for (const config::Pruning policy :
       {config::Pruning::reference, config::Pruning::dtd, config::Pruning::codecsight, config::Pruning::scene,
        config::Pruning::changes}) {
    const auto settings = pruned(policy);
    settings->stream.window.length = 40s;
    PatchChoice choice(pruning_of(*settings, kGrid, 1), kGrid, 40, anchors_of(*settings, 1));
    sequence_ = 0;
    double last_whole = 0;
    int whole = 0;
    for (int second = 0; second < 620; ++second) {
      const FramePatchPtr patch = send(choice, second < 10 ? 100 : 200);
      if (second >= 50) {
        EXPECT_LE(patch->seconds - last_whole, 40) << config::name_of(policy) << " at " << second;
      }
      if (kept(patch) < 2) continue;
      last_whole = patch->seconds;
      if (second >= 50) ++whole;
    }
    EXPECT_GE(whole, 570 / 40);
    EXPECT_LE(whole, 570 / 39 + 1) << config::name_of(policy) << ": and not oftener";
  }
}

// Also where the codec sends no other I-frame, and though all cameras began, and were lost, together.
TEST_F(PatchChoiceTest, WholePicturesOfAFleetAreSpreadWhateverThePolicy) {
  constexpr int kCameras = 80;
  for (const config::Pruning policy : {config::Pruning::reference, config::Pruning::dtd,
                                       config::Pruning::codecsight, config::Pruning::scene}) {
    std::map<int, int> whole;
    for (int camera = 0; camera < kCameras; ++camera) {
      const auto settings = pruned(policy, "gate-" + std::to_string(camera));
      settings->stream.window.length = 41s;
      PatchChoice choice(pruning_of(*settings, kGrid, 1), kGrid, 41, anchors_of(*settings, 1));
      sequence_ = 0;
      for (int second = 0; second < 240; ++second) {
        if (second == 60) choice.missed();
        if (kept(send(choice, 100)) == 2) ++whole[second];
      }
    }
    EXPECT_EQ(whole[0], kCameras);
    EXPECT_EQ(whole[60], kCameras);
    for (const auto& [second, count] : whole) {
      if (second != 0 && second != 60) {
        EXPECT_LE(count, kCameras / 8) << config::name_of(policy) << " at " << second;
      }
    }
  }
}

// A codec with I-frames of its own has no others.
TEST_F(PatchChoiceTest, WherePicturesAreWholeByThemselvesNoOthersAre) {
  auto settings = pruned(config::Pruning::codecsight);
  settings->stream.window.length = 20s;
  PatchChoice choice(pruning_of(*settings, kGrid, 1), kGrid, 20, anchors_of(*settings, 1));
  for (int second = 0; second < 200; ++second) {
    intra_ = second % 9 == 0;
    const std::int64_t groups = kept(send(choice, 100));
    // In the first turn nobody knows of them yet.
    if (second >= 9) {
      EXPECT_EQ(groups, intra_ ? 2 : 0) << second;
    }
  }
}

}  // namespace
}  // namespace vigil::actors
