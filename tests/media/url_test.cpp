#include "media/url.h"

#include <gtest/gtest.h>

namespace vigil::media {
namespace {

TEST(Url, MasksThePasswordOnly) {
  EXPECT_EQ(without_credentials("rtsp://admin:s3cret@10.0.0.7:554/live"),
            "rtsp://admin:***@10.0.0.7:554/live");
  EXPECT_EQ(without_credentials("rtsp://admin@10.0.0.7/live"), "rtsp://admin@10.0.0.7/live");
  EXPECT_EQ(without_credentials("rtsp://10.0.0.7:554/live"), "rtsp://10.0.0.7:554/live");
  EXPECT_EQ(without_credentials("rtsp://:s3cret@host/live"), "rtsp://:***@host/live");
  EXPECT_EQ(without_credentials("http://[fe80::1]:80/a@b"), "http://[fe80::1]:80/a@b");
}

TEST(Url, MasksPasswordsThatHoldDelimiters) {
  EXPECT_EQ(without_credentials("rtsp://admin:p@ss:w0rd@host/live"), "rtsp://admin:***@host/live");
  EXPECT_EQ(without_credentials("rtsp://admin:pa/ss@host/live"), "rtsp://admin:***@host/live");
  EXPECT_EQ(without_credentials("rtsp://admin:pa?ss#1@host/live"), "rtsp://admin:***@host/live");
}

TEST(Url, MasksPasswordsThatHoldWhatEndsAUrlInAText) {
  for (const char* password : {"it'scold", "a|b", "two words", "12#34", "2024/x", "80", "a\"b"}) {
    const std::string url = "rtsp://admin:" + std::string(password) + "@10.0.0.5/live";
    EXPECT_EQ(without_credentials(url), "rtsp://admin:***@10.0.0.5/live") << password;
    EXPECT_EQ(url_without_credentials(url), "rtsp://admin:***@10.0.0.5/live") << password;
    EXPECT_EQ(without_credentials(url + ": no route to host"),
              "rtsp://admin:***@10.0.0.5/live: no route to host");
  }
  EXPECT_EQ(url_without_credentials("http://h/v?token=it'ssecret&x=1"), "http://h/v?token=***&x=1");
}

TEST(Url, AnAddressWithoutAPasswordStaysAsItIs) {
  for (const char* url :
       {"http://host/a@b", "http://host/a:b@c", "http://[::1]/x@y", "rtsp://10.0.0.7:554/live"}) {
    EXPECT_EQ(without_credentials(url), url);
    EXPECT_EQ(url_without_credentials(url), url);
  }
  EXPECT_EQ(without_credentials("no 'rtsp://10.0.0.7/live' for me@home"),
            "no 'rtsp://10.0.0.7/live' for me@home");
  EXPECT_EQ(url_without_credentials("clip's.mp4"), "clip's.mp4");
}

TEST(Url, MasksSecretsInTheQuery) {
  EXPECT_EQ(without_credentials("http://host/v.m3u8?cam=7&Token=abc&password=x#t"),
            "http://host/v.m3u8?cam=7&Token=***&password=***#t");
}

TEST(Url, MasksEveryUrlOfAText) {
  EXPECT_EQ(without_credentials("tried 'rtsp://a:b@c/d', then http://e:f@g: failed"),
            "tried 'rtsp://a:***@c/d', then http://e:***@g: failed");
}

TEST(Url, LeavesFileNamesAlone) {
  for (const char* name :
       {"clip.mp4", "/a:b@c/clip.mp4", "me@home:video.mp4", "", "://", "x://", "rtsp://:@"}) {
    EXPECT_EQ(without_credentials(name), std::string(name) == "rtsp://:@" ? "rtsp://:***@" : name);
  }
}

}  // namespace
}  // namespace vigil::media
