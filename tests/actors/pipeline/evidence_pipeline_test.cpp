// Evidence in a whole pipeline: real packets at the one end, files and events at the other.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/timestamp.h"
#include "tests/actors/pipeline.h"
#include "tests/media/clip.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// In the made video everybody says Yes.
class EvidencePipeline : public PipelineTest {
 protected:
  EvidencePipeline() {
    media::Clip clip;
    clip.size = {96, 64};
    clip.frames = 500;
    clip.gop = 25;
    media::write_clip(scratch_ / "gate.mp4", clip);
    logger_.set_level(spdlog::level::warn);
  }

  std::shared_ptr<OwnCamera> watched(config::Pace pace, const std::string& name = "gate") const {
    auto settings = camera(name, pace, scratch_ / "gate.mp4");
    settings->rules[0].cooldown = 1h;
    return settings;
  }

  void watch(std::vector<CameraPtr> cameras, bool once = true) {
    start(std::move(cameras), once, media::VideoReader::open, EvidenceParts{store_, 1s, 2s});
  }

  /// Of all alerts: "phase state".
  std::vector<std::string> alerts() const {
    std::vector<std::string> result;
    for (const auto& message : publisher_.messages) {
      if (!message.topic.starts_with("alert/")) continue;
      const json data = json::parse(message.body).at("data");
      result.push_back(data.at("phase").get<std::string>() + ' ' +
                       data.at("evidence").at("clip_state").get<std::string>());
    }
    return result;
  }

  json last_evidence() const {
    for (auto message = publisher_.messages.rbegin(); message != publisher_.messages.rend(); ++message) {
      if (message->topic.starts_with("alert/")) return json::parse(message->body).at("data").at("evidence");
    }
    return {};
  }

  media::Scratch scratch_;
  fs::path folder_ = scratch_ / "evidence";
  config::RetentionClock retention_clock_{clock_};
  EvidenceStore store_{{.dir = folder_}, retention_clock_};
};

TEST_F(EvidencePipeline, AnAlertIsToldAtOnceAndItsClipAfterThePostRoll) {
  watch({watched(config::Pace::realtime)}, /*once=*/false);
  pass(3800ms);
  EXPECT_THAT(alerts(), ElementsAre("new pending")) << "of the windows that end at 2 s and 4 s";
  pass(1500ms);
  EXPECT_THAT(alerts(), SizeIs(1)) << "the post-roll is not over";
  pass(1500ms);
  EXPECT_THAT(alerts(), ElementsAre("new pending", "update ready"));
  const json evidence = last_evidence();
  const auto clip = media::read_all((folder_ / evidence.at("clip").get<std::string>()).string());
  EXPECT_NEAR(clip.info.duration_seconds, 6, 0.2)
      << "0 s to 6 s; a second before the window there was nothing";
  EXPECT_TRUE(fs::exists(folder_ / evidence.at("thumb").get<std::string>()));
  EXPECT_EQ(evidence.at("from"), "2026-08-01T10:00:00.000Z");
  EXPECT_EQ(metric("vigil_evidence_clips_total{state=\"ready\"}"), 1);
  EXPECT_EQ(metric("vigil_alerts_total{severity=\"alert\",topic=\"alert/north/gate/person/\"}"), 1);
  pass(1s);
  EXPECT_THAT(alerts(), SizeIs(2));
}

TEST_F(EvidencePipeline, OfAFileThatIsPlayedFastToo) {
  watch({watched(config::Pace::fast)});
  pass(100ms);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->complete);
  ASSERT_THAT(alerts(), SizeIs(::testing::Ge(3)));
  EXPECT_EQ(alerts().front(), "new pending");
  const json evidence = last_evidence();
  EXPECT_EQ(evidence.at("clip_state"), "ready");
  // The file's first frame, as exactly as a frame's time is known.
  const auto from = base::parse_rfc3339(evidence.at("from").get<std::string>());
  EXPECT_LE(std::chrono::abs(*from - base::Clock::WallTime(std::chrono::seconds(1785578400))), 40ms);
}

TEST_F(EvidencePipeline, StoppingMakesWhatIsPendingOfWhatThereIs) {
  watch({watched(config::Pace::realtime), watched(config::Pace::realtime, "yard")}, /*once=*/false);
  pass(4500ms);
  EXPECT_THAT(alerts(), ElementsAre("new pending", "new pending"));
  caf::anon_send(supervisor_, stop_atom_v);
  settle();
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->complete);
  EXPECT_THAT(report->failures, IsEmpty());
  EXPECT_THAT(alerts(), ::testing::UnorderedElementsAre("new pending", "new pending", "end pending",
                                                        "end pending", "end ready", "end ready"));
  EXPECT_THAT(outbox_->unacknowledged(10), IsEmpty());
  const auto clip = media::read_all((folder_ / last_evidence().at("clip").get<std::string>()).string());
  EXPECT_NEAR(clip.info.duration_seconds, 4.8, 0.5) << "shorter than 6 s";
}

TEST_F(EvidencePipeline, AFolderThatCannotBeCostsTheClipAndNothingElse) {
  fs::remove_all(folder_);
  std::ofstream(folder_.string()) << "a file";
  watch({watched(config::Pace::fast)});
  pass(100ms);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_TRUE(outcome()->complete);
  EXPECT_THAT(outcome()->failures, IsEmpty());
  EXPECT_EQ(last_evidence().at("clip_state"), "failed");
  EXPECT_THAT(last_evidence().at("reason").get<std::string>(), HasSubstr("cannot make the folder"));
  EXPECT_EQ(metric("vigil_frames_total{camera=\"gate\"}"), 40);
  EXPECT_EQ(metric("vigil_evidence_clips_total{state=\"failed\"}"), 1);
  EXPECT_THAT(log_.str(), HasSubstr("evidence: no clip of episode"));
}

TEST_F(EvidencePipeline, ACameraThatIsStartedAnewBeginsAnewHistory) {
  watch({watched(config::Pace::realtime)}, /*once=*/false);
  pass(8s);
  EXPECT_THAT(alerts(), ElementsAre("new pending", "update ready"));
  auto changed = watched(config::Pace::realtime);
  changed->stream.window = {2s, 1s};
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{changed}});
  pass(6s);
  EXPECT_THAT(alerts(),
              ElementsAre("new pending", "update ready", "end ready", "new pending", "update ready"));
  EXPECT_EQ(last_evidence().at("from"), "2026-08-01T10:00:08.000Z");
}

TEST_F(EvidencePipeline, WithoutItNothingIsKeptAndNothingIsSaid) {
  start({watched(config::Pace::fast)}, true, media::VideoReader::open);
  pass(100ms);
  ASSERT_TRUE(outcome().has_value());
  for (const auto& message : publisher_.messages)
    EXPECT_THAT(message.body, ::testing::Not(HasSubstr("evidence")));
  EXPECT_THAT(std::vector<fs::path>(fs::directory_iterator(folder_), {}), IsEmpty());
}

}  // namespace
}  // namespace vigil::actors
