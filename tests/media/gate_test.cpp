// What a source may not reach: other files of the machine, other servers, other kinds of files.
#include "media/gate.h"

#include <chrono>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/url_mask.h"
#include "tests/media/clip.h"
#include "tests/media/test_server.h"

namespace vigil::media {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class GateTest : public testing::Test {
 protected:
  GateTest() {
    Clip clip;
    clip.frames = 30;
    write_clip(clip_, clip);
    bytes_ = read_bytes(clip_);
  }

  std::string playlist_of(const std::string& segment) const {
    return "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXTINF:1.2,\n" + segment +
           "\n#EXT-X-ENDLIST\n";
  }

  Scratch scratch_;
  /// Somebody else's video, which no source below may show.
  const std::string clip_ = scratch_ / "secret.ts";
  std::string bytes_;
};

ReadOptions in_time() {
  ReadOptions options;
  options.open_timeout = std::chrono::seconds(20);
  options.read_timeout = std::chrono::seconds(20);
  return options;
}

ReadOptions with_playlists() {
  ReadOptions options = in_time();
  options.playlists = true;
  return options;
}

TEST_F(GateTest, AFileThatNamesOthersOpensNone) {
  const std::vector<std::pair<std::string, std::string>> lists = {
      {"hls", playlist_of(clip_)},
      {"hls of a URL", playlist_of("file://" + clip_)},
      {"concat", "ffconcat version 1.0\nfile '" + clip_ + "'\n"},
      {"sdp",
       "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\n"
       "a=rtpmap:96 H264/90000\n"},
      {"dash",
       "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" "
       "profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\" type=\"static\" "
       "mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet mimeType=\"video/mp2t\">"
       "<Representation id=\"1\" bandwidth=\"1\"><BaseURL>file://" +
           clip_ + "</BaseURL></Representation></AdaptationSet></Period></MPD>"},
      {"imf",
       "<?xml version=\"1.0\"?><CompositionPlaylist xmlns=\"http://www.smpte-ra.org/schemas/2067-3/"
       "2016\"></CompositionPlaylist>"}};
  for (const auto& [kind, text] : lists) {
    for (const char* name : {"gate.mp4", "gate.m3u8", "gate.mpd", "gate.ffconcat", "gate.sdp", "gate"}) {
      const std::string path = scratch_ / name;
      write_bytes(path, text);
      // It does not matter that playlists are allowed: these would be of files.
      for (const ReadOptions& options : {in_time(), with_playlists()}) {
        EXPECT_THAT(error_of(path, options), testing::StartsWith(path + ": ")) << kind;
      }
      std::filesystem::remove(path);
    }
  }
  write_bytes(scratch_ / "gate.mp4", playlist_of(clip_));
  EXPECT_THAT(error_of(scratch_ / "gate.mp4"), AllOf(HasSubstr("playlist"), HasSubstr("`playlists: true`")));
}

TEST_F(GateTest, NoTextIsTakenForAProtocolButThoseThatAreListed) {
  const std::vector<std::string> texts = {"concat:" + clip_,
                                          "concat:" + clip_ + "|" + clip_,
                                          "subfile,,start,0,end,9999999,,:" + clip_,
                                          "file:" + clip_,
                                          "async:" + clip_,
                                          "cache:" + clip_,
                                          "crypto:" + clip_,
                                          "hls+file:" + clip_,
                                          "data:video/mp2t;base64,AAAA",
                                          "pipe:0",
                                          "lavfi:testsrc",
                                          "ffrtmphttp://127.0.0.1/",
                                          "concat://" + clip_,
                                          "subfile://" + clip_,
                                          "async://" + clip_,
                                          "lavfi://testsrc=rate=5",
                                          "lavfi://movie=" + clip_,
                                          "x11grab://:0",
                                          "kmsgrab://-",
                                          "fbdev:///dev/fb0",
                                          "gopher://127.0.0.1:9/",
                                          "hls+http://127.0.0.1:9/",
                                          "unix:///tmp/x",
                                          "smb://server/share",
                                          "\\\\server\\share\\clip.mp4"};
  for (const std::string& text : texts) {
    EXPECT_THAT(error_of(text, in_time()), testing::StartsWith(base::mask_source(text))) << text;
  }
  EXPECT_THAT(error_of("lavfi://testsrc"), AllOf(HasSubstr("`lavfi:` is not opened"), HasSubstr("rtsp://")));
  EXPECT_THAT(error_of("concat:" + clip_), AllOf(HasSubstr("No such file"), HasSubstr("rtsp://")));
  EXPECT_EQ(error_of("file://" + clip_), "");
}

TEST_F(GateTest, AFileMayBeCalledLikeAnything) {
  for (const char* name : {"concat:a", "http:b", "12:30.ts", "a%d.ts", "x@y.ts"}) {
    write_bytes(scratch_ / name, bytes_);
    EXPECT_EQ(error_of(scratch_ / name), "") << name;
  }
}

TEST_F(GateTest, APictureIsNoSequence) {
  Clip clip;
  clip.codec = "mjpeg";
  clip.format = AV_PIX_FMT_YUVJ420P;
  clip.container = "image2";
  clip.frames = 1;
  for (const char* name : {"a1.jpg", "a2.jpg"}) write_clip(scratch_ / name, clip);
  EXPECT_EQ(read_all(scratch_ / "a1.jpg").samples.size(), 1U);
  EXPECT_THAT(error_of(scratch_ / "a%d.jpg"), HasSubstr("No such file"));
  std::filesystem::copy(scratch_ / "a1.jpg", scratch_ / "a%d.jpg");
  EXPECT_EQ(read_all(scratch_ / "a%d.jpg").samples.size(), 1U);
}

TEST_F(GateTest, WhatIsNoFileIsRefusedAtOnce) {
  const std::string pipe = scratch_ / "pipe.mp4";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(error_of(pipe), AllOf(testing::StartsWith(pipe), HasSubstr("is a pipe")));
  EXPECT_THAT(error_of("file://" + pipe), HasSubstr("is a pipe"));
  const std::string socket = scratch_ / "socket.mp4";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  const int listening = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listening, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_THAT(error_of(socket), HasSubstr("is a socket"));
  close(listening);
  for (const char* device : {"/dev/zero", "/dev/null", "/dev/tty", "v4l2:///dev/zero"}) {
    EXPECT_THAT(error_of(device), HasSubstr("camera")) << device;
  }
  EXPECT_THAT(error_of("/proc"), HasSubstr("is a folder"));
  EXPECT_THAT(error_of("/proc/kmsg"), testing::Not(""));
  EXPECT_THAT(error_of("/proc/self/environ"), HasSubstr("the file is empty"));
  EXPECT_THAT(error_of("v4l2://" + clip_), HasSubstr("is a file"));
  std::filesystem::create_symlink(pipe, scratch_ / "link.mp4");
  EXPECT_THAT(error_of(scratch_ / "link.mp4"), HasSubstr("is a pipe"));
}

TEST_F(GateTest, AServersPlaylistIsPlayedWhereItIsAllowed) {
  const TestServer server(
      http_answers({{"/live/a.m3u8", http_ok(playlist_of("b.ts"))}, {"/live/b.ts", http_ok(bytes_)}}));
  const std::string url = "http://" + server.host() + "/live/a.m3u8";
  EXPECT_THAT(error_of(url, in_time()), AllOf(HasSubstr("playlist"), HasSubstr("`playlists: true`")));
  EXPECT_EQ(server.received().find("b.ts"), std::string::npos);
  EXPECT_EQ(read_all(url, with_playlists()).samples.size(), 3U);
}

TEST_F(GateTest, APlaylistLeadsToNoOtherServer) {
  const TestServer internal(
      http_answers({{"/x.ts", http_ok(bytes_)}, {"/x.m3u8", http_ok(playlist_of("x.ts"))}}));
  const std::string there = "http://" + internal.host() + "/x.ts";
  const std::string key = "#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXT-X-KEY:METHOD=AES-128,URI=\"" + there +
                          "\"\n#EXTINF:1.2,\na.ts\n#EXT-X-ENDLIST\n";
  const std::string header = "#EXTM3U\n#EXT-X-VERSION:7\n#EXT-X-TARGETDURATION:2\n#EXT-X-MAP:URI=\"" + there +
                             "\"\n#EXTINF:1.2,\na.ts\n#EXT-X-ENDLIST\n";
  const std::string master =
      "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhttp://" + internal.host() + "/x.m3u8\n";
  const std::string audio = "#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID=\"a\",NAME=\"a\",URI=\"http://" +
                            internal.host() +
                            "/x.m3u8\"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO=\"a\"\nb.m3u8\n";
  std::map<std::string, std::string> answers = {{"/a.ts", http_ok(bytes_)},
                                                {"/b.m3u8", http_ok(playlist_of("a.ts"))},
                                                {"/moved.ts", http_redirect(there)}};
  const std::vector<std::string> playlists = {playlist_of(there),
                                              playlist_of("crypto+" + there),
                                              playlist_of("file://" + clip_),
                                              playlist_of(clip_),
                                              playlist_of("concat:" + there),
                                              playlist_of("data:video/mp2t;base64,AAAA"),
                                              playlist_of("tcp://" + internal.host()),
                                              playlist_of("/moved.ts"),
                                              key,
                                              header,
                                              master,
                                              audio};
  for (std::size_t i = 0; i < playlists.size(); ++i)
    answers["/" + std::to_string(i) + ".m3u8"] = http_ok(playlists[i]);
  const TestServer server(http_answers(answers));
  for (std::size_t i = 0; i < playlists.size(); ++i) {
    const std::string url = "http://" + server.host() + "/" + std::to_string(i) + ".m3u8";
    EXPECT_NE(error_of(url, with_playlists()), "") << playlists[i];
    EXPECT_EQ(internal.connections(), 0) << playlists[i];
  }
  EXPECT_THAT(error_of("http://" + server.host() + "/0.m3u8", with_playlists()),
              AllOf(HasSubstr("its playlist names another server"), HasSubstr(internal.host())));
}

TEST_F(GateTest, DashIsNotPlayed) {
  const TestServer internal(http_answers({{"/x.mp4", http_ok(bytes_)}}));
  const std::string manifest =
      "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" "
      "profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\" type=\"static\" "
      "mediaPresentationDuration=\"PT1S\"><Period><AdaptationSet mimeType=\"video/mp4\"><Representation "
      "id=\"1\" bandwidth=\"1\"><BaseURL>http://" +
      internal.host() + "/x.mp4</BaseURL></Representation></AdaptationSet></Period></MPD>";
  const TestServer server(http_answers({{"/a.mpd", http_ok(manifest)}, {"/a.mp4", http_ok(manifest)}}));
  for (const char* path : {"/a.mpd", "/a.mp4"}) {
    EXPECT_THAT(error_of("http://" + server.host() + path, with_playlists()), HasSubstr("`dash`"));
  }
  EXPECT_EQ(internal.connections(), 0);
}

// Who the server leads to is shown, what it was told is not.
TEST_F(GateTest, ARefusalShowsNoSecretOfTheUrl) {
  const std::string secrets = "/AbCdEf0123GhIjKl/swordfish/clip.mp4?qT0kEn99zz";
  std::string scheme;
  std::string location;
  const TestServer server([&](const std::string& request) -> std::string {
    if (!request.ends_with("\r\n\r\n")) return {};
    return (scheme == "rtsp" ? "RTSP/1.0 302 Moved\r\nCSeq: 1\r\nLocation: "
                             : "HTTP/1.1 302 Found\r\nContent-Length: 0\r\nLocation: ") +
           location + "\r\n\r\n";
  });
  for (const char* each : {"http", "rtsp"}) {
    scheme = each;
    location = scheme + "://127.0.0.1:9" + secrets;
    ReadOptions options = in_time();
    // A word of the path that the operator gave as a secret.
    options.shown_name = scheme + "://***@" + server.host() + "/***/***/clip.mp4?***";
    const std::string error = error_of(scheme + "://tokenuserQQ:hunter2@" + server.host() + secrets, options);
    EXPECT_THAT(error, HasSubstr("redirects to another one, which is not asked: " + scheme +
                                 "://127.0.0.1:9/***/***/clip.mp4?***"));
    for (const char* secret : {"AbCdEf", "swordfish", "qT0kEn", "tokenuser", "hunter2"})
      EXPECT_THAT(error, Not(HasSubstr(secret)));
  }
  scheme = "http";
  location = "http://127.0.0.1:9/\x1b[31m\x07";
  EXPECT_THAT(error_of("http://" + server.host() + "/", in_time()),
              AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07"))));
}

/// An element of EBML.
std::string ebml(std::uint32_t id, const std::string& body) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8)
    if (id >> shift != 0) text += static_cast<char>(id >> shift);
  text += '\x01';
  for (int shift = 48; shift >= 0; shift -= 8) text += static_cast<char>(body.size() >> shift);
  return text + body;
}

// A demuxer keeps what it has read of a source before the first picture.
TEST_F(GateTest, WhatIsReadBeforeTheFirstPictureIsBounded) {
  const std::string attached = ebml(0x466E, "a.ttf") + ebml(0x4660, "font/ttf") + ebml(0x46AE, "1");
  std::string attachments;
  for (int i = 0; i < 3; ++i)
    attachments += ebml(0x61A7, attached + ebml(0x465C, std::string(60 << 20, 'x')));
  std::string playlist = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n";
  while (playlist.size() < (6U << 20)) playlist += "#EXTINF:1,\na.ts\n";
  const TestServer server(http_answers({{"/a.mkv", http_ok(ebml(0x1A45DFA3, ebml(0x4282, "matroska")) +
                                                           ebml(0x18538067, ebml(0x1941A469, attachments)))},
                                        {"/a.m3u8", http_ok(playlist)}}));
  EXPECT_THAT(error_of("http://" + server.host() + "/a.mkv", in_time()),
              HasSubstr("more than 128 MiB before its first picture"));
  ReadOptions options = in_time();
  options.playlists = true;
  EXPECT_THAT(error_of("http://" + server.host() + "/a.m3u8", options),
              HasSubstr("more than 4 MiB before its first picture"));
}

TEST_F(GateTest, ARedirectIsFollowedOnTheSameServerOnly) {
  const TestServer internal(http_answers({{"/x.ts", http_ok(bytes_)}}));
  const TestServer server(http_answers({{"/a.ts", http_redirect("/b.ts?c=1")},
                                        {"/b.ts?c=1", http_redirect("d.ts")},
                                        {"/d.ts", http_ok(bytes_)},
                                        {"/away.ts", http_redirect("http://" + internal.host() + "/x.ts")},
                                        {"/around.ts", http_redirect("/around.ts")}}));
  const std::string at = "http://viewer:hunter2@" + server.host();
  EXPECT_EQ(read_all(at + "/a.ts", in_time()).samples.size(), 3U);
  EXPECT_THAT(error_of(at + "/away.ts", in_time()),
              AllOf(HasSubstr("redirects to another one"), HasSubstr(internal.host() + "/x.ts"),
                    Not(HasSubstr("hunter2"))));
  EXPECT_EQ(internal.connections(), 0);
  EXPECT_THAT(error_of(at + "/around.ts", in_time()), HasSubstr("redirects for ever"));
}

TEST_F(GateTest, ARedirectOnTheServerTakesTheUserAlong) {
  const TestServer server([this](const std::string& request) -> std::string {
    if (request.find("\r\n\r\n") == std::string::npos) return {};
    if (request.starts_with("GET /a")) return http_redirect("/b.ts");
    // viewer:hunter2
    if (request.find("Basic dmlld2VyOmh1bnRlcjI=") != std::string::npos) return http_ok(bytes_);
    return "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: "
           "0\r\nConnection: close\r\n\r\n";
  });
  EXPECT_EQ(error_of("http://viewer:hunter2@" + server.host() + "/a.ts", in_time()), "");
}

// As some cameras' error pages do.
TEST_F(GateTest, WhatAServerRepeatsOfTheUserAndPasswordIsNotShown) {
  for (const std::string scheme : {"Basic", "Digest", "Basic alone"}) {
    std::string sent;
    const TestServer server([&](const std::string& request) -> std::string {
      if (!request.ends_with("\r\n\r\n")) return {};
      std::string line = request;
      for (char& c : line)
        if (c == '\r' || c == '\n') c = ' ';
      sent += line;
      const std::size_t token = line.find("Basic ");
      if (token != line.npos && scheme == "Basic alone") line = line.substr(token + 6);
      return "RTSP/1.0 401 no " + line + "\r\nCSeq: 1\r\nWWW-Authenticate: " + scheme.substr(0, 6) +
             " realm=\"x\", nonce=\"y\"\r\n\r\n";
    });
    // viewer:hunter 2
    const std::string url = "rtsp://viewer:hunter%202@" + server.host() + "/a";
    ReadOptions options = in_time();
    options.shown_name = "rtsp://***@" + server.host() + "/a";
    const std::string error = error_of(url, options);
    EXPECT_THAT(sent, HasSubstr("Authorization: " + scheme.substr(0, 5))) << "or the test shows nothing";
    EXPECT_THAT(error, AllOf(HasSubstr("401"), Not(HasSubstr("dmlld2VyOmh1bnRlciAy")),
                             Not(HasSubstr("response=")), Not(HasSubstr("hunter"))));
  }
}

TEST_F(GateTest, ARedirectOfRtspIsFollowedOnTheSameServerOnly) {
  const auto no_such_stream = [](const std::string& request) -> std::string {
    return request.ends_with("\r\n\r\n") ? "RTSP/1.0 404 Not Found\r\nCSeq: 1\r\n\r\n" : "";
  };
  const TestServer internal(no_such_stream);
  std::string location;
  const TestServer server([&](const std::string& request) -> std::string {
    if (!request.ends_with("\r\n\r\n")) return {};
    if (request.find("/b RTSP") != std::string::npos) return "RTSP/1.0 404 Not Found\r\nCSeq: 1\r\n\r\n";
    return "RTSP/1.0 302 Moved\r\nCSeq: 1\r\nLocation: " + location + "\r\n\r\n";
  });
  const std::string url = "rtsp://viewer:hunter2@" + server.host() + "/a";
  for (const std::string& elsewhere :
       {"rtsp://" + internal.host() + "/a", "rtsps://" + internal.host() + "/a",
        "http://" + internal.host() + "/"}) {
    location = elsewhere;
    EXPECT_THAT(error_of(url, in_time()), HasSubstr("redirects to another one")) << elsewhere;
  }
  EXPECT_EQ(internal.connections(), 0);
  location = "rtsp://" + server.host() + "/b";
  EXPECT_THAT(error_of(url, in_time()), HasSubstr("404"));
  EXPECT_NE(server.received().find("/b RTSP"), std::string::npos);
}

TEST_F(GateTest, AnErrorHasTheShownNameAndNoOther) {
  const TestServer server(http_answers({}));
  ReadOptions options = in_time();
  options.shown_name = "http://***@camera/?***";
  const std::string url = "http://viewer:hunter2@" + server.host() + "/a?pin=4711";
  EXPECT_THAT(error_of(url, options), AllOf(testing::StartsWith("http://***@camera/?***: "), HasSubstr("404"),
                                            Not(HasSubstr("hunter2")), Not(HasSubstr("4711"))));
  options.shown_name = "clip ***";
  write_bytes(scratch_ / "pin4711.ts", bytes_);
  EXPECT_EQ(read_all(scratch_ / "pin4711.ts", options).info.name, "clip ***");
}

}  // namespace
}  // namespace vigil::media
