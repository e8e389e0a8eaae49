// The input that is recorded and not watched: its packets, its time, and what happens when it is away.
#include "actors/camera/recorder.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"
#include "tests/actors/pipeline.h"
#include "tests/media/clip.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Next = Recorder::Step::Next;

class RecorderTest : public ::testing::Test, public RecorderListener {
 protected:
  RecorderTest() {
    media::Clip clip;
    clip.size = {96, 64};
    clip.frames = 250;
    clip.gop = 25;
    media::write_clip(main_, clip);
  }

  void on_recording(bool recording, const std::string& reason) override {
    told_.push_back(recording ? "recorded" : reason);
  }

  /// The camera `gate`, of which another input is recorded.
  CameraPtr gate() const {
    auto settings = camera();
    settings->inputs.push_back({{main_, "main"}, {config::Role::record}});
    settings->stream.reconnect = {1s, 8s};
    return settings;
  }

  /// Lets time go on until the next step is due.
  void await(const Recorder::Step& step) {
    clock_.advance(std::chrono::ceil<base::Duration>(step.until - clock_.now()));
  }

  Recorder& recorder() {
    if (!recorder_)
      recorder_ =
          std::make_unique<Recorder>(RecorderOptions{gate(), history_, 1}, open_, clock_, pulse_, *this);
    return *recorder_;
  }

  /// The watched input is at this time of the camera.
  void watch_at(double seconds) { pulse_.set_position(seconds, clock_.now()); }

  /// Reads so many packets of 25 a second, which come in time, while the watched input delivers.
  void read(int packets, double watched_from) {
    for (int i = 0; i < packets; ++i) {
      if (i % 10 == 0) watch_at(watched_from + i * 0.04);
      ASSERT_EQ(recorder().step().next, Next::again) << i;
      clock_.advance(40ms);
    }
  }

  media::Scratch scratch_;
  std::string main_ = scratch_ / "main.mp4";
  std::shared_ptr<media::PacketHistory> history_ =
      std::make_shared<media::PacketHistory>(media::PacketHistory::Limits{});
  PacketReaderFactory open_ = media::PacketReader::open;
  ManualClock clock_;
  Pulse pulse_;
  std::vector<std::string> told_;
  std::unique_ptr<Recorder> recorder_;
};

TEST_F(RecorderTest, PacketsHaveTheTimeOfTheWatchedInput) {
  watch_at(100);
  ASSERT_EQ(recorder().step().next, Next::again) << "it is opened";
  EXPECT_THAT(told_, IsEmpty());
  read(200, 100);
  EXPECT_THAT(told_, ElementsAre("recorded"));
  EXPECT_NEAR(*history_->newest(), 107.96, 0.05);
  const media::Cut cut = history_->cut({102, 105, 104});
  EXPECT_NEAR(cut.from(), 102, 0.05);
  EXPECT_NEAR(cut.to(), 105, 0.05);
  EXPECT_EQ(cut.still(104).image.size, (media::Size{96, 64}));
}

TEST_F(RecorderTest, BeforeTheWatchedInputDeliversThereIsNoTimeAndAfterwardsThereIs) {
  ASSERT_EQ(recorder().step().next, Next::again);
  for (int i = 0; i < 30; ++i) {
    ASSERT_EQ(recorder().step().next, Next::again);
    clock_.advance(40ms);
  }
  EXPECT_EQ(history_->newest(), std::nullopt);
  // From the next key frame on, and so for what came before.
  read(30, 0);
  EXPECT_NEAR(*history_->newest(), 1.16, 0.05);
}

TEST_F(RecorderTest, TimeThatDriftsIsSetAndJitterIsNot) {
  ASSERT_EQ(recorder().step().next, Next::again);
  read(50, 0);
  const double before = history_->cut({0, 1.9, 0.5}).from();
  // The watched input is a third of a second late for a while.
  read(10, 2.3);
  EXPECT_EQ(history_->cut({0, 1.9, 0.5}).from(), before);
  EXPECT_NEAR(*history_->newest(), 2.36, 0.05);
  // A clock that runs fast by a second in all.
  read(25, 3.4);
  EXPECT_NEAR(*history_->newest(), 4.36, 0.05);
}

TEST_F(RecorderTest, AnInputThatEndsIsTriedAgainAndAgain) {
  watch_at(0);
  ASSERT_EQ(recorder().step().next, Next::again);
  read(250, 0);
  Recorder::Step step = recorder().step();
  ASSERT_EQ(step.next, Next::rest);
  EXPECT_THAT(told_, ElementsAre("recorded", "the source ended"));
  EXPECT_EQ(recorder().step().next, Next::rest) << "not before its time";
  fs::rename(main_, main_ + ".away");
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(step.until - clock_.now(), 500ms);
    EXPECT_LE(step.until - clock_.now(), 8s);
    await(step);
    step = recorder().step();
    ASSERT_EQ(step.next, Next::rest);
  }
  EXPECT_EQ(told_.size(), 2U) << "said once";
  fs::rename(main_ + ".away", main_);
  await(step);
  ASSERT_EQ(recorder().step().next, Next::again);
  read(100, 60);
  EXPECT_THAT(told_, ElementsAre("recorded", "the source ended", "recorded"));
  const media::Cut cut = history_->cut({61, 63, 62});
  EXPECT_NEAR(cut.from(), 61, 0.05);
}

TEST_F(RecorderTest, ACancelledPulseEndsItAndIsNoTrouble) {
  open_ = [this](const std::string&, const media::ReadOptions&) -> std::unique_ptr<media::PacketReader> {
    pulse_.cancel();
    throw media::Error("main: cancelled", media::Error::Kind::cancelled);
  };
  EXPECT_EQ(recorder().step().next, Next::again);
  EXPECT_EQ(recorder().step().next, Next::finished);
  EXPECT_THAT(told_, IsEmpty());
}

/// In a whole pipeline, where it is a second file; a live source would be paced by itself.
class RecorderPipeline : public PipelineTest {
 protected:
  RecorderPipeline() {
    media::Clip clip;
    clip.size = {96, 64};
    clip.frames = 500;
    media::write_clip(scratch_ / "sub.mp4", clip);
  }

  CameraPtr gate(const std::string& recorded) const {
    auto settings = camera("gate", config::Pace::realtime, scratch_ / "sub.mp4");
    settings->rules[0].cooldown = 1h;
    settings->inputs.push_back({{recorded, recorded}, {config::Role::record}});
    return settings;
  }

  std::string last_evidence() const {
    for (auto message = publisher_.messages.rbegin(); message != publisher_.messages.rend(); ++message)
      if (message->topic.starts_with("alert/"))
        return nlohmann::json::parse(message->body).at("data").at("evidence").dump();
    return "";
  }

  media::Scratch scratch_;
  fs::path folder_ = scratch_ / "evidence";
  config::RetentionClock retention_clock_{clock_};
  EvidenceStore store_{{.dir = folder_}, retention_clock_};
};

TEST_F(RecorderPipeline, AnInputThatCannotBeReachedCostsTheClipAndNothingElse) {
  start({gate("rtsp://127.0.0.1:1/main")}, /*once=*/false, media::VideoReader::open,
        EvidenceParts{store_, 1s, 2s});
  pass(15s);
  EXPECT_EQ(metric("vigil_camera_up{camera=\"gate\"}"), 1);
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_camera_recording{camera=\"gate\",tenant=\"north\"} 0"));
  EXPECT_THAT(log_.str(), HasSubstr("camera gate: not recorded: rtsp://127.0.0.1:1/main: "));
  EXPECT_THAT(last_evidence(), HasSubstr("failed"));
  caf::anon_send(supervisor_, stop_atom_v);
  pass(1s);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(RecorderPipeline, ACameraThatIsGoneIsNotRecorded) {
  start({gate("rtsp://127.0.0.1:1/main"), camera("yard", config::Pace::realtime, scratch_ / "sub.mp4")},
        /*once=*/false, media::VideoReader::open, EvidenceParts{store_, 1s, 2s});
  pass(2s);
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_camera_recording{camera=\"gate\","));
  EXPECT_THAT(metrics_.text(), ::testing::Not(HasSubstr("vigil_camera_recording{camera=\"yard\",")));
  caf::anon_send(supervisor_, reload_atom_v,
                 CameraList{{camera("yard", config::Pace::realtime, scratch_ / "sub.mp4")}});
  pass(60s);
  EXPECT_THAT(metrics_.text(), ::testing::Not(HasSubstr("vigil_camera_recording{camera=\"gate\",")));
  const std::size_t said = log_.str().size();
  pass(60s);
  EXPECT_EQ(log_.str().size(), said) << "nobody tries to reach it any more";
}

}  // namespace
}  // namespace vigil::actors
