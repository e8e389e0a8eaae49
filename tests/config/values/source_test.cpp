#include "config/values/source.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "config/file/substitute.h"

namespace vigil::config {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Source, FilesUrlsAndDevicesHaveNoFault) {
  for (const char* source : {"gate.mp4",
                             "/clips/gate@north.mp4",
                             "./gate@north.mp4",
                             "../clips/12:30@gate.mp4",
                             "/dev/video0",
                             "file:///clips/a@b.mp4",
                             "rtsp://gate",
                             "rtsp://10.0.0.1:554/live",
                             "rtsps://[fe80::1]:322/live",
                             "rtsp://admin:s3cr%2Fet@gate:554/live",
                             "rtsp://admin:s3cr@et@gate/live",
                             "rtsp://admin:s3cret@gate:554/live@north",
                             "rtsp://10.0.0.1/a@b",
                             "gate:1",
                             "gate.1/2.mp4",
                             "http://user@host:8080/live",
                             "udp://@239.0.0.1:5000",
                             "udp://:5000",
                             "srt://host:4000?mode=listener",
                             "v4l2:///dev/video0",
                             "rtsp://host:/live",
                             "12:30.mp4",
                             "http://*.example/x",
                             "tls://cam:9000"}) {
    EXPECT_EQ(source_fault(source), std::nullopt) << source;
  }
}

TEST(Source, AFaultIsSaidInWordsThatShowNothingOfTheSource) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "a file or a URL"},
      {"  ", "a file or a URL"},
      {"admin:hunter2@10.0.0.1/live", "a URL with its scheme"},
      {"hunter2@cam", "a URL with its scheme"},
      {"//admin:hunter2@cam/live", "a URL with its scheme"},
      {"/admin:hunter2@cam/live", "a URL with its scheme"},
      {"rtsp:/admin:hunter2@cam/live", "a URL with its scheme"},
      {"rtsp:admin:hunter2@cam/live", "a URL with its scheme"},
      {"://admin:hunter2@cam/live", "a URL with its scheme"},
      {"rt sp://admin:hunter2@cam/live", "a URL with its scheme"},
      {"192.168.1.10:554/hunter2", "a URL with its scheme"},
      {"192.168.1.10:554", "a URL with its scheme"},
      {"192.168.1.10/hunter2", "a URL with its scheme"},
      {"192.168.1.10", "such as rtsp://"},
      {"127.0.0.1:8554/gate", "a URL with its scheme"},
      {"gate:8554/hunter2", "a URL with its scheme"},
      {"[fe80::1]:554/live", "a URL with its scheme"},
      {"rtsp:/hunter2/live", "a URL with its scheme"},
      {"rtsp://viewer:p@ss:hunter2/rd@host/x", "`password:`"},
      {"rtsp://viewer:hunter2/rd@host/x", "percent-encoded"},
      {"rtsp://viewer:hunter2?rd@10.0.0.1:554/x", "percent-encoded"},
      {"rtsp://viewer:hunter2#rd@host:554/x", "percent-encoded"},
      {"rstp://admin:hunter2@cam/live", "did you mean `rtsp`?"},
      {"RTSP://admin:hunter2@cam/live", "did you mean `rtsp`?"},
      {"htp://hunter2.cam/live", "did you mean `http`?"},
      {"lavfi://movie=hunter2", "a scheme that is known: rtsp, rtsps, http, "},
      {"gopher://hunter2.cam/live", "a scheme that is known: rtsp, rtsps, http, "},
      {"rtsp://admin:hunter2@cam:99999/live", "a port from 1 to 65535"},
      {"rtsp://cam:0/live", "a port from 1 to 65535"},
      {"rtsp://admin:hunter2", "a port from 1 to 65535"},
      {"rtsp://[fe80::1]:70000/hunter2", "a port from 1 to 65535"},
      {"rtsp://", "a host"},
      {"rtsp:///live", "a host"},
      {"rtsp://admin:hunter2@/live", "a host"},
      {"http://:8080/live", "a host"},
  };
  for (const auto& [source, words] : cases) {
    const auto fault = source_fault(source);
    ASSERT_TRUE(fault) << source;
    EXPECT_THAT(*fault, HasSubstr(words)) << source;
    EXPECT_THAT(*fault, Not(HasSubstr("hunter2"))) << source;
    EXPECT_THAT(*fault, Not(HasSubstr("\n"))) << source;
  }
}

TEST(Source, TokensInPathsAreMasked) {
  const std::pair<const char*, const char*> cases[] = {
      // UniFi, cloud streams, tokens by name.
      {"rtsps://10.0.0.1:7441/AbCdEf0123?enableSrtp", "rtsps://10.0.0.1:7441/***?***"},
      {"rtsp://10.0.0.1:7447/s7vRWqDkYBJ0YMbZ", "rtsp://10.0.0.1:7447/***"},
      {"https://cdn.example/hls/9f86d081884c7d659a2f/index.m3u8", "https://cdn.example/hls/***/index.m3u8"},
      {"https://cdn.example/550e8400-e29b-41d4-a716-446655440000/live.m3u8",
       "https://cdn.example/***/live.m3u8"},
      {"http://h/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4In0.dBjftJeZ4CVP/x", "http://h/***/x"},
      {"http://h/aB3-dE6_gH9-jK2/x", "http://h/***/x"},
      {"http://h/token/abc/x", "http://h/token/***/x"},
      {"http://h/api_key/abc", "http://h/api_key/***"},
      {"http://h/live;jsessionid=a1/x", "http://h/***/x"},
      {"rtsp://h/user=admin_password=tlJwpbo6_channel=1_stream=0.sdp?real_stream", "rtsp://h/***?***"},
      {"http://h/p%40ss/x", "http://h/***/x"},
      {"rtsp://h/live#token=abc", "rtsp://h/live#***"},
      {"rtsp://h/live#AbCdEf0123", "rtsp://h/live#***"},
      // A path that stands behind a user.
      {"rtsps://admin:s3cret@10.0.0.1:7441/AbCdEf0123", "rtsps://***@10.0.0.1:7441/***"},
  };
  for (const auto& [url, shown] : cases) EXPECT_EQ(mask_credentials(url), shown);
}

TEST(Source, PathsOfCommonCamerasStayReadable) {
  for (const char* url : {"rtsp://h/Streaming/Channels/101",
                          "rtsp://h/ISAPI/Streaming/channels/102",
                          "rtsp://h/h264Preview_01_main",
                          "rtsp://h/h265Preview_01_sub",
                          "rtsp://h/cam/realmonitor?channel=1&subtype=0",
                          "rtsp://h/axis-media/media.amp",
                          "rtsp://h/live/ch00_0",
                          "rtsp://h/onvif-media/media.amp",
                          "rtsp://h/MediaInput/h264/stream_1",
                          "rtsp://h/videoMain",
                          "rtsp://h/profile5/media.smp",
                          "rtsp://h/live_mpeg4.sdp",
                          "rtsp://h/ch0_0.h264",
                          "http://h/mjpg/video.mjpg",
                          "http://h/img/video.sav",
                          "http://h/nphMotionJpeg",
                          "rtsp://h/AVStream1_1",
                          "rtsp://h/trackID=1",
                          "rtsp://h/recordings/2026-08-01/entrance-north.mp4",
                          "rtsp://h/stream1",
                          "rtsp://h/unicaststream/1",
                          "http://h/hls/camera-01/playlist_1080p.m3u8",
                          "rtsp://gate/live#x",
                          "rtsp://h/avstream/channel=1/stream=0.sdp"}) {
    EXPECT_EQ(mask_credentials(url), url);
  }
  for (const char* url :
       {"file:///clips/9f86d081884c7d659a2f.mp4", "v4l2:///dev/v4l/by-id/usb-046d_0825_9F86D081"}) {
    EXPECT_EQ(mask_credentials(url), url);
  }
}

TEST(Source, NoRandomTokenIsShownWhereverItStandsInAUrl) {
  std::mt19937 random(7);
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  int shown = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string token;
    for (int k = 0; k < 16; ++k) token += alphabet[random() % alphabet.size()];
    for (const std::string& url : {"rtsps://10.0.0.1:7441/" + token + "?enableSrtp",
                                   "https://cdn.example/live/" + token + "/index.m3u8",
                                   "rtsp://h/live#" + token, "rtsp://h/" + token + ".sdp"}) {
      if (mask_credentials(url).find(token) != std::string::npos) ++shown;
    }
    for (const std::string& url : {"rtsp://u:" + token + "@h/live", "rtsp://" + token + "@h/live",
                                   "http://h/live?a=" + token, "http://h/live?" + token}) {
      EXPECT_EQ(mask_credentials(url).find(token), std::string::npos) << url;
    }
  }
  // What happens to look like words cannot be told from them.
  EXPECT_LE(shown, 8);
}

const Environment kSecrets = [](const std::string& name) -> std::optional<std::string> {
  if (name == "TOKEN") return "hunter2";
  if (name == "CLIPS") return "/srv/hunter2";
  return std::nullopt;
};

std::string problems_of(const std::string& text) {
  try {
    parse(text, "/etc/vigil/site.yaml", kSecrets);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string with_url(const std::string& url, const std::string& more = "") {
  return "model: m\ncameras:\n  gate: {url: '" + url + "', " + more +
         "rules: [{name: car, prompt: 'Car?'}]}\n";
}

TEST(Source, AUrlWithoutItsSchemeIsRefusedAndNotShown) {
  EXPECT_EQ(
      problems_of(with_url("admin:hunter2@10.0.0.1/live")),
      "/etc/vigil/site.yaml:3:15: cameras.gate.url: expected a URL with its scheme, such as rtsp://, since "
      "there is an `@` or `://`; a file of such a name is written ./NAME");
  EXPECT_THAT(problems_of("model: m\ncameras: {gate: {inputs: [{url: 'admin:{TOKEN}@h'}], rules: [{name: r, "
                          "prompt: p}]}}\n"),
              HasSubstr("cameras.gate.inputs[0].url: expected a URL with its scheme"));
  EXPECT_EQ(
      problems_of(with_url("rstp://admin:hunter2@h/live")),
      "/etc/vigil/site.yaml:3:15: cameras.gate.url: expected a scheme that is known; did you mean `rtsp`?");
}

TEST(Source, AVariableInTheNameOfAFileIsShownMasked) {
  const auto url_of = [](const std::string& url) {
    return parse(with_url(url), "/etc/vigil/site.yaml", kSecrets).cameras[0].url();
  };
  EXPECT_EQ(url_of("{CLIPS}/gate.mp4"), (MaskedText{"/srv/hunter2/gate.mp4", "***/gate.mp4"}));
  EXPECT_EQ(url_of("clips/{TOKEN}.mp4"),
            (MaskedText{"/etc/vigil/clips/hunter2.mp4", "/etc/vigil/clips/***.mp4"}));
  EXPECT_EQ(url_of("rtsp://h/{TOKEN}/live"), (MaskedText{"rtsp://h/hunter2/live", "rtsp://h/***/live"}));
}

TEST(Source, NoVariableStandsInALabel) {
  const std::string told =
      problems_of(with_url("rtsp://h/live", "labels: {tenant: '{TOKEN}', note: 'of {TOKEN}'}, "));
  EXPECT_THAT(told, HasSubstr("cameras.gate.labels.tenant: labels go out with every event"));
  EXPECT_THAT(told, HasSubstr("cameras.gate.labels.note: labels go out with every event"));
  EXPECT_THAT(told, Not(HasSubstr("hunter2")));
  EXPECT_EQ(problems_of(with_url("rtsp://h/live", "labels: {note: 'of {braces} and {}'}, ")), "");
}

}  // namespace
}  // namespace vigil::config
