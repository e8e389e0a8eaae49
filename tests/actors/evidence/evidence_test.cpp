// Stills and clips of real videos: what is made, when, and what there is if it cannot be.
#include <csignal>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/camera/camera.h"
#include "actors/evidence/evidence_desk.h"
#include "actors/evidence/evidence_store.h"
#include "base/timestamp.h"
#include "tests/actors/evidence_files.h"
#include "tests/actors/fakes.h"
#include "tests/actors/times.h"
#include "tests/media/clip.h"

namespace vigil::actors {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using media::Scratch;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class Desk : public ::testing::Test {
 protected:
  /// Plays a made video up to a time, into the camera's history: H.265 of the yard, H.264 of all others.
  void play(const CameraPtr& owner, double to) {
    auto& playing = playing_[owner->name];
    if (!playing.history) {
      media::Clip clip;
      clip.frames = 250;
      clip.gop = 25;
      clip.codec = owner->name == "yard" ? "libx265" : "libx264";
      if (owner->name == "yard") clip.options = {{"preset", "ultrafast"}, {"x265-params", "log-level=none"}};
      media::write_clip(scratch_ / (owner->name + ".mp4"), clip);
      playing.history = std::make_shared<media::PacketHistory>(media::PacketHistory::Limits{});
      media::ReadOptions options;
      options.fps = 5;
      options.history = playing.history;
      playing.reader = media::VideoReader::open(scratch_ / (owner->name + ".mp4"), options);
      desk_.record({owner->name, playing.history});
    }
    while (const auto frame = playing.reader->next()) {
      playing.history->anchor(frame->timestamp, frame->seconds);
      if (frame->seconds >= to - 0.1) break;
    }
  }

  static EvidenceRequest request(const CameraPtr& owner, double from, double to,
                                 const std::string& episode = "E") {
    return {owner->name,        owner->tenant(),
            "person",           episode,
            {from, to, to - 2}, kStart + std::chrono::milliseconds(static_cast<int>(to * 1000) - 2000)};
  }

  double metric(const std::string& line) const {
    const std::string page = metrics_.text();
    const std::size_t at = page.find('\n' + line + ' ');
    return at == std::string::npos ? 0 : std::stod(page.substr(at + line.size() + 2));
  }

  Scratch scratch_;
  fs::path folder_ = scratch_ / "evidence";
  ManualClock clock_;
  Metrics metrics_;
  config::RetentionClock retention_clock_{clock_};
  ClipIndex index_;
  EvidenceStore store_{{.dir = folder_, .clips = &index_}, retention_clock_};
  EvidenceDesk desk_{{.most_waiting = 3}, store_, metrics_, clock_};
  struct Playing {
    std::shared_ptr<media::PacketHistory> history;
    std::unique_ptr<media::VideoReader> reader;
  };
  std::map<std::string, Playing> playing_;
  CameraPtr gate_ = camera("gate");
  CameraPtr yard_ = camera("yard");
};

TEST_F(Desk, AClipIsMadeOnceItsEndHasCome) {
  play(gate_, 5);
  EXPECT_FALSE(desk_.ask(request(gate_, 2.5, 7)).has_value());
  EXPECT_FALSE(desk_.due());
  EXPECT_FALSE(desk_.make_next().has_value());
  EXPECT_EQ(metric("vigil_mailbox_depth{actor=\"evidence\"}"), 1);
  play(gate_, 6.5);
  EXPECT_FALSE(desk_.due());
  play(gate_, 8);
  ASSERT_TRUE(desk_.due());
  const auto report = desk_.make_next();
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(desk_.make_next().has_value()) << "once";
  EXPECT_EQ(report->episode, "E");
  const Evidence& made = report->evidence;
  EXPECT_EQ(made.state, EvidenceState::ready) << made.reason;
  EXPECT_EQ(made.codec, "h264");
  EXPECT_EQ(made.thumb_time, kStart + 5s);
  EXPECT_EQ(made.thumb, "gate/2026-08-01/20260801T100005.000Z-person-E.jpg");
  EXPECT_EQ(made.clip, "gate/2026-08-01/20260801T100005.000Z-person-E.mp4");
  EXPECT_EQ(made.from, kStart + 2s);
  EXPECT_GE(made.to, kStart + 7s);
  EXPECT_LT(made.to, kStart + 7200ms);
  EXPECT_EQ(made.bytes, fs::file_size(folder_ / made.clip));
  const auto clip = media::read_all((folder_ / made.clip).string());
  EXPECT_NEAR(clip.info.duration_seconds, 5.0, 0.1);
  EXPECT_EQ(clip.stats.damaged_packets, 0U);
  const auto still = media::read_all((folder_ / made.thumb).string());
  ASSERT_EQ(still.samples.size(), 1U);
  EXPECT_EQ(still.samples[0].image->size, (media::Size{192, 128}));
  EXPECT_EQ(metric("vigil_evidence_clips_total{state=\"ready\"}"), 1);
  EXPECT_EQ(metric("vigil_evidence_bytes"),
            static_cast<double>(made.bytes + fs::file_size(folder_ / made.thumb)));
  EXPECT_EQ(metric("vigil_mailbox_depth{actor=\"evidence\"}"), 0);
}

TEST_F(Desk, AClipIsFoundByWhatItShows) {
  play(gate_, 9);
  desk_.ask(request(gate_, 2.5, 7));
  const auto report = desk_.make_next();
  ASSERT_TRUE(report.has_value());
  const Evidence& made = report->evidence;
  const auto nanoseconds = [](base::Clock::WallTime time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  };
  const history::WallRange wall{nanoseconds(made.from), nanoseconds(made.to)};
  const ShownClip whole{made.clip, made.thumb, wall.from, wall.to - wall.from};
  EXPECT_EQ(index_.showing({"north", "gate"}, {wall.from - 1000, wall.to + 1000}), whole);
  EXPECT_FALSE(index_.showing({"south", "gate"}, wall));
  EXPECT_EQ(media::note_of(folder_ / made.clip), print(ClipNote{{"north", "gate"}, wall}));

  // The next run reads it.
  ClipIndex index;
  EvidenceStore store({.dir = folder_, .clips = &index}, retention_clock_);
  EvidenceDesk desk({}, store, metrics_, clock_);
  desk.record({"gate", playing_["gate"].history});
  desk.ask(request(gate_, 3, 8, "F"));
  ASSERT_TRUE(desk.has_unread());
  EXPECT_TRUE(desk.make_next().has_value());
  EXPECT_TRUE(desk.has_unread());
  EXPECT_FALSE(desk.due());
  EXPECT_FALSE(desk.make_next().has_value());
  EXPECT_TRUE(desk.has_unread()) << "nothing was to be made";
  desk.read_next();
  EXPECT_FALSE(desk.has_unread());
  const auto read = index.showing({"north", "gate"}, wall);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->clip, made.clip);
  EXPECT_EQ(read->thumb, made.thumb);
}

TEST_F(Desk, AClipWithoutAStillIsFoundWithoutOne) {
  play(gate_, 9);
  const std::string bare = EvidenceStore::place("gate", "person", "B", kStart).string() + ".mp4";
  playing_["gate"].history->cut({2, 4, 3}).write_clip(store_.prepare(bare));
  store_.keep(bare);
  store_.shows(bare, {{"north", "gate"}, {1000, 2000}});
  EXPECT_EQ(index_.showing({"north", "gate"}, {0, 2000}), (ShownClip{bare, "", 1000, 1000}));
}

TEST_F(Desk, EpisodesOfOneCameraMayOverlap) {
  play(gate_, 5);
  desk_.ask(request(gate_, 2, 7, "A"));
  desk_.ask(request(gate_, 3, 8, "B"));
  play(gate_, 9);
  const auto a = desk_.make_next();
  const auto b = desk_.make_next();
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->evidence.state, EvidenceState::ready);
  EXPECT_EQ(b->evidence.state, EvidenceState::ready);
  EXPECT_NE(a->evidence.clip, b->evidence.clip);
  EXPECT_EQ(files_below(folder_).size(), 4U);
}

TEST_F(Desk, OneCameraDoesNotWaitForAnother) {
  play(gate_, 5);
  play(yard_, 5);
  desk_.ask(request(gate_, 2, 7, "A"));
  desk_.ask(request(yard_, 2, 7, "B"));
  play(yard_, 8);
  const auto report = desk_.make_next();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->episode, "B");
  EXPECT_EQ(report->evidence.codec, "hevc");
  EXPECT_FALSE(desk_.due());
}

TEST_F(Desk, WhatDoesNotComeInTimeIsLeftOut) {
  play(gate_, 5);
  desk_.ask(request(gate_, 2, 7));
  clock_.advance(6s);
  EXPECT_FALSE(desk_.due()) << "2 s until its end, and 5 s of patience";
  clock_.advance(2s);
  const auto report = desk_.make_next();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->evidence.state, EvidenceState::ready);
  EXPECT_LT(report->evidence.to, kStart + 5500ms);
}

TEST_F(Desk, WhenACameraEndsItsClipsAreMadeOfWhatThereIs) {
  play(gate_, 5);
  play(yard_, 5);
  desk_.ask(request(gate_, 2, 7, "A"));
  desk_.ask(request(gate_, 3, 8, "B"));
  desk_.ask(request(yard_, 3, 8, "C"));
  desk_.end("gate");
  const auto history = playing_["gate"].history;
  for (const char* episode : {"A", "B"}) {
    EXPECT_GT(history->bytes(), 0U);
    const auto report = desk_.make_next();
    ASSERT_TRUE(report.has_value());
    EXPECT_EQ(report->episode, episode);
    EXPECT_EQ(report->evidence.state, EvidenceState::ready) << report->evidence.reason;
  }
  EXPECT_FALSE(desk_.due()) << "the other camera goes on";
  EXPECT_EQ(history->bytes(), 0U) << "nobody needs its packets any more";
  EXPECT_GT(playing_["yard"].history->bytes(), 0U);
}

TEST_F(Desk, WhatIsDueIsKeptUntilItsTurnComes) {
  play(gate_, 5);
  play(yard_, 5);
  desk_.ask(request(gate_, 2, 7, "A"));
  desk_.ask(request(yard_, 2, 7, "B"));
  play(gate_, 8);
  play(yard_, 8);
  EXPECT_EQ(desk_.make_next()->episode, "A");
  // It took longer to write than the other stream is kept.
  playing_["yard"].history->clear();
  ASSERT_TRUE(desk_.due());
  const auto late = desk_.make_next();
  ASSERT_TRUE(late.has_value());
  EXPECT_EQ(late->evidence.state, EvidenceState::ready) << late->evidence.reason;
  EXPECT_EQ(late->evidence.from, kStart + 2s);
  EXPECT_EQ(late->evidence.thumb_time, kStart + 5s);
}

TEST_F(Desk, WhatIsDueWhenItIsAskedIsKeptAtOnce) {
  play(gate_, 8);
  desk_.ask(request(gate_, 2, 7));
  playing_["gate"].history->clear();
  const auto report = desk_.make_next();
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->evidence.state, EvidenceState::ready) << report->evidence.reason;
}

TEST_F(Desk, WhatIsKeptForTheClipsOfACameraIsBounded) {
  for (const CameraPtr& owner : {gate_, yard_}) play(owner, 8);
  const std::size_t clip = playing_["gate"].history->cut({2, 7, 5}).bytes();
  EvidenceDesk desk({.memory = clip + 1}, store_, metrics_, clock_);
  for (const auto& [name, playing] : playing_) desk.record({name, playing.history});
  desk.ask(request(gate_, 2, 7, "A"));
  desk.ask(request(gate_, 2, 7, "same"));
  desk.ask(request(gate_, 4, 8, "another"));
  desk.ask(request(gate_, 3, 8, "beyond"));
  desk.ask(request(yard_, 2, 7, "B"));
  for (const auto& [name, playing] : playing_) playing.history->clear();
  clock_.advance(6s);
  std::map<std::string, EvidenceState> made;
  while (const auto report = desk.make_next()) made[report->episode] = report->evidence.state;
  ASSERT_EQ(made.size(), 5U);
  EXPECT_EQ(made["A"], EvidenceState::ready);
  EXPECT_EQ(made["same"], EvidenceState::ready);
  EXPECT_EQ(made["another"], EvidenceState::ready) << "the same packets count once";
  EXPECT_EQ(made["beyond"], EvidenceState::failed);
  EXPECT_EQ(made["B"], EvidenceState::ready) << "no camera has less for another";
}

TEST_F(Desk, EveryRequestIsAnsweredOnceWhateverIsMissing) {
  // A camera that nobody has told of; a moment that is not kept; one request too many.
  desk_.ask(request(camera("unknown"), 2, 7));
  const auto unknown = desk_.make_next();
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->evidence.state, EvidenceState::failed);
  EXPECT_EQ(unknown->evidence.reason, "nothing is kept of this camera any more");
  play(gate_, 5);
  desk_.ask(request(gate_, -9, -4));
  const auto early = desk_.make_next();
  ASSERT_TRUE(early.has_value());
  EXPECT_EQ(early->evidence.reason, "no packet is kept of that time");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(desk_.ask(request(gate_, 2, 7)).has_value());
  const auto refused = desk_.ask(request(gate_, 2, 7, "F"));
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->episode, "F");
  EXPECT_EQ(refused->evidence.state, EvidenceState::failed);
  EXPECT_EQ(refused->evidence.reason, "too many clips are being made");
  EXPECT_EQ(metric("vigil_evidence_clips_total{state=\"failed\"}"), 3);
  EXPECT_THAT(files_below(folder_), IsEmpty());
}

TEST_F(Desk, AFullDiskIsAReasonAndLeavesNothingBehind) {
  play(gate_, 8);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 10, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  desk_.ask(request(gate_, 2, 7));
  const auto report = desk_.make_next();
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->evidence.state, EvidenceState::failed);
  EXPECT_THAT(report->evidence.reason, HasSubstr("File too large"));
  EXPECT_THAT(report->evidence.reason, ::testing::Not(HasSubstr(folder_.string())));
  EXPECT_THAT(files_below(folder_), IsEmpty());
  // When there is room again, clips are made again.
  desk_.ask(request(gate_, 2, 7));
  EXPECT_EQ(desk_.make_next()->evidence.state, EvidenceState::ready);
}

// It has its name, and the folder that holds it cannot be synced: who may not read it cannot open it.
TEST_F(Desk, AFileThatMayNotLastIsNotLeftUncounted) {
  constexpr uid_t kSomebody = 65534;
  play(gate_, 8);
  const fs::path day = folder_ / "gate" / "2026-08-01";
  fs::create_directories(day);
  ASSERT_EQ(::chmod(day.c_str(), 0300), 0);
  if (::geteuid() == 0) {
    for (fs::path path = day; path != folder_.parent_path().parent_path(); path = path.parent_path())
      ASSERT_EQ(::chown(path.c_str(), kSomebody, kSomebody), 0);
    ::setfsuid(kSomebody);
  }
  desk_.ask(request(gate_, 2, 7));
  const auto report = desk_.make_next();
  ::setfsuid(::geteuid());
  ASSERT_EQ(::chmod(day.c_str(), 0700), 0);
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->evidence.state, EvidenceState::failed);
  EXPECT_THAT(report->evidence.reason, HasSubstr("Permission denied"));
  EXPECT_THAT(files_below(folder_), IsEmpty());
  EXPECT_EQ(store_.bytes(), 0U);
}

TEST_F(Desk, AFolderThatCannotBeWrittenIsToldAtTheStart) {
  constexpr uid_t kSomebody = 65534;
  ASSERT_EQ(::chmod(folder_.c_str(), 0500), 0);
  if (::geteuid() == 0) {
    for (fs::path path = folder_; path != folder_.parent_path().parent_path(); path = path.parent_path())
      ASSERT_EQ(::chown(path.c_str(), kSomebody, kSomebody), 0);
    ::setfsuid(kSomebody);
  }
  const std::string failure = EvidenceStore({.dir = folder_}, retention_clock_).failure();
  ::setfsuid(::geteuid());
  ASSERT_EQ(::chmod(folder_.c_str(), 0700), 0);
  EXPECT_EQ(failure, "evidence.dir: " + folder_.string() + ": cannot be written: Permission denied");
}

TEST_F(Desk, OnADiskThatIsNearlyFullAClipFailsAndSaysSo) {
  std::uintmax_t free = (64 << 20) + 1000;
  EvidenceStore store({.dir = folder_, .free_bytes = [&free] { return std::optional(free); }},
                      retention_clock_);
  EvidenceDesk desk({}, store, metrics_, clock_);
  play(gate_, 8);
  desk.record({"gate", playing_["gate"].history});
  desk.ask(request(gate_, 2, 7, "A"));
  const auto report = desk.make_next();
  EXPECT_EQ(report->evidence.state, EvidenceState::failed);
  EXPECT_THAT(report->evidence.reason, HasSubstr("the disk is nearly full (64 MiB are free"));
  EXPECT_THAT(files_below(folder_), IsEmpty());
  free <<= 1;
  desk.ask(request(gate_, 2, 7, "B"));
  EXPECT_EQ(desk.make_next()->evidence.state, EvidenceState::ready);
}

TEST_F(Desk, AClipThatIsLargerThanTheBudgetRemovesNoOther) {
  EvidenceStore store({.dir = folder_, .budget = 300 << 10}, retention_clock_);
  const std::string other = put(store, kStart, 1000);
  EvidenceDesk desk({}, store, metrics_, clock_);
  play(gate_, 10);
  desk.record({"gate", playing_["gate"].history});
  desk.ask(request(gate_, 0, 9));
  const auto report = desk.make_next();
  EXPECT_EQ(report->evidence.state, EvidenceState::failed);
  EXPECT_THAT(report->evidence.reason, HasSubstr("evidence.budget"));
  EXPECT_THAT(files_below(folder_), ElementsAre(other));
}

/// Notes nothing.
struct Silent final : CameraListener {
  void on_state(CameraState, const std::string&) override {}
  void on_frame() override {}
  void on_dropped(std::uint64_t, const char*) override {}
  void on_reconnect() override {}
  void on_damaged_packets(std::uint64_t) override {}
};

TEST(CameraHistory, HasTheCamerasTimeOverLoopsOfAFile) {
  const Scratch scratch;
  media::Clip clip;
  clip.frames = 100;
  clip.gop = 25;
  media::write_clip(scratch / "gate.mp4", clip);
  auto settings = camera("gate", config::Pace::fast, scratch / "gate.mp4");
  settings->stream.loop = true;
  CameraOptions options;
  options.camera = settings;
  options.watch = watched(*settings);
  options.history = std::make_shared<media::PacketHistory>(media::PacketHistory::Limits{});
  const auto history = options.history;
  const ManualClock clock;
  Pulse pulse;
  Silent silent;
  Camera looping(std::move(options), media::VideoReader::open, clock, pulse, silent);
  looping.grant(1000);
  while (pulse.position() < 10) looping.step();
  // 4 s a pass, less than a frame each, as samples are where frames are: the third begins at 8 s. Nothing is
  // cut across two.
  EXPECT_GE(history->newest().value(), 10);
  EXPECT_NEAR(history->cut({5, 11, 9.5}).from(), 8, 0.05);
  const media::Cut second = history->cut({5.5, 11, 7});
  EXPECT_NEAR(second.from(), 5, 0.05);
  EXPECT_NEAR(second.to(), 8, 0.05);
}

}  // namespace
}  // namespace vigil::actors
