#include "base/url_mask.h"

#include <gtest/gtest.h>

namespace vigil::base {
namespace {

TEST(UrlMask, MasksUserAndPassword) {
  EXPECT_EQ(mask_urls("rtsp://admin:s3cret@10.0.0.7:554/live"), "rtsp://***@10.0.0.7:554/live");
  EXPECT_EQ(mask_urls("rtsp://admin@10.0.0.7/live"), "rtsp://***@10.0.0.7/live");
  EXPECT_EQ(mask_urls("rtsp://10.0.0.7:554/live"), "rtsp://10.0.0.7:554/live");
  EXPECT_EQ(mask_urls("rtsp://:s3cret@host/live"), "rtsp://***@host/live");
  EXPECT_EQ(mask_urls("http://[fe80::1]:80/a@b"), "http://[fe80::1]:80/a@b");
}

TEST(UrlMask, MasksPasswordsThatHoldDelimiters) {
  EXPECT_EQ(mask_urls("rtsp://admin:p@ss:w0rd@host/live"), "rtsp://***@host/live");
  EXPECT_EQ(mask_urls("rtsp://admin:pa/ss@host/live"), "rtsp://***@host/live");
  EXPECT_EQ(mask_urls("rtsp://admin:pa?ss#1@host/live"), "rtsp://***@host/live");
}

TEST(UrlMask, MasksPasswordsThatHoldWhatEndsAUrlInAText) {
  for (const char* password : {"it'scold", "a|b", "two words", "12#34", "2024/x", "80", "a\"b"}) {
    const std::string url = "rtsp://admin:" + std::string(password) + "@10.0.0.5/live";
    EXPECT_EQ(mask_urls(url), "rtsp://***@10.0.0.5/live") << password;
    EXPECT_EQ(mask_credentials(url), "rtsp://***@10.0.0.5/live") << password;
    EXPECT_EQ(mask_urls(url + ": no route to host"), "rtsp://***@10.0.0.5/live: no route to host");
  }
  EXPECT_EQ(mask_credentials("http://h/v?token=it'ssecret&x=1"), "http://h/v?***");
}

TEST(UrlMask, AnAddressWithoutAPasswordStaysAsItIs) {
  for (const char* url : {"http://10.0.0.7/a@b", "http://[::1]/x@y", "rtsp://10.0.0.7:554/live"}) {
    EXPECT_EQ(mask_urls(url), url);
    EXPECT_EQ(mask_credentials(url), url);
  }
  EXPECT_EQ(mask_urls("no 'rtsp://10.0.0.7/live' for me@home"), "no 'rtsp://10.0.0.7/live' for me@home");
  EXPECT_EQ(mask_credentials("clip's.mp4"), "clip's.mp4");
}

TEST(UrlMask, MasksSecretsInTheQuery) {
  EXPECT_EQ(mask_urls("http://host/v.m3u8?cam=7&Token=abc&password=x#t"), "http://host/v.m3u8?cam=7&***");
}

TEST(UrlMask, MasksEveryUrlOfAText) {
  EXPECT_EQ(mask_urls("tried 'rtsp://a:b@c/d', then http://e:f@g: failed"),
            "tried 'rtsp://***@c/d', then http://***@g: failed");
}

TEST(UrlMask, LeavesFileNamesAlone) {
  for (const char* name :
       {"clip.mp4", "/a:b@c/clip.mp4", "me@home:video.mp4", "", "://", "x://", "rtsp://:@"}) {
    EXPECT_EQ(mask_urls(name), std::string(name) == "rtsp://:@" ? "rtsp://***@" : name);
  }
}

TEST(UrlMask, ASourceMayBeAFile) {
  EXPECT_EQ(mask_source("me@home:video.mp4"), "me@home:video.mp4");
  EXPECT_EQ(mask_source("rtsp://me@home/live"), "rtsp://***@home/live");
}

TEST(UrlMask, WhatEndsASentenceIsNoneOfTheUrl) {
  EXPECT_EQ(mask_urls("leads to http://h/AbCdEf0123GhIjKl: refused (http://h/live)."),
            "leads to http://h/***: refused (http://h/live).");
}

TEST(UrlMask, AHostOfAMegabyteIsNoTrouble) {
  const std::string host(1 << 20, 'a');
  EXPECT_EQ(mask_credentials("udp://" + host + ":1234"), "udp://" + host + ":1234");
  EXPECT_EQ(mask_credentials("udp://u:p@" + host + '!'), "udp://***@***");
  const std::string path(1 << 20, '/');
  EXPECT_EQ(mask_credentials("http://h" + path), "http://h" + path);
  EXPECT_EQ(mask_credentials("http://h/x?" + host + '=' + host), "http://h/x?***");
  EXPECT_EQ(mask_credentials("http://[" + std::string(1 << 20, ':') + "]/"),
            "http://[" + std::string(1 << 20, ':') + "]/");
}

TEST(UrlMask, AHostHasTheCharactersOfOne) {
  for (const char* host : {"h", "h:80", "h_1-2.example:", "[fe80::1%25]:554", "192.0.2.7:1"})
    EXPECT_EQ(mask_credentials("udp://" + std::string(host)), "udp://" + std::string(host));
  for (const char* host : {"h!", "h:80x", "[fe80::1", "[zz]", "a b", "h:8:0"})
    EXPECT_EQ(mask_credentials("udp://" + std::string(host)), "udp://***");
}

// What a server says that was told the URL, wherever it puts its parts.
TEST(UrlMask, PartsThatAreNotShownAreHiddenEverywhere) {
  const std::string url = "http://operator:hunter2@h:80/swordfish/clip.mp4?session=qT0k";
  const std::string shown = "http://***@h:80/***/clip.mp4?***";
  EXPECT_EQ(mask_parts("see http://other/swordfish/clip.mp4#qT0k for operator, hunter2hunter2", url, shown),
            "see http://other/***/clip.mp4#*** for ***, ******");
  EXPECT_EQ(mask_parts("no clip.mp4 at h:80", url, shown), "no clip.mp4 at h:80");
  EXPECT_EQ(mask_parts("the cat sat", "http://cat:at@h", "http://***@h"), "the cat sat")
      << "too short to tell";
  EXPECT_EQ(mask_parts("as it is", "clip.mp4", "clip.mp4"), "as it is");
}

}  // namespace
}  // namespace vigil::base
