// Servers with TLS: who is not whom the source names is not sent a password.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/media/clip.h"
#include "tests/media/test_server.h"

namespace vigil::media {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Asks for a user and password, and gives a clip to whoever has any.
std::string http_camera(const std::string& request, const std::string& clip) {
  if (request.find("\r\n\r\n") == std::string::npos) return {};
  if (request.find("Authorization: Basic") != std::string::npos) return http_ok(clip);
  return "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"x\"\r\nContent-Length: "
         "0\r\nConnection: "
         "close\r\n\r\n";
}

/// As far as the password goes.
std::string rtsp_camera(const std::string& request) {
  if (!request.ends_with("\r\n\r\n")) return {};
  const std::string sequence = request.substr(request.find("CSeq: "), 7);
  if (request.starts_with("OPTIONS"))
    return "RTSP/1.0 200 OK\r\n" + sequence + "\r\nPublic: DESCRIBE, SETUP, PLAY\r\n\r\n";
  if (request.find("Authorization: Basic") != std::string::npos)
    return "RTSP/1.0 451 Well Known\r\n" + sequence + "\r\n\r\n";
  return "RTSP/1.0 401 Unauthorized\r\n" + sequence + "\r\nWWW-Authenticate: Basic realm=\"x\"\r\n\r\n";
}

class TlsTest : public testing::TestWithParam<const char*> {
 protected:
  TlsTest() {
    Clip clip;
    clip.frames = 30;
    write_clip(scratch_ / "a.ts", clip);
    bytes_ = read_bytes(scratch_ / "a.ts");
  }

  /// Starts the camera and reads it; what went wrong.
  std::string error_with(const Certificate& certificate, const std::string& host, bool trusted,
                         bool insecure = false) {
    const bool http = std::string_view(GetParam()) == "https";
    server_ = std::make_unique<TestServer>(
        [this, http](const std::string& request) {
          return http ? http_camera(request, bytes_) : rtsp_camera(request);
        },
        certificate);
    write_bytes(scratch_ / "ca.pem", server_->pem());
    ReadOptions options;
    options.open_timeout = std::chrono::seconds(20);
    options.tls.insecure = insecure;
    if (trusted) options.tls.ca_file = scratch_ / "ca.pem";
    return error_of(std::string(GetParam()) + "://viewer:hunter2@" + host + ":" +
                        std::to_string(server_->port()) + "/a.ts",
                    options);
  }

  bool heard_password() const {
    return server_->received().find("Authorization: Basic") != std::string::npos;
  }

  /// What a camera says that is content: HTTP's plays, RTSP's has an answer that no other has.
  void expect_played(const std::string& error) const {
    if (std::string_view(GetParam()) == "https") {
      EXPECT_EQ(error, "");
    } else {
      EXPECT_THAT(error, Not(HasSubstr("certificate")));
    }
    EXPECT_TRUE(heard_password());
  }

  Scratch scratch_;
  std::string bytes_;
  std::unique_ptr<TestServer> server_;
};

TEST_P(TlsTest, AStrangerHearsNothing) {
  const std::string error = error_with({"DNS:camera.example"}, "127.0.0.1", false);
  EXPECT_THAT(error, AllOf(HasSubstr("certificate"), HasSubstr("ca_file"), HasSubstr("insecure"),
                           Not(HasSubstr("hunter2"))));
  EXPECT_EQ(server_->received(), "");
}

TEST_P(TlsTest, SomebodyElseWhoIsTrustedHearsNothing) {
  EXPECT_THAT(error_with({"DNS:camera.example"}, "localhost", true), HasSubstr("certificate"));
  EXPECT_EQ(server_->received(), "");
  EXPECT_THAT(error_with({"IP:127.0.0.2"}, "127.0.0.1", true), HasSubstr("certificate"));
  EXPECT_EQ(server_->received(), "");
  EXPECT_THAT(error_with({"DNS:127.0.0.1.example"}, "127.0.0.1", true), HasSubstr("certificate"));
  EXPECT_EQ(server_->received(), "");
}

TEST_P(TlsTest, AnExpiredCertificateIsNone) {
  EXPECT_THAT(error_with({"IP:127.0.0.1", true}, "127.0.0.1", true), HasSubstr("certificate"));
  EXPECT_EQ(server_->received(), "");
}

TEST_P(TlsTest, TheNameOrTheAddressIsThatOfTheCertificate) {
  expect_played(error_with({"IP:127.0.0.1"}, "127.0.0.1", true));
  expect_played(error_with({"DNS:localhost"}, "localhost", true));
}

TEST_P(TlsTest, WhoeverWantsToGoesWithout) {
  expect_played(error_with({"DNS:camera.example", true}, "127.0.0.1", false, true));
}

TEST_P(TlsTest, AFileOfCertificatesThatIsNoneIsAnError) {
  ReadOptions options;
  options.tls.ca_file = scratch_ / "none.pem";
  const TestServer server(rtsp_camera, {"IP:127.0.0.1"});
  const std::string url = std::string(GetParam()) + "://viewer:hunter2@" + server.host() + "/";
  EXPECT_NE(error_of(url, options), "");
  write_bytes(scratch_ / "none.pem", "no certificate");
  EXPECT_NE(error_of(url, options), "");
  EXPECT_EQ(server.received(), "");
}

INSTANTIATE_TEST_SUITE_P(Schemes, TlsTest, testing::Values("https", "rtsps"),
                         [](const auto& scheme) { return std::string(scheme.param); });

TEST(Tls, ARedirectToAServerThatIsNotVerifiedIsNotFollowed) {
  const TestServer stranger(http_answers({{"/", http_ok("x")}}), {"IP:127.0.0.1"});
  const TestServer server(http_answers({{"/", http_redirect("https://" + stranger.host() + "/")}}));
  EXPECT_THAT(error_of("http://viewer:hunter2@" + server.host() + "/"), HasSubstr("redirects"));
  EXPECT_EQ(stranger.connections(), 0);
}

class HlsTest : public testing::Test {
 protected:
  HlsTest() {
    Clip clip;
    clip.frames = 30;
    write_clip(scratch_ / "a.ts", clip);
    bytes_ = read_bytes(scratch_ / "a.ts");
  }

  /// Of two segments, so that there is a second connection or more.
  static std::string playlist_of(const std::string& segment) {
    const std::string entry = "#EXTINF:1.2,\n" + segment + '\n';
    return "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n" + entry + "#EXT-X-DISCONTINUITY\n" + entry +
           "#EXT-X-ENDLIST\n";
  }

  /// What playing the server's playlist ends with. `trusted`: certificates in PEM.
  std::string error_with(const TestServer& server, const std::string& trusted) {
    write_bytes(scratch_ / "ca.pem", trusted);
    ReadOptions options;
    options.open_timeout = options.read_timeout = std::chrono::seconds(20);
    options.playlists = true;
    options.tls.ca_file = scratch_ / "ca.pem";
    return error_of("https://" + server.host() + "/a.m3u8", options);
  }

  Scratch scratch_;
  std::string bytes_;
  const Certificate certificate_{"IP:127.0.0.1"};
};

TEST_F(HlsTest, APlaylistAndItsSegmentsComeFromAServerThatIsVerified) {
  const TestServer server(
      http_answers({{"/a.m3u8", http_ok(playlist_of("b.ts"))}, {"/b.ts", http_ok(bytes_)}}), certificate_);
  EXPECT_EQ(error_with(server, server.pem()), "");
  EXPECT_GE(server.connections(), 3);
  const int before = server.connections();
  const std::string heard = server.received();
  EXPECT_THAT(error_with(server, make_certificate(certificate_).certificate), HasSubstr("certificate"));
  EXPECT_GT(server.connections(), before);
  EXPECT_EQ(server.received(), heard) << "who is not trusted is asked nothing";
}

TEST_F(HlsTest, ASegmentIsNotAskedOfSomebodyElseAtTheSameAddress) {
  TestServer* there = nullptr;
  const auto answer = http_answers({{"/a.m3u8", http_ok(playlist_of("b.ts"))}, {"/b.ts", http_ok(bytes_)}});
  TestServer server(
      [&](const std::string& request) {
        std::string said = answer(request);
        if (!said.empty()) there->present(certificate_);
        return said;
      },
      certificate_);
  there = &server;
  EXPECT_NE(error_with(server, server.pem()), "");
  EXPECT_THAT(server.received(), HasSubstr("GET /a.m3u8"));
  EXPECT_THAT(server.received(), Not(HasSubstr("GET /b.ts")));
  EXPECT_GE(server.connections(), 2) << "it was there to be asked";
}

TEST_F(HlsTest, APlaylistLeadsToNoOtherServerThoughThatIsTrusted) {
  const TestServer secure(http_answers({{"/b.ts", http_ok(bytes_)}}), certificate_);
  const TestServer plain(http_answers({{"/b.ts", http_ok(bytes_)}}));
  for (const std::string& segment :
       {"https://" + secure.host() + "/b.ts", "http://" + plain.host() + "/b.ts"}) {
    const TestServer server(http_answers({{"/a.m3u8", http_ok(playlist_of(segment))}}), certificate_);
    EXPECT_THAT(error_with(server, server.pem() + secure.pem()),
                HasSubstr("its playlist names another server"))
        << segment;
  }
  EXPECT_EQ(secure.connections(), 0);
  EXPECT_EQ(plain.connections(), 0);
}

TEST(Tls, ASilentServerEndsInTime) {
  for (const char* scheme : {"https", "rtsps", "tls"}) {
    const TestServer server([](const std::string&) { return std::string(); });
    ReadOptions options;
    options.open_timeout = std::chrono::milliseconds(200);
    const std::string error = error_of(std::string(scheme) + "://" + server.host() + "/", options);
    EXPECT_THAT(error, HasSubstr("nothing came for 0.20 s")) << scheme;
  }
}

TEST(Tls, WhoSpeaksNoTlsIsAnError) {
  for (const char* scheme : {"https", "rtsps", "tls"}) {
    const TestServer server(
        [](const std::string&) { return std::string("HTTP/1.1 400 Bad Request\r\n\r\n"); });
    EXPECT_NE(error_of(std::string(scheme) + "://viewer:hunter2@" + server.host() + "/"), "") << scheme;
    EXPECT_THAT(server.received(), Not(HasSubstr("hunter2")));
    EXPECT_THAT(server.received(), Not(HasSubstr("Authorization")));
  }
}

}  // namespace
}  // namespace vigil::media
