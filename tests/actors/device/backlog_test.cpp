#include "actors/device/backlog.h"

#include <chrono>

#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;

TEST(BacklogTest, APatchOrAWindowThatCameLateIsRememberedForAWhile) {
  const base::Clock::TimePoint now(1000s);
  Backlog backlog;
  EXPECT_FALSE(backlog.is_behind(now)) << "nothing came yet";
  backlog.encoded(now - 2s, now);
  backlog.answered(now - 4s, 8s, now);
  EXPECT_FALSE(backlog.is_behind(now)) << "in time";
  backlog.encoded(now - 2001ms, now);
  EXPECT_TRUE(backlog.is_behind(now));
  EXPECT_TRUE(backlog.is_behind(now + 29s));
  backlog.encoded(now + 28s, now + 29s);
  EXPECT_FALSE(backlog.is_behind(now + 30s)) << "what is in time does not make it longer";
  backlog.answered(now + 40s, 2s, now + 41001ms);
  EXPECT_TRUE(backlog.is_behind(now + 71s)) << "half of a short stride is soon over";
  backlog.overtaken(now + 80s);
  EXPECT_TRUE(backlog.is_behind(now + 109s));
  EXPECT_FALSE(backlog.is_behind(now + 110s));
}

}  // namespace
}  // namespace vigil::actors
