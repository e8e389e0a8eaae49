// Cameras against VLC, over RTSP and HTTP, and against a web server.
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/rtsp/server.h"
#include "tests/rtsp/watched.h"
#include "tests/temporary_folder.h"

namespace vigil::testing {
namespace {

using namespace ::testing;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// A folder that everybody may read, with a clip of 640x360 in it.
class Clips : public ::testing::Test {
 protected:
  Clips() {
    using std::filesystem::perms;
    std::filesystem::permissions(folder_, perms::owner_all | perms::group_read | perms::group_exec |
                                              perms::others_read | perms::others_exec);
    std::filesystem::copy_file(std::string(VIGIL_SOURCE_DIR) + "/tests/videos/bottle-detection.mp4", clip());
    std::filesystem::permissions(clip(), perms::owner_all | perms::group_read | perms::others_read);
  }

  std::string clip() const { return folder_ / "clip.mp4"; }

  const TemporaryFolder scratch_;
  const std::filesystem::path& folder_ = scratch_.path();
};

const media::Size kSize{640, 360};

TEST_F(Clips, VlcIsWatchedOverRtsp) {
  if (const std::string missing = Vlc::missing(); !missing.empty()) GTEST_SKIP() << missing;
  const Vlc server(clip(), "#rtp{sdp=rtsp://127.0.0.1:PORT/live}");
  // Which it serves over UDP only.
  auto settings = live_camera("rtsp://127.0.0.1:" + std::to_string(server.port()) + "/live");
  settings->stream.transport = config::Transport::udp;
  const Watched camera(settings);
  ASSERT_TRUE(camera.await_frames(20)) << PrintToString(camera.story().states);
  EXPECT_EQ(camera.story().frames.back().size, kSize);
}

TEST_F(Clips, VlcIsWatchedOverHttp) {
  if (const std::string missing = Vlc::missing(); !missing.empty()) GTEST_SKIP() << missing;
  const Vlc server(clip(), "#std{access=http,mux=ts,dst=127.0.0.1:PORT/live.ts}");
  const Watched camera(live_camera("http://127.0.0.1:" + std::to_string(server.port()) + "/live.ts"));
  ASSERT_TRUE(camera.await_frames(20)) << PrintToString(camera.story().states);
  EXPECT_EQ(camera.story().frames.back().size, kSize);
}

TEST_F(Clips, ARecordingOnAWebServerIsPlayedAtItsOwnPace) {
  // Python's server sends files from their beginning only, so the index has to stand there.
  const std::string indexed = folder_ / "indexed.mp4";
  Process convert({"ffmpeg", "-v", "error", "-i", clip(), "-c", "copy", "-movflags", "faststart", indexed});
  ASSERT_EQ(convert.line(), std::nullopt) << "it says nothing, and ends";
  const WebServer server(folder_.string());
  const Watched camera(live_camera(server.url("indexed.mp4")));
  ASSERT_TRUE(camera.await_state("up")) << PrintToString(camera.story().states);
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(camera.await_frames(20)) << PrintToString(camera.story().states);
  const std::chrono::duration<double> span = std::chrono::steady_clock::now() - start;
  // 20 frames at 5 a second, in patches of two.
  EXPECT_GT(span.count(), 3.0);
}

TEST_F(Clips, AnAddressThatIsNotThereSaysSo) {
  const WebServer server(folder_.string());
  const Watched camera(live_camera(server.url("other.mp4")));
  ASSERT_TRUE(camera.await([](const Watched::Story& story) {
    return std::any_of(story.states.begin(), story.states.end(), [](const std::string& state) {
      return state.find("404 Not Found") != std::string::npos;
    });
  })) << PrintToString(camera.story().states);
}

}  // namespace
}  // namespace vigil::testing
