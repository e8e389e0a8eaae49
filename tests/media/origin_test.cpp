#include "media/origin.h"

#include <gtest/gtest.h>

namespace vigil::media {
namespace {

TEST(Origin, IsSchemeHostAndPort) {
  EXPECT_EQ(origin_of("rtsp://u:p@Cam.Local/live"), (Origin{"rtsp", "cam.local", 554}));
  EXPECT_EQ(origin_of("HTTP://h:8080?x=1"), (Origin{"http", "h", 8080}));
  EXPECT_EQ(origin_of("https://[fe80::1]/a"), (Origin{"https", "fe80::1", 443}));
  EXPECT_EQ(origin_of("crypto+https://h/a.ts"), (Origin{"https", "h", 443}));
  EXPECT_EQ(origin_of("http://good@evil:80/"), (Origin{"http", "evil", 80}));
  EXPECT_EQ(origin_of("http://good/@evil:80/"), (Origin{"http", "good", 80}));
  for (const char* none : {"", "clip.mp4", "/a/b", "://", "http://", "file:///etc/passwd", "concat:a|b",
                           "subfile,,start,0,end,1,,:http://h/", "data:text/plain,x"}) {
    EXPECT_FALSE(origin_of(none)) << none;
  }
}

TEST(Origin, OfTwoUrlsIsTheSameOrNot) {
  EXPECT_TRUE(same_origin("http://a:b@h/x", "http://H:80/y"));
  EXPECT_FALSE(same_origin("http://h/x", "http://h:81/x"));
  EXPECT_FALSE(same_origin("http://h/x", "https://h/x"));
  EXPECT_FALSE(same_origin("http://h/x", "http://h.evil/x"));
  EXPECT_FALSE(same_origin("a.mp4", "a.mp4"));
}

TEST(Origin, ARedirectStaysOnTheServer) {
  const std::string url = "http://u:p@h:8080/a/b?c=1#d";
  EXPECT_EQ(redirected(url, "/x"), "http://u:p@h:8080/x");
  EXPECT_EQ(redirected(url, "x/y"), "http://u:p@h:8080/a/x/y");
  EXPECT_EQ(redirected(url, "?e=2"), "http://u:p@h:8080/a/b?e=2");
  EXPECT_EQ(redirected(url, "http://h:8080/x"), "http://u:p@h:8080/x");
  EXPECT_EQ(redirected(url, "http://v:q@h:8080/x"), "http://v:q@h:8080/x");
  EXPECT_EQ(redirected(url, "//h:8080/x"), "http://u:p@h:8080/x");
  EXPECT_EQ(redirected("http://h", "x"), "http://h/x");
  EXPECT_EQ(redirected("http://u:p@h/x", "https://h/x"), "https://u:p@h/x");
  for (const char* elsewhere :
       {"http://h/x", "http://h:9090/x", "https://h:8080/x", "http://h:8080@evil/x", "//evil:8080/x",
        "http://127.0.0.1:8080/", "file:///etc/passwd", "file:/etc/passwd", "concat:/a|/b", "data:x",
        "subfile,,start,0,end,9,,:/etc/passwd", "rtsp://h:8080/", ""}) {
    const auto next = redirected(url, elsewhere);
    // What is no URL of its own is a path of the same server.
    EXPECT_TRUE(!next || same_origin(*next, url)) << elsewhere << " -> " << *next;
  }
  EXPECT_FALSE(redirected("https://h/x", "http://h/x")) << "the password would go in clear text";
  EXPECT_FALSE(redirected("http://h:8080/x", "https://h/x"));
}

TEST(Origin, AnotherServerCanStandInTheUrl) {
  EXPECT_EQ(with_server("rtsps://u:p@h:322/a?b=1", "rtsp", "127.0.0.1:7"), "rtsp://u:p@127.0.0.1:7/a?b=1");
  EXPECT_EQ(with_server("rtsps://h", "rtsp", "127.0.0.1:7"), "rtsp://127.0.0.1:7");
}

}  // namespace
}  // namespace vigil::media
