// Cameras against RTSP servers that are not ours.
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/certificate.h"
#include "tests/rtsp/server.h"
#include "tests/rtsp/watched.h"
#include "tests/temporary_folder.h"

namespace vigil::testing {
namespace {

using namespace ::testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const media::Size kSize{160, 120};

class Rtsp : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = GStreamer::missing(); !missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(Rtsp, IsWatchedOverTcp) {
  const GStreamer server;
  const Watched camera(live_camera(server.url("only-tcp")));
  ASSERT_TRUE(camera.await_frames(20)) << PrintToString(camera.story().states);
  const auto story = camera.story();
  EXPECT_THAT(story.states, ElementsAre("connecting: " + server.url("only-tcp"), "up"));
  EXPECT_EQ(story.frames.back().size, kSize);
  // 20 frames in patches of two, 5 a second.
  EXPECT_NEAR(story.frames[18].seconds - story.frames[2].seconds, 3.2, 0.3);
}

TEST_F(Rtsp, IsWatchedOverUdp) {
  const GStreamer server;
  auto settings = live_camera(server.url("only-udp"));
  settings->stream.transport = config::Transport::udp;
  const Watched camera(settings);
  ASSERT_TRUE(camera.await_frames(20)) << PrintToString(camera.story().states);
  EXPECT_EQ(camera.story().frames.back().size, kSize);
}

TEST_F(Rtsp, TheTransportIsTheOneThatWasAskedFor) {
  const GStreamer server;
  auto settings = live_camera(server.url("only-tcp"));
  settings->stream.transport = config::Transport::udp;
  const Watched over_udp(settings);
  const Watched over_tcp(live_camera(server.url("only-udp")));
  EXPECT_TRUE(over_udp.await_state("down: ")) << PrintToString(over_udp.story().states);
  EXPECT_TRUE(over_tcp.await_state("down: ")) << PrintToString(over_tcp.story().states);
  EXPECT_THAT(over_tcp.story().states.back(), HasSubstr("Unsupported"));
}

TEST_F(Rtsp, APasswordIsUsedAndNeverShown) {
  const GStreamer server(0, {"--user", "viewer", "--password", "hunter2"});
  const Watched right(live_camera(server.url("live", "viewer:hunter2")));
  const Watched wrong(live_camera(server.url("live", "viewer:hunter3")));
  const Watched none(live_camera(server.url("live")));
  EXPECT_TRUE(right.await_frames(4)) << PrintToString(right.story().states);
  for (const Watched* refused : {&wrong, &none}) {
    ASSERT_TRUE(refused->await_state("down: ")) << PrintToString(refused->story().states);
    EXPECT_THAT(refused->story().states.back(), HasSubstr("401 Unauthorized"));
    EXPECT_THAT(refused->story().states.back(), Not(HasSubstr("\n")));
  }
  EXPECT_THAT(wrong.story().states.back(), StartsWith("down: rtsp://***@127.0.0.1:"));
  for (const Watched* each : {&right, &wrong, &none}) {
    for (const std::string& state : each->story().states) EXPECT_THAT(state, Not(HasSubstr("hunter")));
  }
}

TEST_F(Rtsp, IsWatchedOverTlsOnlyIfItIsVerified) {
  const GStreamer server(0, {"--user", "viewer", "--password", "hunter2"});
  const TemporaryFolder folder;
  const auto text = media::make_certificate({.name = "DNS:localhost"});
  std::ofstream(folder / "ca.pem") << text.certificate;
  std::ofstream(folder / "key.pem") << text.key;
  Process proxy({"/usr/bin/python3", std::string(VIGIL_SOURCE_DIR) + "/tests/rtsp/tls_proxy.py",
                 folder / "ca.pem", folder / "key.pem", std::to_string(server.port())});
  const auto line = proxy.line();
  ASSERT_TRUE(line && line->starts_with("port "));
  const auto settings = [&](const std::string& host) {
    return live_camera("rtsps://viewer:hunter2@" + host + ":" + line->substr(5) + "/live");
  };
  const auto trusting = settings("localhost");
  trusting->stream.tls.ca_file = folder / "ca.pem";
  const Watched right(trusting);
  const auto insecure = settings("127.0.0.1");
  insecure->stream.tls.insecure = true;
  const Watched without(insecure);
  const Watched stranger(settings("localhost"));
  EXPECT_TRUE(right.await_frames(8)) << PrintToString(right.story().states);
  EXPECT_TRUE(without.await_frames(8)) << PrintToString(without.story().states);
  ASSERT_TRUE(stranger.await_state("down: ")) << PrintToString(stranger.story().states);
  EXPECT_THAT(stranger.story().states.back(), HasSubstr("its certificate is not trusted"));
}

TEST_F(Rtsp, AServerThatIsKilledAndStartedAgainIsWatchedAgain) {
  std::optional<GStreamer> server(std::in_place);
  const int port = server->port();
  const Watched camera(live_camera(server->url("live")));
  ASSERT_TRUE(camera.await_frames(4));
  server.reset();
  ASSERT_TRUE(camera.await_state("down: ")) << PrintToString(camera.story().states);
  // Tried again and again.
  ASSERT_TRUE(camera.await([](const Watched::Story& story) { return story.reconnects >= 4; }));
  const std::size_t seen = camera.story().states.size();
  server.emplace(port);
  ASSERT_TRUE(camera.await_state("up", seen)) << PrintToString(camera.story().states);
  ASSERT_TRUE(camera.await_frames(4));
  EXPECT_EQ(camera.story().count("connecting"), 1U) << "attempts while it is down are no news";
}

TEST_F(Rtsp, AServerThatGoesSilentIsStalledThenTriedAgain) {
  GStreamer server;
  const Watched camera(live_camera(server.url("live")));
  ASSERT_TRUE(camera.await_frames(4));
  server.tell("mute live");
  ASSERT_TRUE(camera.await_state("stalled: silent for 2s")) << PrintToString(camera.story().states);
  server.tell("unmute live");
  ASSERT_TRUE(camera.await([](const Watched::Story& story) { return story.count("up") == 2; }));
  EXPECT_EQ(camera.story().reconnects, 0U) << "the connection has been open all the time";
  server.tell("mute live");
  ASSERT_TRUE(camera.await_state("down: ")) << PrintToString(camera.story().states);
  EXPECT_THAT(camera.story().states.back(), HasSubstr("nothing came for 6.00 s"));
  server.tell("unmute live");
  ASSERT_TRUE(camera.await([](const Watched::Story& story) { return story.count("up") == 3; }))
      << PrintToString(camera.story().states);
}

TEST_F(Rtsp, AConnectionThatIsHalfOpenIsFound) {
  const GStreamer server;
  // Two streams, since GStreamer fails when the first two clients of one come at once over both.
  auto settings = live_camera(server.url("only-udp"));
  settings->stream.transport = config::Transport::udp;
  const Watched over_udp(settings);
  const Watched over_tcp(live_camera(server.url("only-tcp")));
  ASSERT_TRUE(over_tcp.await_frames(4));
  ASSERT_TRUE(over_udp.await_frames(4));
  // The machine is gone, and nobody has closed the connection.
  server.signal(SIGSTOP);
  for (const Watched* camera : {&over_tcp, &over_udp}) {
    EXPECT_TRUE(camera->await_state("stalled")) << PrintToString(camera->story().states);
    EXPECT_TRUE(camera->await_state("down: ")) << PrintToString(camera->story().states);
  }
  server.signal(SIGCONT);
  for (const Watched* camera : {&over_tcp, &over_udp}) {
    EXPECT_TRUE(camera->await([](const Watched::Story& story) { return story.count("up") == 2; }))
        << PrintToString(camera->story().states);
  }
}

TEST_F(Rtsp, ASmartCodecIsAliveByItsPackets) {
  const GStreamer server;
  auto settings = live_camera(server.url("smart"));
  // A sample every 20 s, and a key frame in an hour.
  settings->stream.fps = 0.05;
  const Watched camera(settings);
  ASSERT_TRUE(camera.await_state("up")) << PrintToString(camera.story().states);
  // 5 s at 10 packets a second, with a silence of two seconds being a stall.
  ASSERT_TRUE(camera.await([](const Watched::Story& story) { return story.packets >= 50; }));
  EXPECT_THAT(camera.story().states, ElementsAre(StartsWith("connecting"), "up"));
  // Who comes between two key frames waits for one, and neither gives up nor calls the camera stalled.
  const Watched late(live_camera(server.url("headless")));
  ASSERT_TRUE(late.await([](const Watched::Story& story) { return story.packets >= 50; }));
  EXPECT_THAT(late.story().states, ElementsAre(StartsWith("connecting")));
}

TEST_F(Rtsp, AnotherSizeInTheMiddleIsFollowed) {
  GStreamer server;
  const Watched camera(live_camera(server.url("live")));
  ASSERT_TRUE(camera.await_frames(4));
  server.tell("resize live 320 240");
  ASSERT_TRUE(camera.await([](const Watched::Story& story) {
    return story.frames.back().size == media::Size{320, 240};
  })) << PrintToString(camera.story().states);
  EXPECT_EQ(camera.story().reconnects, 0U);
}

TEST_F(Rtsp, AnotherCodecIsFollowed) {
  std::optional<GStreamer> server(std::in_place);
  const int port = server->port();
  const Watched camera(live_camera(server->url("live")));
  ASSERT_TRUE(camera.await_frames(4));
  for (const char* codec : {"vp8", "mjpeg"}) {
    const std::size_t seen = camera.story().states.size();
    server.reset();
    server.emplace(port, std::vector<std::string>{"--serve", std::string("live=") + codec});
    ASSERT_TRUE(camera.await_state("up", seen)) << codec << PrintToString(camera.story().states);
    ASSERT_TRUE(camera.await_frames(4)) << codec;
  }
}

TEST_F(Rtsp, GarbageIsSeenAsDownAndHoldsUpNobody) {
  const GStreamer server;
  const Watched garbage(live_camera(server.url("garbage")));
  const Watched camera(live_camera(server.url("live")));
  ASSERT_TRUE(camera.await_frames(4));
  ASSERT_TRUE(garbage.await_state("down: ")) << PrintToString(garbage.story().states);
  EXPECT_THAT(garbage.story().states.back(), Not(HasSubstr("\n")));
  EXPECT_EQ(garbage.story().count("up"), 0U);
  ASSERT_TRUE(camera.await_frames(4));
  EXPECT_EQ(camera.story().reconnects, 0U);
}

TEST_F(Rtsp, AClockThatJumpsMakesNoJumpInTime) {
  GStreamer server;
  const Watched camera(live_camera(server.url("live")));
  ASSERT_TRUE(camera.await_frames(10));
  // Seconds by which the timestamps are ahead: an hour, none again, and back by two.
  for (const char* ahead : {"3600", "0", "-2"}) {
    server.tell(std::string("jump live ") + ahead);
    ASSERT_TRUE(camera.await_frames(10)) << ahead << PrintToString(camera.story().states);
  }
  const auto story = camera.story();
  for (std::size_t i = 1; i < story.frames.size(); ++i) {
    EXPECT_GE(story.frames[i].seconds, story.frames[i - 1].seconds);
    EXPECT_LT(story.frames[i].seconds - story.frames[i - 1].seconds, 2);
  }
  EXPECT_THAT(story.states, ElementsAre(StartsWith("connecting"), "up"));
}

}  // namespace
}  // namespace vigil::testing
