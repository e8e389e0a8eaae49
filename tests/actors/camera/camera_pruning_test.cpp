// What of its pictures a camera sends, and when all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/camera/camera.h"
#include "config/schema/fields.h"
#include "tests/actors/camera/cameras.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;

TEST_F(CameraTest, SendsWhatItsPolicyKeeps) {
  sources_.add(url_, frames({1, 1, 1, 1, 90, 90, 90, 90, 90, 90}));
  Camera gate = make(pruned());
  gate.grant(4);
  EXPECT_EQ(run(gate).next, Next::credit);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0));
  gate.acknowledge(ack_of(*patches_[2], PatchOutcome::dropped, "encode_failed"));
  run(gate);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0, 2)) << "what was dropped comes with the next one";
}

TEST_F(CameraTest, WithoutAPolicyItSendsEverything) {
  sources_.add(url_, frames({1, 1, 1, 1}));
  Camera gate = make(camera());
  gate.grant(10);
  run(gate);
  ASSERT_EQ(patches_.size(), 2U);
  EXPECT_EQ(patches_[1]->encoded, std::nullopt);
}

TEST_F(CameraTest, APresetSaysWhatItSends) {
  using Shares = std::vector<std::int64_t>;
  for (const auto& [preset, wanted] : {std::pair(config::Preset::exact, Shares{2, 2, 2, 2}),
                                       std::pair(config::Preset::balanced, Shares{2, 0, 2, 0}),
                                       std::pair(config::Preset::cheap, Shares{2, 0, 2, 0})}) {
    const auto settings = pruned();
    config::set_preset(settings->stream.pruning, preset);
    sources_.add(url_, frames({1, 1, 1, 1, 90, 90, 90, 90}));
    patches_.clear();
    Camera gate = make(settings);
    gate.grant(4);
    run(gate);
    EXPECT_EQ(kept(), wanted) << config::name_of(preset);
  }
}

TEST_F(CameraTest, KeepsNoMoreOfAPictureThanItsSettingsSay) {
  const auto settings = pruned();
  settings->stream.pruning.policy = config::Pruning::scene;
  settings->stream.pruning.kept = 0.05;
  std::deque<Event> script = frames({1, 1, 90, 90, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
  // Behind two pictures whose light is another, which it may send whole.
  for (std::size_t i = 10; i < script.size(); ++i) script[i].right = 90;
  sources_.add(url_, script);
  Camera gate = make(settings);
  gate.grant(6);
  run(gate);
  ASSERT_EQ(kept().size(), 6U);
  EXPECT_EQ(kept().back(), 0) << "any group is too much";
  auto now = std::make_shared<OwnCamera>(*settings);
  now->stream.pruning.kept = 1;
  gate.alter(now, watched(*now, 2));
  gate.grant(1);
  run(gate);
  ASSERT_EQ(kept().size(), 7U);
  EXPECT_GT(kept().back(), 0) << "while it runs, from the next patch on";
}

// What stands out costs time: only where something remembers it, and this camera.
TEST_F(CameraTest, SaysWhatStandsOutIfItIsRemembered) {
  for (const bool remembers : {false, true}) {
    for (const base::Duration keep : {base::Duration(24h), base::Duration(0)}) {
      const auto settings = pruned();
      settings->stream.keep = keep;
      sources_.add(url_, frames({1, 1, 1, 1, 90, 90, 1, 1}));
      patches_.clear();
      CameraOptions options{settings, watched(*settings), {2, {}, {2, 1}}, false, 0, 7};
      options.remembers = remembers;
      Camera gate(std::move(options), sources_.factory(), clock_, pulse_, recorder_);
      gate.grant(3);
      run(gate);
      ASSERT_EQ(patches_.size(), 3U);
      const bool is_said = remembers && keep > base::Duration::zero();
      for (const FramePatchPtr& patch : patches_) EXPECT_EQ(patch->standing_out.has_value(), is_said);
      // Its settings change while it runs.
      auto now = std::make_shared<OwnCamera>(*settings);
      now->stream.keep = is_said ? base::Duration(0) : base::Duration(1h);
      gate.alter(now, watched(*now, 2));
      gate.grant(1);
      run(gate);
      ASSERT_EQ(patches_.size(), 4U);
      EXPECT_EQ(patches_[3]->standing_out.has_value(), remembers && !is_said);
    }
  }
}

TEST_F(CameraTest, WhereNobodyHasSeenItTheNextPictureIsWhole) {
  sources_.add(url_, frames(std::vector<int>(8, 1)));
  Camera gate = make(pruned());
  gate.grant(2);
  run(gate);
  gate.show_all();
  gate.grant(2);
  run(gate);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0)) << "otherwise the third has nothing new";
}

TEST_F(CameraTest, AfterAStrideThatWasDroppedItSendsAWholePicture) {
  sources_.add(url_, frames(std::vector<int>(14, 1)));
  Camera gate = make(pruned(config::Pace::realtime));
  gate.grant(2);
  play(gate, 3s);
  EXPECT_THAT(kept(), ElementsAre(2, 0));
  EXPECT_GT(recorder_.dropped["no_credit"], 0U);
  gate.grant(10);
  play(gate, 10s);
  EXPECT_THAT(times(), ElementsAre(0, 1, 4, 5, 6));
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0, 0));
}

TEST_F(CameraTest, AnotherLengthOfWindowBringsAnchorsInItsTime) {
  sources_.add(url_, frames(std::vector<int>(24, 1)));
  Camera gate = make(pruned());
  gate.grant(4);
  run(gate);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 0, 0));
  settings_ = pruned();
  settings_->stream.window.length = 3s;
  gate.alter(settings_, watched(*settings_, 2));
  gate.grant(8);
  run(gate);
  const std::vector<std::int64_t> shares = kept();
  ASSERT_EQ(shares.size(), 12U);
  EXPECT_EQ(shares[4], 2);
  for (std::size_t i = 4; i + 3 <= shares.size(); ++i)
    EXPECT_EQ(std::max({shares[i], shares[i + 1], shares[i + 2]}), 2) << "no anchor from " << i;
}

TEST_F(LiveCameraTest, MotionAndResidualsAreReadForPoliciesThatLookAtThem) {
  using Wanted = std::pair<bool, bool>;
  for (const auto& [policy, weight, wanted] : {std::tuple{config::Pruning::none, 1.0, Wanted(false, false)},
                                               {config::Pruning::reference, 1.0, Wanted(false, false)},
                                               {config::Pruning::codecsight, 0.0, Wanted(true, false)},
                                               {config::Pruning::codecsight, 0.1, Wanted(true, true)}}) {
    settings_ = camera("gate", config::Pace::realtime, kUrl);
    settings_->stream.pruning.policy = policy;
    settings_->stream.pruning.residual_weight = weight;
    std::optional<Wanted> seen;
    Camera gate(
        {settings_, watched(*settings_), shape_, false, 0, 7},
        [&](const std::string&, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
          seen = {options.motion, options.residual};
          throw media::Error("no");
        },
        clock_, pulse_, recorder_);
    run(gate);
    EXPECT_EQ(seen, wanted) << config::name_of(policy);
  }
}

TEST_F(LiveCameraTest, AfterItWasLostItSendsAWholePicture) {
  int opened = 0;
  shape_.grid = {2, 1};
  const ReaderFactory open = [&](const std::string&, const media::ReadOptions& options) {
    ++opened;
    return std::make_unique<LiveReader>(options, [this, n = 0](LiveReader&) mutable {
      if (n == 4) throw media::Error("gone");
      clock_.advance(250ms);
      media::SampledFrame frame = LiveReader::frame(0.5 * n++);
      frame.motion = std::make_shared<media::MotionField>();
      return std::optional(frame);
    });
  };
  settings_ = pruned(config::Pace::realtime);
  settings_->inputs[0].url = {kUrl, kUrl};
  Camera gate({settings_, watched(*settings_), shape_, false, 0, 7}, open, clock_, pulse_, recorder_);
  gate.grant(100);
  for (int i = 0; i < 40 && patches_.size() < 4; ++i) {
    const CameraStep step = run(gate, 4);
    if (step.next == Next::rest) clock_.advance(std::chrono::ceil<base::Duration>(step.until - clock_.now()));
  }
  EXPECT_EQ(opened, 2);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0));
}

}  // namespace
}  // namespace vigil::actors
