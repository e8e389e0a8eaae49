#include "actors/supervisor/dialer.h"

#include <algorithm>
#include <random>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/supervisor/line_budget.h"
#include "actors/supervisor/sources.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Way = Dialer::Way;

std::string name(const std::string& prefix, int number) {
  const std::string digits = std::to_string(number);
  return prefix + std::string(6 - digits.size(), '0') + digits;
}

class DialerTest : public ::testing::Test {
 protected:
  Dialer& dialer() {
    if (!dialer_) dialer_.emplace(limits_);
    return *dialer_;
  }

  void add(const std::string& camera, Way way = Way::asked, std::size_t descriptors = 1) {
    dialer().add({camera}, way, descriptors, clock_.now());
  }
  void add(const std::string& prefix, int count, Way way) {
    for (int i = 0; i < count; ++i) add(name(prefix, i), way);
  }

  Dialer::Turn next() {
    Dialer::Turn turn = dialer().next(clock_.now());
    for (const auto& [ticket, id] : turn.ask) tickets_[id.camera] = ticket;
    return turn;
  }

  static std::vector<std::string> opened(const Dialer::Turn& turn) {
    std::vector<std::string> names;
    for (const SourceId& id : turn.open) names.push_back(id.camera);
    return names;
  }
  static std::vector<std::string> asked(const Dialer::Turn& turn) {
    std::vector<std::string> names;
    for (const auto& [ticket, id] : turn.ask) names.push_back(id.camera);
    return names;
  }

  void rest(const std::string& camera, base::Duration span) { dialer().rest({camera}, clock_.now() + span); }
  void answer(const std::string& camera, bool reachable) {
    const auto id = dialer().answered(tickets_.at(camera), reachable);
    ASSERT_TRUE(id.has_value());
    EXPECT_EQ(id->camera, camera);
  }

  Dialer::Limits limits_;
  std::optional<Dialer> dialer_;
  ManualClock clock_;
  std::map<std::string, std::uint64_t> tickets_;
};

TEST_F(DialerTest, FewCamerasAreOpenedAtOnceAndUnasked) {
  add("a");
  add("b", Way::blind);
  add("c", Way::file);
  EXPECT_THAT(opened(next()), ::testing::UnorderedElementsAre("a", "b", "c"));
  EXPECT_TRUE(next().empty());
  EXPECT_EQ(dialer().opening(), 3U);
  EXPECT_FALSE(dialer().wake().has_value()) << "nobody waits";
}

TEST_F(DialerTest, WhatFailedIsAskedAtItsTimeAndOpenedWhenItAnswers) {
  add("a");
  next();
  rest("a", 2s);
  EXPECT_EQ(dialer().opening(), 0U);
  EXPECT_TRUE(next().empty());
  EXPECT_EQ(dialer().wake(), clock_.now() + 2s);
  clock_.advance(2s);
  EXPECT_THAT(asked(next()), ElementsAre("a"));
  EXPECT_EQ(dialer().asking(), 1U);
  answer("a", false);
  rest("a", 4s);
  EXPECT_EQ(dialer().asking(), 0U);
  clock_.advance(4s);
  EXPECT_THAT(asked(next()), ElementsAre("a")) << "again and again, without a thread";
  answer("a", true);
  EXPECT_THAT(opened(next()), ElementsAre("a"));
  dialer().delivers({"a"});
  EXPECT_EQ(dialer().opening(), 0U);
  rest("a", 1s);
  clock_.advance(1s);
  EXPECT_THAT(opened(next()), ElementsAre("a")) << "it delivered: there is hope";
}

TEST_F(DialerTest, AServerThatAnswersAndCannotBeOpenedIsTriedUnaskedTheNextTime) {
  // It may take one connection at a time, and have been kept busy by the question.
  add("a");
  next();
  rest("a", 1s);
  for (int round = 0; round < 3; ++round) {
    clock_.advance(1s);
    ASSERT_THAT(asked(next()), ElementsAre("a"));
    answer("a", true);
    ASSERT_THAT(opened(next()), ElementsAre("a"));
    rest("a", 1s);
    clock_.advance(1s);
    ASSERT_THAT(opened(next()), ElementsAre("a"));
    rest("a", 1s);
  }
}

TEST_F(DialerTest, ThreadsAndQuestionsAreBounded) {
  limits_.questions = 100;
  add("a", 1000, Way::asked);
  const auto turn = next();
  EXPECT_THAT(turn.open, SizeIs(limits_.unasked));
  EXPECT_THAT(turn.ask, SizeIs(100));
  EXPECT_EQ(asked(turn).front(), name("a", 64)) << "in the order in which they came";
  EXPECT_TRUE(next().empty());
  // All servers answer, and none delivers: no more threads than that.
  for (int round = 0; round < 100; ++round) {
    for (const auto& [camera, ticket] : std::exchange(tickets_, {})) dialer().answered(ticket, true);
    next();
    EXPECT_LE(dialer().opening(), limits_.opens);
    EXPECT_LE(dialer().asking(), 100U);
  }
  EXPECT_EQ(dialer().opening(), limits_.opens);
}

TEST_F(DialerTest, ThoseThatFailAgainLeaveThreadsForTheOthers) {
  add("bad", 1000, Way::blind);
  for (auto turn = next(); !turn.empty(); turn = next())
    for (const auto& camera : opened(turn)) rest(camera, 1s);
  clock_.advance(1s);
  EXPECT_THAT(next().open, SizeIs(limits_.repeats));
  add("new", 1000, Way::blind);
  const auto turn = next();
  EXPECT_THAT(turn.open, SizeIs(limits_.opens - limits_.repeats));
  EXPECT_THAT(opened(turn), ::testing::Each(::testing::StartsWith("new")));
}

TEST_F(DialerTest, HopeGoesFirst) {
  limits_.opens = limits_.repeats = limits_.unasked = 1;
  limits_.questions = 0;
  add("delivered", Way::blind);
  next();
  dialer().delivers({"delivered"});
  add("failed", Way::blind);
  next();
  rest("failed", 1s);
  add("taken", Way::blind);
  ASSERT_THAT(opened(next()), ElementsAre("taken"));
  add("untried", Way::blind);
  clock_.advance(2s);
  rest("delivered", 0s);
  EXPECT_TRUE(next().empty()) << "one thread";
  std::vector<std::string> order;
  for (std::string last = "taken"; order.size() < 3; last = order.back()) {
    dialer().delivers({last});
    order.push_back(opened(next()).at(0));
  }
  EXPECT_THAT(order, ElementsAre("delivered", "untried", "failed"));
}

TEST_F(DialerTest, ACameraThatStartsAgainKeepsItsPlaceForAWhile) {
  limits_.questions = 0;
  limits_.repeats = 0;
  add("a", Way::blind);
  next();
  dialer().delivers({"a"});
  rest("a", 0s);
  int attempts = 0;
  while (!next().open.empty() && attempts < 100) {
    ++attempts;
    rest("a", 0s);
  }
  EXPECT_EQ(attempts, 6) << "then it is one of many";
}

TEST_F(DialerTest, FilesStandInNoQueue) {
  limits_.questions = 10;
  add("lost", 500, Way::blind);
  next();
  add("file", Way::file);
  EXPECT_THAT(opened(next()), ElementsAre("file"));
  // Many that are missing, or on a disk that hangs, do not take thousands of threads at once.
  add("missing", 500, Way::file);
  EXPECT_THAT(next().open, SizeIs(limits_.files - 1));
  ASSERT_TRUE(dialer().wake().has_value());
  clock_.advance(limits_.file_patience);
  EXPECT_LE(*dialer().wake(), clock_.now());
  EXPECT_THAT(next().open, SizeIs(limits_.files));
}

TEST_F(DialerTest, WhatHangsForeverTakesNoTurnForever) {
  add("hangs", static_cast<int>(limits_.opens), Way::blind);
  EXPECT_THAT(next().open, SizeIs(limits_.opens));
  add("other", Way::blind);
  EXPECT_TRUE(next().empty());
  clock_.advance(limits_.patience);
  EXPECT_THAT(opened(next()), ElementsAre("other"));
  // It comes back late, and nothing is freed twice.
  for (int i = 0; i < 100; ++i) rest(name("hangs", i), 1h);
  EXPECT_EQ(dialer().opening(), 1U);
}

TEST_F(DialerTest, WhatIsRemovedGivesBackAllThatItHas) {
  limits_.opens = limits_.repeats = limits_.unasked = 1;
  limits_.questions = 1;
  limits_.descriptors = 2;
  for (const char* camera : {"a", "b", "c", "d"}) add(camera);
  auto turn = next();
  ASSERT_THAT(opened(turn), ElementsAre("a"));
  ASSERT_THAT(asked(turn), ElementsAre("b"));
  EXPECT_EQ(dialer().remove({"c"}), std::nullopt) << "it is queued";
  EXPECT_EQ(dialer().remove({"b"}), tickets_.at("b"));
  EXPECT_FALSE(dialer().answered(tickets_.at("b"), true).has_value()) << "the answer comes too late";
  EXPECT_THAT(asked(next()), ElementsAre("d"));
  EXPECT_EQ(dialer().remove({"a"}), std::nullopt);
  answer("d", true);
  EXPECT_THAT(opened(next()), ElementsAre("d"));
  dialer().delivers({"a"});
  dialer().rest({"a"}, clock_.now());
  dialer().no_descriptor({"a"}, clock_.now());
  EXPECT_FALSE(dialer().exhausted()) << "nobody knows it";
  dialer().remove({"d"});
  EXPECT_TRUE(next().empty());
  EXPECT_EQ(dialer().opening() + dialer().asking(), 0U);
  EXPECT_FALSE(dialer().wake().has_value());
}

TEST_F(DialerTest, NoMoreDescriptorsAreHeldThanThereAreForCameras) {
  limits_.descriptors = 10;
  add("udp", Way::blind, 5);
  add("a", 8, Way::blind);
  const auto turn = next();
  EXPECT_THAT(turn.open, SizeIs(6));
  EXPECT_THAT(turn.without_descriptor, SizeIs(3));
  EXPECT_THAT(next().without_descriptor, IsEmpty()) << "told once";
  for (const SourceId& id : turn.open) dialer().delivers(id);
  EXPECT_TRUE(next().empty()) << "they hold them as long as they deliver";
  add("late", Way::file);
  EXPECT_THAT(next().without_descriptor, ElementsAre(SourceId{"late"})) << "files, too";
  dialer().remove({"udp"});
  EXPECT_THAT(next().open, SizeIs(4));
}

TEST_F(DialerTest, WithoutDescriptorsOneTriesForAllAndThenAllAreOpened) {
  add("a", 50, Way::blind);
  ASSERT_THAT(next().open, SizeIs(50));
  for (int i = 0; i < 50; ++i) dialer().no_descriptor({name("a", i)}, clock_.now());
  EXPECT_TRUE(dialer().exhausted());
  for (int round = 0; round < 5; ++round) {
    EXPECT_TRUE(next().empty());
    EXPECT_EQ(dialer().wake(), clock_.now() + 1s);
    clock_.advance(1s);
    const auto turn = next();
    ASSERT_THAT(turn.open, SizeIs(1));
    clock_.advance(10ms);
    dialer().no_descriptor(turn.open[0], clock_.now());
  }
  clock_.advance(1s);
  const auto scout = next();
  ASSERT_THAT(scout.open, SizeIs(1));
  EXPECT_TRUE(next().empty());
  dialer().delivers(scout.open[0]);
  EXPECT_FALSE(dialer().exhausted());
  EXPECT_THAT(next().open, SizeIs(49)) << "at once: it was no fault of theirs";
}

TEST_F(DialerTest, ThatNoDescriptorIsLeftIsNewsOnce) {
  add("a", Way::blind);
  next();
  EXPECT_EQ(dialer().exhaustion_news(), std::nullopt);
  dialer().no_descriptor({"a"}, clock_.now());
  EXPECT_EQ(dialer().exhaustion_news(), true);
  EXPECT_EQ(dialer().exhaustion_news(), std::nullopt);
  clock_.advance(1s);
  ASSERT_THAT(next().open, SizeIs(1));
  dialer().delivers({"a"});
  EXPECT_EQ(dialer().exhaustion_news(), false);
  EXPECT_EQ(dialer().exhaustion_news(), std::nullopt);
}

TEST_F(DialerTest, ASourceWhoseActorHasEndedRestsOrWaitsForADescriptorOrIsGone) {
  add("a", Way::blind);
  next();
  dialer().ended({"a"}, {SourceEnd::Next::rest, clock_.now() + 3s}, clock_.now());
  EXPECT_TRUE(next().empty());
  clock_.advance(3s);
  ASSERT_THAT(next().open, SizeIs(1));
  dialer().ended({"a"}, {SourceEnd::Next::no_descriptor}, clock_.now());
  EXPECT_TRUE(dialer().exhausted());
  clock_.advance(1s);
  ASSERT_THAT(next().open, SizeIs(1));
  EXPECT_EQ(dialer().ended({"a"}, {}, clock_.now()), std::nullopt);
  EXPECT_EQ(dialer().opening(), 0U);
  EXPECT_FALSE(dialer().wake().has_value());
}

TEST_F(DialerTest, AScoutThatFailsOtherwiseOrHangsHasFoundADescriptor) {
  for (const bool hangs : {false, true}) {
    dialer_.emplace(limits_);
    add("a", 3, Way::blind);
    next();
    for (int i = 0; i < 3; ++i) dialer().no_descriptor({name("a", i)}, clock_.now());
    clock_.advance(1s);
    const auto scout = next();
    ASSERT_THAT(scout.open, SizeIs(1));
    if (hangs) {
      EXPECT_EQ(dialer().wake(), clock_.now() + 1s);
      clock_.advance(1s);
    } else {
      dialer().rest(scout.open[0], clock_.now() + 10s);
    }
    EXPECT_THAT(next().open, SizeIs(2));
    EXPECT_FALSE(dialer().exhausted());
  }
}

TEST_F(DialerTest, AScoutThatIsRemovedIsReplaced) {
  add("a", 3, Way::blind);
  next();
  for (int i = 0; i < 3; ++i) dialer().no_descriptor({name("a", i)}, clock_.now());
  clock_.advance(1s);
  const auto scout = next();
  ASSERT_THAT(scout.open, SizeIs(1));
  dialer().remove(scout.open[0]);
  clock_.advance(1s);
  EXPECT_THAT(next().open, SizeIs(1));
}

// A model of a fleet: whatever happens in whatever order, bounds hold, every source gets its turn, and in the
// end all is given back.
TEST_F(DialerTest, BoundsHoldAndNobodyStarvesInAnyOrderOfEvents) {
  limits_.opens = 8;
  limits_.repeats = 3;
  limits_.unasked = 4;
  limits_.questions = 6;
  limits_.files = 2;
  limits_.descriptors = 30;
  std::mt19937_64 random(7);
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  std::set<std::string> opening;
  std::set<std::string> delivering;
  std::map<std::string, std::uint64_t> asking;
  std::map<std::string, int> tried;
  std::set<std::string> known;
  const auto any = [&](const auto& names) {
    auto it = names.begin();
    std::advance(it, static_cast<std::ptrdiff_t>(below(names.size())));
    return it;
  };
  for (int step = 0; step < 200'000; ++step) {
    switch (below(9)) {
      case 0:
        if (const std::string camera = name("c", static_cast<int>(below(60))); !known.contains(camera)) {
          add(camera, std::array{Way::asked, Way::asked, Way::blind, Way::file}.at(
                          static_cast<unsigned char>(camera.back()) % 4U));
          known.insert(camera);
        }
        break;
      case 1:
        if (known.empty() || below(20) != 0) break;
        if (const std::string camera = *any(known); true) {
          const auto ticket = dialer().remove({camera});
          ASSERT_EQ(ticket.has_value(), asking.contains(camera));
          for (auto* set : {&opening, &delivering, &known}) set->erase(camera);
          asking.erase(camera);
        }
        break;
      case 2:
      case 3:
        if (asking.empty()) break;
        if (const auto [camera, ticket] = *any(asking); true) {
          const bool reachable = below(3) == 0;
          ASSERT_EQ(dialer().answered(ticket, reachable), SourceId{camera});
          if (!reachable) rest(camera, std::chrono::milliseconds(below(3000)));
          ++tried[camera];
          asking.erase(camera);
        }
        break;
      case 4:
      case 5:
        if (opening.empty()) break;
        if (const std::string camera = *any(opening); true) {
          opening.erase(camera);
          switch (below(3)) {
            case 0:
              dialer().delivers({camera});
              delivering.insert(camera);
              break;
            case 1:
              rest(camera, std::chrono::milliseconds(below(3000)));
              break;
            default:
              dialer().no_descriptor({camera}, clock_.now());
          }
        }
        break;
      case 6:
        if (delivering.empty()) break;
        if (const std::string camera = *any(delivering); true) {
          delivering.erase(camera);
          rest(camera, std::chrono::milliseconds(below(3000)));
        }
        break;
      default:
        clock_.advance(std::chrono::milliseconds(below(300)));
    }
    const auto turn = next();
    for (const std::string& camera : opened(turn)) {
      ASSERT_TRUE(known.contains(camera) && !opening.contains(camera) && !delivering.contains(camera) &&
                  !asking.contains(camera));
      opening.insert(camera);
      ++tried[camera];
    }
    for (const auto& [ticket, id] : turn.ask) {
      ASSERT_TRUE(known.contains(id.camera) && !opening.contains(id.camera) &&
                  !delivering.contains(id.camera));
      ASSERT_TRUE(asking.emplace(id.camera, ticket).second);
    }
    ASSERT_LE(dialer().opening(), 10U);
    ASSERT_EQ(dialer().asking(), asking.size());
    ASSERT_LE(asking.size(), 6U);
    ASSERT_LE(opening.size() + delivering.size() + asking.size(), 30U);
  }
  for (const std::string& camera : known) EXPECT_GT(tried[camera], 100) << camera;
  for (const std::string& camera : known) dialer().remove({camera});
  EXPECT_EQ(dialer().opening() + dialer().asking(), 0U);
  EXPECT_FALSE(dialer().wake().has_value());
  dialer().add({"last"}, Way::blind, 30, clock_.now() - 1h);
  clock_.advance(2s);
  EXPECT_THAT(opened(next()), ElementsAre("last")) << "every descriptor is free again";
}

TEST_F(DialerTest, AHundredThousandAreNoTrouble) {
  const auto begin = std::chrono::steady_clock::now();
  add("lost", 100'000, Way::asked);
  for (int second = 0; second < 30; ++second) {
    const auto turn = next();
    for (const auto& [ticket, id] : turn.ask) {
      dialer().answered(ticket, false);
      dialer().rest(id, clock_.now() + 10s);
    }
    clock_.advance(1s);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s) << "every step by itself is cheap";
}

TEST(DialerLimits, LeaveDescriptorsToOthers) {
  for (const std::uint64_t descriptors : {0U, 1U, 10U, 64U, 65U, 100U, 256U, 1024U, 1U << 20}) {
    const Dialer::Limits limits = Dialer::limits_for(descriptors);
    EXPECT_GE(limits.descriptors, 1U);
    EXPECT_LE(limits.descriptors, std::max<std::uint64_t>(1, descriptors / 2));
    EXPECT_GE(limits.questions, 1U);
    EXPECT_LE(limits.questions, std::max<std::size_t>(1, limits.descriptors / 4));
    EXPECT_LE(limits.questions, 4096U);
  }
  EXPECT_EQ(Dialer::limits_for(1024).descriptors, 512U);
}

TEST(Sources, FilesAndDevicesAreOpenedServersAreAskedAndTheRestIsTried) {
  for (const char* url :
       {"/clips/gate.mp4", "file:///clips/gate.mp4", "clips/12:30.mp4", "/dev/video0", "v4l2:///dev/video0"})
    EXPECT_EQ(way_of(url, true), Way::file) << url;
  for (const char* url : {"rtsp://u:p@10.0.0.1/live", "rtsps://[fe80::1]/live", "http://cam.lan:8080/mjpeg",
                          "https://cam/x.m3u8", "rtmp://10.0.0.1/app/stream", "tcp://10.0.0.1:9000"}) {
    EXPECT_EQ(way_of(url, true), Way::asked) << url;
    EXPECT_EQ(way_of(url, false), Way::blind) << url;
  }
  for (const char* url : {"udp://239.0.0.1:5000", "rtp://10.0.0.1:5000", "srt://10.0.0.1:9000",
                          "tcp://0.0.0.0:9000?listen=1", "rtmp://0.0.0.0/live?listen", "tcp://10.0.0.1",
                          "rtsp://", "rtsp://host:99999/x", "rtsp://10.0.0.1/a b"})
    EXPECT_EQ(way_of(url, true), Way::blind) << url;
}

TEST(Sources, CountTheirDescriptors) {
  const auto tcp = camera("tcp", config::Pace::realtime, "rtsp://10.0.0.1/live");
  const auto udp = camera("udp", config::Pace::realtime, "rtsp://10.0.0.1/live");
  udp->stream.transport = config::Transport::udp;
  const auto tunnelled = camera("tunnelled", config::Pace::realtime, "rtsps://10.0.0.1/live");
  tunnelled->stream.transport = config::Transport::udp;
  const auto apart = camera("apart");
  apart->inputs.push_back({{"/clips/main.mp4", ""}, {config::Role::record}});
  const std::vector<CameraPtr> cameras = {tcp, apart, udp, tcp};
  EXPECT_EQ(cameras_within(100, cameras, false), 4U);
  EXPECT_EQ(cameras_within(7, cameras, false), 3U);
  EXPECT_EQ(cameras_within(7, cameras, true), 2U) << "what is recorded apart takes one more";
  EXPECT_EQ(cameras_within(0, cameras, true), 0U);
  EXPECT_EQ(descriptors_of(*tunnelled, config::Role::detect), 4U) << "the tunnel knows no UDP";
}

TEST(LineBudgetTest, CountsWhatIsBeyondItAndBeginsAnew) {
  ManualClock clock;
  LineBudget lines(3, 60s);
  int written = 0;
  for (int i = 0; i < 10; ++i) written += lines.take(clock.now()) ? 1 : 0;
  EXPECT_EQ(written, 3);
  EXPECT_EQ(lines.take_missed(clock.now()), 0U) << "not yet";
  clock.advance(60s);
  EXPECT_FALSE(lines.take(clock.now())) << "what was missed is told before";
  EXPECT_EQ(lines.take_missed(clock.now()), 8U);
  EXPECT_EQ(lines.take_missed(clock.now()), 0U);
  EXPECT_TRUE(lines.take(clock.now()));
  clock.advance(59s);
  EXPECT_TRUE(lines.take(clock.now()));
  EXPECT_TRUE(lines.take(clock.now()));
  EXPECT_FALSE(lines.take(clock.now()));
}

}  // namespace
}  // namespace vigil::actors
