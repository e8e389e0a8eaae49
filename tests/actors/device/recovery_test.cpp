#include "actors/device/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using namespace std::chrono_literals;

TEST(Recovery, TriesThriceAndForgetsWhatIsLongAgo) {
  Recovery recovery;
  Recovery::TimePoint now(1h);
  EXPECT_EQ(recovery.failed(now), now);
  EXPECT_EQ(recovery.failed(now), now + 2s);
  recovery.works(now);
  EXPECT_EQ(recovery.failed(now + 9min), now + 9min + 10s) << "it worked, but not for long";
  EXPECT_EQ(recovery.failed(now + 9min), std::nullopt);
  Recovery steady;
  for (int i = 0; i < 10; ++i) {
    steady.works(now);
    now += 10min;
    EXPECT_EQ(steady.failed(now), now);
  }
}

}  // namespace
}  // namespace vigil::actors
